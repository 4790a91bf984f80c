//! Small scripted servers on real sockets, and shorthand for generators.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use analysis::ticks::{ErrorKind, Tick};
use load::{Generator, Plan, RequestTemplate, Scenario, Stop, Url};

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that runs a script for each connection, in its own thread, until the test ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
}

impl Server {
    /// Runs `script` for each connection, with the number of the connection.
    pub(crate) fn start(script: impl Fn(Peer, usize) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    pub(crate) fn on(listener: TcpListener, script: impl Fn(Peer, usize) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let (count, stop, script) = (accepted.clone(), stopping.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let number = count.fetch_add(1, Ordering::SeqCst);
                let script = script.clone();
                let run = move || script(Peer::new(stream), number);
                std::thread::Builder::new().stack_size(128 * 1024).spawn(run).unwrap();
            }
        });
        Server { address, accepted, stopping }
    }

    /// Answers every request with `response`.
    pub(crate) fn answering(response: &'static [u8]) -> Self {
        Self::start(move |mut peer, _| {
            while peer.request().is_some() {
                if peer.send(response).is_err() {
                    return;
                }
            }
        })
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.url("/"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// One connection, from the server's side.
pub(crate) struct Peer {
    reader: BufReader<TcpStream>,
}

/// A request that a scripted server has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Peer { reader: BufReader::new(stream) }
    }

    /// Reads the next request. Returns `None` if the client has closed the connection.
    pub(crate) fn request(&mut self) -> Option<Request> {
        let line = self.line()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ")?;
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut request = Request { line, headers, body: Vec::new() };
        let length = request.header("content-length").map_or(0, |value| value.parse().unwrap());
        request.body = vec![0; length];
        self.reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Waits until the client closes the connection.
    pub(crate) fn wait_for_end(&mut self) {
        let _ = self.reader.read_to_end(&mut Vec::new());
    }

    /// Waits until the client closes the connection, without reading what it sends.
    pub(crate) fn wait_for_hang_up(&self) {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::new(self.stream(), PollFlags::empty())];
        let _ = poll(&mut fds, None);
    }

    pub(crate) fn reader(&mut self) -> &mut impl Read {
        &mut self.reader
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.reader.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }
}

pub(crate) fn plan(url: &Url) -> Plan {
    Plan::new(Scenario::single(url, RequestTemplate::default()).unwrap())
}

pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Longer than any step of a test takes; reached only by what never happens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A URL at which nobody listens, nor does another test begin to: the port is that of a client, for as long as both ends are
/// kept.
pub(crate) fn nobody() -> (Url, [TcpStream; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let url = format!("http://{}/", client.local_addr().unwrap()).parse().unwrap();
    (url, [client, listener.accept().unwrap().0])
}

/// Collects for this long, and on until `enough` of the sums so far. Returns all ticks.
pub(crate) fn collect_until(
    generator: &mut Generator,
    time_us: u64,
    enough: impl Fn(&Counted) -> bool,
) -> Vec<Tick> {
    let give_up = Instant::now() + PATIENCE;
    let mut ticks = generator.collect(time_us, &NEVER).unwrap();
    while !enough(&Counted::of(&ticks)) && Instant::now() < give_up {
        ticks.extend(generator.collect(20_000, &NEVER).unwrap());
    }
    ticks
}

/// Runs `users` until `stop`. Returns the sums.
pub(crate) fn run(plan: &Plan, users: u32, stop: Stop) -> Counted {
    let mut generator = Generator::start(plan).unwrap();
    generator.set_users(users).unwrap();
    Counted::of(&generator.run(stop, &NEVER).unwrap())
}

/// Runs one user for one request, which must fail. Returns the error.
pub(crate) fn one_error(plan: &Plan) -> ErrorKind {
    let counted = run(plan, 1, Stop::PerUser(1));
    assert_eq!(counted.completed, 0);
    assert_eq!(counted.errors.len(), 1, "{:?}", counted.errors);
    counted.errors[0].0
}

/// Sums over ticks.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) completed: u64,
    pub(crate) errors: Vec<(ErrorKind, u64)>,
    pub(crate) bytes: u64,
    pub(crate) sent: u64,
    pub(crate) statuses: Vec<(u16, u64)>,
    pub(crate) response_time_max: Duration,
    pub(crate) late_starts: u64,
    /// How long requests waited that timed out, and how many did.
    pub(crate) timed_out_us: Vec<(u64, u64)>,
    response_times_us: Vec<(u64, u64)>,
}

impl Counted {
    pub(crate) fn of(ticks: &[Tick]) -> Self {
        let mut errors = std::collections::BTreeMap::new();
        let mut statuses = std::collections::BTreeMap::new();
        for tick in ticks {
            tick.errors.iter().for_each(|(kind, n)| *errors.entry(*kind).or_insert(0) += n);
            tick.unexpected_statuses.iter().for_each(|(s, n)| *statuses.entry(*s).or_insert(0) += n);
            let counted: u64 = tick.response_times.values_us.iter().map(|(_, n)| n).sum();
            assert_eq!(counted + tick.response_times.beyond, tick.completed, "every completion has its time");
        }
        let longest =
            ticks.iter().filter_map(|tick| tick.response_times.values_us.last()).map(|(us, _)| *us).max();
        Counted {
            completed: ticks.iter().map(|tick| tick.completed).sum(),
            errors: errors.into_iter().collect(),
            bytes: ticks.iter().map(|tick| tick.bytes_received).sum(),
            sent: ticks.iter().map(|tick| tick.bytes_sent).sum(),
            statuses: statuses.into_iter().collect(),
            response_time_max: Duration::from_micros(longest.unwrap_or_default()),
            late_starts: ticks.iter().map(|tick| tick.generator.late_starts).sum(),
            timed_out_us: ticks.iter().flat_map(|tick| tick.timed_out.values_us.clone()).collect(),
            response_times_us: ticks.iter().flat_map(|tick| tick.response_times.values_us.clone()).collect(),
        }
    }

    pub(crate) fn slower_than(&self, time: Duration) -> u64 {
        let slow = |(us, _): &&(u64, u64)| Duration::from_micros(*us) > time;
        self.response_times_us.iter().filter(slow).map(|(_, n)| n).sum()
    }

    pub(crate) fn errors_total(&self) -> u64 {
        self.errors.iter().map(|(_, n)| n).sum()
    }
}
