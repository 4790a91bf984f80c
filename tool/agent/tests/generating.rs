//! The far end that makes load, over pipes: what it says, when it begins, and what it does where nobody reads or speaks.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agent::protocol::{self, Begin, Command, Greeting, Prepare, Prepared, Report, Reports, Started};
use agent::serve::{ServeError, Uses, serve};
use load::fleet::Member;
use load::{NullServer, Plan, RequestTemplate, Scenario, Stop, Url};
use observe::monotonic_us;

/// An agent, what it is told by, and what it says.
struct Far {
    commands: Commands,
    said: PipeReader,
    reports: Reports,
    agent: JoinHandle<Result<(), ServeError>>,
    gate: Gate,
    pings: Pings,
}

/// What an agent is told by, until its input ends.
type Commands = Arc<Mutex<Option<PipeWriter>>>;

/// Says something every second for as long as it is to, as the near end does.
#[derive(Clone, Default)]
struct Pings(Arc<AtomicBool>);

impl Pings {
    fn begin(&self, commands: Commands) {
        let ended = Arc::clone(&self.0);
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let ping = protocol::command(&Command::Ping(0)).unwrap();
                let told = commands.lock().unwrap().as_mut().map(|input| input.write_all(&ping));
                if !matches!(told, Some(Ok(()))) {
                    return;
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where what it says passes while it is open.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn close(&self, closed: bool) {
        *self.0.0.lock().unwrap() = closed;
        self.0.1.notify_all();
    }
}

struct Gated(Gate, PipeWriter);

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (closed, changed) = &*self.0.0;
        drop(changed.wait_while(closed.lock().unwrap(), |closed| *closed).unwrap());
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Far {
    fn start() -> Self {
        Self::start_for(Uses::All)
    }

    fn start_for(uses: Uses) -> Self {
        let (input, mut commands) = pipe().unwrap();
        let (mut said, output) = pipe().unwrap();
        let gate = Gate::default();
        let output = Gated(gate.clone(), output);
        let agent = thread::spawn(move || serve(uses, None, input, output));
        commands.write_all(protocol::greeting().as_bytes()).unwrap();
        let (mut greeting, mut reports) = (Greeting::default(), Reports::default());
        let mut byte = [0];
        let rest = loop {
            said.read_exact(&mut byte).unwrap();
            if let Some(rest) = greeting.push(&byte).unwrap() {
                break rest;
            }
        };
        reports.push(&rest);
        let (commands, pings) = (Arc::new(Mutex::new(Some(commands))), Pings::default());
        pings.begin(Arc::clone(&commands));
        Self { commands, said, reports, agent, gate, pings }
    }

    fn tell(&self, command: &Command) {
        let mut commands = self.commands.lock().unwrap();
        commands.as_mut().unwrap().write_all(&protocol::command(command).unwrap()).unwrap();
    }

    fn hear(&mut self) -> Report {
        let mut chunk = [0; 4096];
        loop {
            if let Some((report, _)) = self.reports.next_report().unwrap() {
                return report;
            }
            let read = self.said.read(&mut chunk).unwrap();
            assert!(read > 0, "it ended");
            self.reports.push(&chunk[..read]);
        }
    }

    /// The first report that this finds something in.
    fn wait_for<T>(&mut self, find: impl Fn(Report) -> Option<T>) -> T {
        loop {
            let report = self.hear();
            let shown = format!("{report:?}");
            if let Some(found) = find(report) {
                return found;
            }
            assert!(!shown.starts_with("Failed"), "{shown}");
        }
    }

    fn failed(&mut self) -> String {
        self.wait_for(|report| if let Report::Failed(reason) = report { Some(reason) } else { None })
    }

    /// Makes ready to load a server with one thread.
    fn prepare(&mut self, server: &NullServer) -> (Prepared, Started) {
        let prepare = Prepare { plan: plan(server), threads: Some(1), watch: true };
        self.tell(&Command::Prepare(Box::new(prepare)));
        let prepared =
            self.wait_for(|report| if let Report::Prepared(one) = report { Some(one) } else { None });
        self.tell(&Command::Start(Member::new(vec![3, 5], 1).unwrap()));
        let started =
            self.wait_for(|report| if let Report::Started(one) = report { Some(one) } else { None });
        (prepared, started)
    }

    /// Ends its input, and waits for its end.
    fn end(self) -> Result<(), ServeError> {
        let Self { commands, agent, .. } = self;
        drop(commands.lock().unwrap().take());
        agent.join().unwrap()
    }
}

fn plan(server: &NullServer) -> Plan {
    let url: Url = format!("http://{}/", server.address()).parse().unwrap();
    Plan::new(Scenario::single(&url, RequestTemplate::default()).unwrap())
}

fn begin(users: u32, at_us: u64, stop: Option<Stop>) -> Command {
    Command::Begin(Begin { number: 1, at_us, users, think: None, rate_per_s: None, stop })
}

#[test]
fn a_number_of_requests_is_made_from_the_instant_on_and_every_one_is_in_a_slice() {
    let (server, mut far) = (NullServer::start(100, None).unwrap(), Far::start());
    let (prepared, started) = far.prepare(&server);
    assert!(prepared.threads == 1 && prepared.users_max > 0, "{prepared:?}");
    assert!(prepared.ceiling_per_s.is_some_and(|ceiling| ceiling > 1.0), "{prepared:?}");
    assert_eq!((started.addresses, started.probes.len()), (vec![server.address()], 1));
    let at_us = monotonic_us() + 200_000;
    far.tell(&begin(4, at_us, Some(Stop::PerUser(25))));
    let begun_us =
        far.wait_for(|report| if let Report::Begun(1, at_us) = report { Some(at_us) } else { None });
    assert!(begun_us >= at_us, "{} us too early", at_us - begun_us);
    let (mut completed, mut last_us, mut finished_us) = (0, 0, None);
    while finished_us.is_none_or(|finished_us| last_us <= finished_us) {
        match far.hear() {
            Report::Tick(1, tick) => {
                assert!(last_us == 0 || tick.start_us == last_us, "slices are consecutive");
                last_us = tick.start_us + tick.length_us;
                completed += tick.completed;
            }
            Report::Finished(1, at_us) => finished_us = Some(at_us),
            Report::Pong(..) | Report::OwnUse(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(completed, 100);
    far.tell(&Command::Finish);
    let totals = far.wait_for(|report| if let Report::Totals(all) = report { Some(all) } else { None });
    assert_eq!((totals[0].begun, totals[0].completed), (100, 100));
    far.end().unwrap();
}

/// Nothing passes: whoever answers pings waits for the stream and hears no others, and the load ends by itself.
#[test]
fn a_stream_that_takes_nothing_ends_the_load_and_does_not_hold_it_up() {
    let (server, mut far) = (NullServer::start(100, None).unwrap(), Far::start());
    far.prepare(&server);
    far.tell(&begin(2, 0, None));
    far.wait_for(|report| matches!(report, Report::Tick(..)).then_some(()));
    let mut passed = 0;
    let reason = loop {
        // Where a slow machine had not noticed by then, it is given time again.
        if passed % 1_500 == 0 {
            far.gate.close(true);
            thread::sleep(Duration::from_secs(12));
            far.gate.close(false);
        }
        passed += 1;
        match far.hear() {
            Report::Tick(1, _) | Report::Pong(..) | Report::OwnUse(_) => {}
            Report::Failed(reason) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("nothing was heard") || reason.contains("fell behind"), "{reason}");
    far.end().unwrap();
}

/// The stream is open, as one is whose way is cut: no end is seen, and nothing comes.
#[test]
fn a_load_ends_where_nothing_is_heard_from_who_asked_for_it() {
    let (server, mut far) = (NullServer::start(100, None).unwrap(), Far::start());
    far.prepare(&server);
    far.tell(&begin(2, 0, None));
    far.wait_for(|report| matches!(report, Report::Tick(..)).then_some(()));
    far.pings.end();
    let muted_us = monotonic_us();
    let reason = loop {
        match far.hear() {
            Report::Tick(1, tick) => assert!(tick.start_us < muted_us + 60_000_000, "it goes on and on"),
            Report::Pong(..) | Report::OwnUse(_) => {}
            Report::Failed(reason) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("nothing was heard"), "{reason}");
    far.end().unwrap();
}

#[test]
fn what_does_not_come_next_or_cannot_be_a_load_is_refused() {
    let server = NullServer::start(100, None).unwrap();
    let mut far = Far::start();
    far.prepare(&server);
    far.tell(&Command::Start(Member::default()));
    assert!(far.failed().contains("does not come next"));
    far.end().unwrap();

    let mut far = Far::start();
    let impossible = Plan { timeout: Duration::ZERO, ..plan(&server) };
    far.tell(&Command::Prepare(Box::new(Prepare { plan: impossible, threads: None, watch: false })));
    far.tell(&Command::Start(Member::default()));
    assert!(!far.failed().is_empty(), "a time-out of zero");
    far.end().unwrap();

    // One that is to observe ends rather than make any.
    let mut far = Far::start_for(Uses::Observing);
    far.tell(&Command::Ping(1));
    let prepare = Prepare { plan: plan(&server), threads: Some(1), watch: false };
    far.tell(&Command::Prepare(Box::new(prepare)));
    far.wait_for(|report| matches!(report, Report::Pong(1, _)).then_some(()));
    assert!(matches!(far.end(), Err(ServeError::OnlyObserves)));

    // What is told to one that makes no load does nothing.
    let mut far = Far::start();
    far.tell(&Command::Finish);
    (0..9).for_each(|number| far.tell(&Command::Ping(number)));
    far.wait_for(|report| matches!(report, Report::Pong(8, _)).then_some(()));
    far.end().unwrap();
}
