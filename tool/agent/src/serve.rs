//! The far end: `nstar agent`.
//!
//! It does what its standard input says and ends when that does. A thread reads commands, another passes on what the
//! watcher sees. Where the stream takes nothing they wait, and the watcher drops what is oldest. What makes load has threads
//! of its own, and so has what profiles.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use analysis::doctor::Facts;
use observe::{Found, KernelPaths, ObserveError, ProgramTables, Taken, Topology, Watcher, monotonic_us};
use rustix::{process::geteuid, system::uname};

use crate::generating::Generating;
use crate::heard::LastHeard;
use crate::profiling::Profiling;
use crate::protocol::{
    self, About, Command, Commands, Greeting, Listens, NotFound, Packer, ProfileOrder, ProtocolError, Report,
    Unseen, bounded,
};
use crate::stream::named;

/// Time between samples, as beside the generator.
const SAMPLE_PERIOD: Duration = Duration::from_millis(250);

/// How long to wait for the next sample before looking whether anybody still wants it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two looks at what may not be seen, microseconds.
const UNSEEN_PERIOD_US: u64 = 2_000_000;

/// How much is read at once.
const CHUNK: usize = 1 << 12;

/// Reasons why an agent ends before its input does.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The other end is not an nstar of this version, or sends what none sends.
    #[error("agent: {0}")]
    Protocol(#[from] ProtocolError),
    /// More is asked for than can be done.
    #[error("agent: more is asked for than can be done")]
    TooMuch,
    /// Load is to be made where that was ruled out.
    #[error("agent: this one observes, and makes no load")]
    OnlyObserves,
    /// The stream broke.
    #[error("agent: the stream broke: {0}")]
    Stream(#[from] io::Error),
    /// The watching thread could not be started.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

/// What an agent lets itself be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uses {
    /// To observe, and to make load.
    All,
    /// To observe alone: one that may see everything need not send anything anywhere.
    Observing,
}

/// Observes or makes load for whoever is at the other end of a stream, until the input ends. `tables` reads the tables of
/// programs, where this program can profile.
///
/// # Errors
/// If the other end is none, or the stream breaks.
pub fn serve(
    uses: Uses,
    tables: Option<ProgramTables>,
    mut input: impl Read,
    output: impl Write + Send + 'static,
) -> Result<(), ServeError> {
    let output = Output::new(output);
    let heard = LastHeard::at(monotonic_us());
    let mut agent = Agent { uses, tables, output, heard, watcher: None, generating: None, profiling: None };
    agent.output.write(protocol::greeting().as_bytes())?;
    agent.output.report(&Report::About(About { machine: observe::host(), ..about() }))?;
    let (mut greeting, mut greeted) = (Greeting::default(), false);
    let mut commands = Commands::default();
    let mut chunk = [0; CHUNK];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        agent.heard.note(monotonic_us());
        let came = chunk.get(..read).unwrap_or_default();
        if greeted {
            commands.push(came);
        } else if let Some(rest) = greeting.push(came).map_err(ProtocolError::from)? {
            greeted = true;
            commands.push(&rest);
        }
        while let Some(command) = commands.next_command()? {
            agent.obey(command)?;
        }
    }
}

/// What an agent has to do with.
struct Agent {
    uses: Uses,
    tables: Option<ProgramTables>,
    output: Output,
    heard: LastHeard,
    watcher: Option<Arc<Watcher>>,
    generating: Option<Generating>,
    profiling: Option<Profiling>,
}

impl Agent {
    fn obey(&mut self, command: Command) -> Result<(), ServeError> {
        match command {
            Command::Ping(number) => self.output.report(&Report::Pong(number, monotonic_us()))?,
            Command::Watch { number, addresses, behind } => self.watch(number, &addresses, &behind)?,
            Command::Sample => self.watcher.iter().for_each(|watcher| watcher.request_sample()),
            Command::LookClosely(closely) => {
                self.watcher.iter().for_each(|watcher| watcher.look_closely(closely));
            }
            Command::Facts(number) => {
                self.output.report(&Report::Facts(number, Box::new(self.facts())))?;
            }
            Command::Profile(order) => self.profile(order)?,
            Command::EndProfile if self.profiling.iter().all(Profiling::end) => {}
            Command::EndProfile => return Err(ServeError::TooMuch),
            Command::Prepare(_) | Command::Start(_) | Command::Begin(_) | Command::Finish => {
                self.generate(command)?;
            }
        }
        Ok(())
    }

    /// Profiles what is watched: of other processes nothing is told.
    fn profile(&mut self, order: ProfileOrder) -> Result<(), ServeError> {
        let topology = self.watcher.as_ref().map(|watcher| watcher.topology());
        let watched = topology.iter().flat_map(|of| of.servers.iter().chain(&of.downstream));
        let watched: BTreeSet<u32> = watched.copied().collect();
        let profiling = match self.profiling.take() {
            Some(profiling) => profiling,
            None => Profiling::start(self.tables, self.output.clone())?,
        };
        if !profiling.begin(order, &watched) {
            return Err(ServeError::TooMuch);
        }
        self.profiling = Some(profiling);
        Ok(())
    }

    fn generate(&mut self, command: Command) -> Result<(), ServeError> {
        if self.uses == Uses::Observing {
            return Err(ServeError::OnlyObserves);
        }
        let generating = match self.generating.take() {
            Some(generating) => generating,
            None => Generating::start(self.output.clone(), self.heard.clone())?,
        };
        if !generating.obey(command) {
            return Err(ServeError::TooMuch);
        }
        self.generating = Some(generating);
        Ok(())
    }

