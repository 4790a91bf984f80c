//! Requests through proxies that others made, and without: nginx, Caddy and this server must find the same requests in the
//! same bytes. Where they did not, one that passed the proxy's rules could bring another past them (request smuggling).
//!
//! Each stream of the corpus goes to the server itself, and to the same server through each proxy. The server tells of
//! every request what it made of it.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use engine::{
    Model, Options, Server,
    service::{Connection, Factory},
};
use http_io::server::{Error, Exchange, Handler, Http, HttpOptions};
use tempfile::TempDir;
use wire::{
    Framing, Limits, Method,
    body::{Decoder, Event},
    response,
};

/// How long a server waits for the rest of a request. It passes only where the rest never comes.
const WAIT: Duration = Duration::from_secs(5);
/// A generous bound: only what never happens takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Connections to the server behind a proxy stay open, so that it never closes one that is about to be used again.
const KEPT: Duration = Duration::from_secs(3600);
/// The longest body, bytes.
const BODY_MAX: u64 = 1 << 20;
/// What the server made of a request: its method, path, query and the length of its body.
const SEEN: &str = "X-Seen";
/// The last request of each connection, which ends it. In a stream that was cut short it is part of what is missing.
const LAST: &[u8] = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Where we take what a proxy refuses: the proxy, the stream, and why.
const DELIBERATE: &[(&str, &str, &str)] = &[
    (
        "caddy",
        "empty-line-first",
        "RFC 9112 section 2.2: an empty line before a request is ignored. Caddy does so after POST only",
    ),
    (
        "nginx",
        "coding-behind-a-tab",
        "RFC 9112 section 5: a tab may stand before a value. nginx takes it for a part of the value",
    ),
];

struct Telling;

impl<C: Connection> Handler<C> for Telling {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let query = exchange.query().map(|query| format!("?{query}")).unwrap_or_default();
        let request = format!("{} {}{query}", exchange.method_text(), exchange.path());
        let length = exchange.read_body(BODY_MAX).await?.len();
        exchange.respond(200).header(SEEN, format!("{request} {length}")).empty()
    }
}

struct Factories {
    idle: Duration,
}

impl Factory for Factories {
    type Service<C: Connection> = Http<Telling>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let options = HttpOptions {
            idle_timeout: self.idle,
            head_timeout: WAIT,
            body_timeout: WAIT,
            ..HttpOptions::default()
        };
        Ok(Http::new(Telling, options))
    }
}

fn start(idle: Duration) -> Server {
    let options = Options { loops: 1, ..Options::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))) };
    engine::start(Model::Epoll, &options, Factories { idle }).expect("a server")
}

/// A proxy in front of the server, stopped when dropped.
struct Proxy {
    name: &'static str,
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl Proxy {
    fn nginx(behind: SocketAddr) -> Option<Self> {
        is_installed_or_skip("nginx", "-v").then(|| {
            let (folder, port) = (TempDir::new().expect("a folder"), free_port());
            let configuration = nginx_configuration(folder.path(), port, behind);
            fs::write(folder.path().join("nginx.conf"), configuration).expect("a file");
            let mut command = program("nginx");
            command.arg("-p").arg(folder.path()).args(["-e", "error.log", "-c", "nginx.conf"]);
            Self::spawn("nginx", command, port, folder)
        })
    }

    fn caddy(behind: SocketAddr) -> Option<Self> {
        is_installed_or_skip("caddy", "version").then(|| {
            let (folder, port) = (TempDir::new().expect("a folder"), free_port());
            let file = folder.path().join("Caddyfile");
            fs::write(&file, caddy_configuration(port, behind)).expect("a file");
            let mut command = program("caddy");
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
            for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
                command.env(variable, folder.path());
            }
            Self::spawn("caddy", command, port, folder)
        })
    }

    fn spawn(name: &'static str, mut command: Command, port: u16, folder: TempDir) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut proxy = Self { name, address, child, _folder: folder };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = proxy.child.try_wait().expect("a child");
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "{command:?} does not listen: {ended:?}");
            thread::sleep(Duration::from_millis(10));
        }
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Neither has children: nginx runs without a master.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that may lie where only root looks.
fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
    command
}

fn is_installed_or_skip(name: &str, version: &str) -> bool {
    let installed = program(name).arg(version).output().is_ok();
    assert!(installed || std::env::var_os("CI").is_none(), "CI must have {name}: run scripts/setup-tests");
    if !installed {
        eprintln!("SKIPPED: {name} is not installed (scripts/setup-tests)");
    }
    installed
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn nginx_configuration(folder: &Path, port: u16, behind: SocketAddr) -> String {
    let (folder, wait) = (folder.display(), WAIT.as_secs());
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log;
         events {{ worker_connections 1024; }}
         http {{ access_log off; client_header_timeout {wait}s; client_body_timeout {wait}s; keepalive_timeout {wait}s;
           lingering_close always; client_body_temp_path {folder}; proxy_temp_path {folder};
           fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
           server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{behind}; }} }} }}"
    )
}

fn caddy_configuration(port: u16, behind: SocketAddr) -> String {
    let wait = WAIT.as_secs();
    format!(
        "{{\n\tadmin off\n\tauto_https off\n\tservers {{\n\t\ttimeouts {{\n\t\t\tread_header {wait}s\n\
         \t\t\tread_body {wait}s\n\t\t\tidle {wait}s\n\t\t}}\n\t}}\n}}\n\
         http://:{port} {{\n\tbind 127.0.0.1\n\treverse_proxy {behind}\n}}\n"
    )
}

/// What became of a stream of requests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Outcome {
    /// The requests that were answered, as the server tells of them.
    answered: Vec<String>,
    /// The status with which a further one was refused.
    refused: Option<u16>,
}

impl Outcome {
    /// Reads the responses on a connection, up to the first that is no answer.
    fn of(mut received: &[u8]) -> Self {
        let (mut outcome, limits) = (Self::default(), Limits::default());
        while let Ok(Some((head, fields))) = response::parse_indexed(received, Method::Get, &limits) {
            if !head.is_interim() {
                let Some(seen) = fields.get(received, SEEN).filter(|_| head.status == 200) else {
                    outcome.refused = Some(head.status);
                    break;
                };
                outcome.answered.push(String::from_utf8_lossy(seen).into_owned());
            }
            received = after_body(&received[head.len..], head.framing);
        }
        outcome
    }
}

fn after_body(mut rest: &[u8], framing: Framing) -> &[u8] {
    let mut decoder = Decoder::new(framing, &Limits::default()).expect("short bodies");
    loop {
        let count = match decoder.next(rest).expect("a body") {
            Event::Framing(count) => count,
            Event::Data(count) => {
                decoder.advance(count as u64);
                count
            }
            Event::NeedMore | Event::End => return rest,
        };
        rest = &rest[count..];
    }
}

/// Sends a stream, and reads until the server closes.
fn outcome(address: SocketAddr, stream: &[u8]) -> Outcome {
    let mut connection = TcpStream::connect(address).expect("connected");
    connection.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    // A server that refuses may close before it has everything.
    let _ = connection.write_all(&[stream, LAST].concat());
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match connection.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => received.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{address} neither answers nor closes: {error}"),
        }
    }
    Outcome::of(&received)
}

/// Whether no request can be hidden between two servers: both find the same ones, or ours refuses what the other takes. A
/// server that waits in vain for the rest (408) has refused nothing.
fn agree(ours: &Outcome, theirs: &Outcome) -> bool {
    match ours.refused {
        Some(status) if status != 408 => theirs.answered.starts_with(&ours.answered),
        _ => theirs.answered == ours.answered,
    }
}

fn streams() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/requests");
    let paths = fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read(path).expect("a stream"))).collect()
}

/// What the stream of this name came to at the proxy, if the two disagree and that is not deliberate.
fn disagreement(proxy: &Proxy, name: &str, stream: &[u8], ours: &Outcome) -> Option<String> {
    let theirs = outcome(proxy.address, stream);
    if agree(ours, &theirs) {
        return None;
    }
    let proxy = proxy.name;
    let deliberate = DELIBERATE.iter().find(|(of, which, _)| (*of, *which) == (proxy, name));
    let only_refused = theirs.refused.is_some() && ours.answered.starts_with(&theirs.answered);
    if let Some((.., why)) = deliberate.filter(|_| only_refused) {
        eprintln!("{name} differs from {proxy}, deliberately: {why}");
        return None;
    }
    Some(format!("{name}: {ours:?} without {proxy}, {theirs:?} through it"))
}

fn disagreements(direct: SocketAddr, proxies: &[Proxy], name: &str, stream: &[u8]) -> Vec<String> {
    let ours = outcome(direct, stream);
    proxies.iter().filter_map(|proxy| disagreement(proxy, name, stream, &ours)).collect()
}

#[test]
fn proxies_and_this_server_find_the_same_requests_in_the_same_bytes() {
    let (direct, behind) = (start(WAIT), start(KEPT));
    let found = [Proxy::nginx(behind.local_addr()), Proxy::caddy(behind.local_addr())];
    let proxies: Vec<Proxy> = found.into_iter().flatten().collect();
    let (streams, proxies, at) = (streams(), &proxies[..], direct.local_addr());
    // At once, as those that are cut short take as long as a server waits.
    let differ: Vec<String> = thread::scope(|scope| {
        let compared: Vec<_> = streams
            .iter()
            .map(|(name, stream)| scope.spawn(move || disagreements(at, proxies, name, stream)))
            .collect();
        compared.into_iter().flat_map(|one| one.join().expect("servers answer")).collect()
    });
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn this_server_finds_what_was_sent() {
    let server = start(WAIT);
    let find = |stream: &[u8]| outcome(server.local_addr(), stream);
    let two = b"POST /a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let seen = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(find(two), Outcome { answered: seen(&["POST /a?b 3", "GET /last 0"]), refused: None });
    let both =
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(find(both), Outcome { answered: Vec::new(), refused: Some(400) });
}

#[test]
fn only_a_server_that_refuses_may_find_fewer_requests() {
    let outcome = |answered: &[&str], refused| Outcome {
        answered: answered.iter().map(|word| (*word).to_owned()).collect(),
        refused,
    };
    let (one, two) = (outcome(&["a"], None), outcome(&["a", "b"], None));
    assert!(agree(&one, &one) && agree(&outcome(&["a"], Some(400)), &two));
    assert!(!agree(&one, &two) && !agree(&two, &one), "a request is hidden from one of them");
    assert!(!agree(&outcome(&["a"], Some(408)), &two), "it waits, where the other goes on");
    assert!(!agree(&outcome(&["b"], Some(400)), &two), "they read different requests");
    assert!(agree(&two, &outcome(&["a", "b"], Some(400))), "what follows was refused by both");
}