    /// What of this host and of the watched processes may spoil a measurement, whose load comes from elsewhere.
    fn facts(&self) -> Facts {
        let nobody = || Topology::unseen((Ipv4Addr::UNSPECIFIED, 0).into()).with_far_load();
        let topology = self.watcher.as_ref().map_or_else(nobody, |watcher| watcher.topology());
        bounded(observe::facts(std::process::id(), Some(&topology)))
    }

    fn watch(
        &mut self,
        number: u64,
        addresses: &[SocketAddr],
        behind: &[SocketAddr],
    ) -> Result<(), ServeError> {
        // One that was asked for before ends first.
        self.watcher = None;
        let (topology, found) = observe::find_for_far_load(addresses, behind);
        let found = found.into_iter().map(|found| found.map(listens).map_err(not_found)).collect();
        let mut unseen = Unsaid::default();
        unseen.tell(&topology, &self.output)?;
        self.output.report(&Report::Watching(number, found))?;
        let watcher = Arc::new(Watcher::start_for_taking(KernelPaths::default(), topology, SAMPLE_PERIOD)?);
        let (theirs, output) = (Arc::downgrade(&watcher), self.output.clone());
        named("nstar-tell", move || tell(&theirs, &output, unseen)).map_err(ObserveError::Thread)?;
        self.watcher = Some(watcher);
        Ok(())
    }
}

/// Passes on what a watcher sees, for as long as there is one and the stream takes it.
fn tell(watcher: &Weak<Watcher>, output: &Output, mut unseen: Unsaid) {
    while let Some(watcher) = watcher.upgrade() {
        let told = output.pass_on(watcher.take(PATIENCE));
        if told.and_then(|()| unseen.tell_at_times(&watcher, output)).is_err() {
            return;
        }
    }
}

/// What may not be seen, told when it changes.
#[derive(Default)]
struct Unsaid {
    told: Unseen,
    next_at_us: u64,
}

impl Unsaid {
    /// Looks again, where that is due: new processes are searched for no more often.
    fn tell_at_times(&mut self, watcher: &Watcher, output: &Output) -> io::Result<()> {
        if monotonic_us() < self.next_at_us {
            return Ok(());
        }
        self.tell(&watcher.topology(), output)
    }

    fn tell(&mut self, topology: &Topology, output: &Output) -> io::Result<()> {
        self.next_at_us = monotonic_us() + UNSEEN_PERIOD_US;
        let unseen = Unseen::new(topology.sockets_unread(), topology.tiers_out_of_sight());
        if unseen == self.told {
            return Ok(());
        }
        output.report(&Report::Unseen(unseen.clone()))?;
        self.told = unseen;
        Ok(())
    }
}

/// Where reports go.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<Mutex<(Box<dyn Write + Send>, Packer)>>,
}

impl Output {
    fn new(output: impl Write + Send + 'static) -> Self {
        Self { shared: Arc::new(Mutex::new((Box::new(output), Packer::default()))) }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.0.write_all(bytes)?;
        shared.0.flush()
    }

    /// Sends a report. Returns whether it was short enough to be sent.
    fn send(&self, report: &Report) -> io::Result<bool> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(frame) = shared.1.pack(report) else { return Ok(false) };
        shared.0.write_all(&frame)?;
        shared.0.flush()?;
        Ok(true)
    }

    pub(crate) fn report(&self, report: &Report) -> io::Result<()> {
        self.send(report).map(drop)
    }

    /// Sends what was seen, looks first: a sample says that all before it was told.
    fn pass_on(&self, taken: Taken) -> io::Result<()> {
        let mut left_out = taken.left_out;
        for look in taken.looks {
            left_out += u64::from(!self.send(&Report::Look(look))?);
        }
        for sample in taken.samples {
            left_out += u64::from(!self.send(&Report::Sample(Box::new(sample)))?);
        }
        if left_out > 0 { self.report(&Report::LeftOut(left_out)) } else { Ok(()) }
    }
}

fn listens(Found { at, by_port }: Found) -> Listens {
    Listens { at, by_port }
}

fn not_found(error: ObserveError) -> NotFound {
    match error {
        ObserveError::NotLocal(address) => NotFound::NotLocal(address),
        ObserveError::NotListening(address) => NotFound::NotListening(address),
        ObserveError::TranslationUnread(address) => NotFound::TranslationUnread(address),
        ObserveError::PermissionDenied(address) => NotFound::PermissionDenied(address),
        ObserveError::NoOwner(address) => NotFound::NoOwner(address),
        ObserveError::OwnProcess(address) => NotFound::OwnProcess(address),
        ObserveError::Unreadable { path, source } => {
            NotFound::Unreadable(path.display().to_string(), source.raw_os_error())
        }
        ObserveError::Thread(source) => NotFound::Unreadable(String::new(), source.raw_os_error()),
    }
}

/// Where this process runs, without what the machine is made of: only the far end of a stream asks for that, and it takes
/// reading about every processor.
#[must_use]
pub fn about() -> About {
    let link = |path: &str| fs::read_link(Path::new(path)).map(|link| link.display().to_string());
    About {
        host: uname().nodename().to_string_lossy().into_owned(),
        boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
        process_namespace: link("/proc/self/ns/pid").unwrap_or_default(),
        is_root: geteuid().is_root(),
        pid: std::process::id(),
        ..About::default()
    }
}

#[cfg(test)]
mod tests {
    use analysis::run::ServerUnwatched;

    use super::*;

    /// More rights would help there; where nothing listens they would not.
    #[test]
    fn translation_that_may_not_be_read_is_told_as_such() {
        let address = ([10, 0, 0, 1], 80).into();
        let told = ServerUnwatched::from(not_found(ObserveError::TranslationUnread(address)));
        assert_eq!(told, ServerUnwatched::TranslationUnread { address });
    }
}
