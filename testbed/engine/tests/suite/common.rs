//! Tiny services to run on every model, and clients for them.

use std::{
    future::Future,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{
    Model, Options, Server,
    service::{Connection, Factory, Service},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The environment variable that tells a test in a process of its own which model to try.
pub(crate) const MODEL: &str = "ENGINE_TEST_MODEL";

/// Longer than any step of a test takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the ignored test `name` for `model` in a process of its own, whose descriptors no other test touches.
pub(crate) fn run_apart(name: &str, model: Model) {
    let status = apart(name, model).status().expect("a process");
    assert!(status.success(), "{name} failed with {model}: see above");
}

/// The command that runs the ignored test `name` for `model`.
pub(crate) fn apart(name: &str, model: Model) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--ignored", "--exact", "--nocapture", name]).env(MODEL, model.name());
    command
}

/// The models to try in this process.
///
/// Models that fork are tried in a process of their own, where only one test runs at a time: until a new process has
/// dropped what it inherited, it would hold the sockets of other tests.
pub(crate) fn models() -> impl Iterator<Item = Model> {
    let forking = std::env::var_os(FORKING).is_some();
    Model::ALL.iter().copied().filter(move |model| model.forks() == forking)
}

/// The environment variable that is set in the process that tries the models that fork.
const FORKING: &str = "ENGINE_TEST_FORKING";

#[test]
fn the_models_that_fork_pass_every_test_too() {
    if std::env::var_os(FORKING).is_some() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    let other_models = ["--skip=processes::", "--skip=overload::", "--skip=high_descriptors::"];
    command.arg("--test-threads=1").args(other_models).env(FORKING, "1");
    assert!(command.status().expect("a process").success(), "see above");
}

/// The model that a test in a process of its own must try.
pub(crate) fn model_to_try() -> Model {
    std::env::var(MODEL).expect("set by the test that runs this one").parse().expect("a model")
}

/// Raises the limit on descriptors as far as the system allows.
pub(crate) fn lift_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("the limit is lifted");
}

/// A service for any connection, which threads may share.
pub(crate) trait Program: Send + Sync + 'static {
    fn serve<C: Connection>(&self, connection: C) -> impl Future<Output = ()>;
}

/// Makes the same program for every worker.
pub(crate) struct Same<P>(pub(crate) Arc<P>);

/// The program as a service.
pub(crate) struct Running<P>(Arc<P>);

impl<P: Program> Factory for Same<P> {
    type Service<C: Connection> = Running<P>;

    fn make<C: Connection>(&self) -> io::Result<Running<P>> {
        Ok(Running(Arc::clone(&self.0)))
    }
}

impl<P: Program, C: Connection> Service<C> for Running<P> {
    async fn serve(&self, connection: C) {
        self.0.serve(connection).await;
    }
}

pub(crate) fn options() -> Options {
    Options { loops: 2, workers: 16, ..Options::new(SocketAddr::from(([127, 0, 0, 1], 0))) }
}

pub(crate) fn start<P: Program>(model: Model, program: P) -> Server {
    start_with(model, &options(), program)
}

pub(crate) fn start_with<P: Program>(model: Model, options: &Options, program: P) -> Server {
    engine::start(model, options, Same(Arc::new(program))).expect("the server starts")
}

pub(crate) fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect_timeout(&server.local_addr(), PATIENCE).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout is set");
    stream
}

/// Waits until nobody listens there: a process that another test starts holds copies of all sockets until it runs its program.
pub(crate) fn is_left(model: Model, address: SocketAddr) {
    eventually(&format!("{model} no longer listens"), || TcpStream::connect(address).is_err());
}

/// Sends one line and reads one line.
pub(crate) fn ask(stream: &mut TcpStream, line: &str) -> String {
    stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
    read_line(stream)
}

/// Reads to the end of the line or of input, byte by byte so as to take nothing beyond it.
pub(crate) fn read_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).expect("read") == 1 && byte != *b"\n" {
        line.extend_from_slice(&byte);
    }
    String::from_utf8(line).expect("text")
}

/// Reads until the peer closes. A reset counts as closing.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("instead of the end of the connection: {error}"),
    }
    bytes
}

/// Waits until `condition` holds, checking often.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes that differ by position.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

/// Reads the next line, without its end. `None` at the end of input or on an error.
pub(crate) async fn line<C: Connection>(connection: &mut C) -> Option<String> {
    loop {
        let end = connection.input().iter().position(|&byte| byte == b'\n');
        if let Some(end) = end {
            let line = String::from_utf8_lossy(&connection.input()[..end]).into_owned();
            connection.consume(end + 1);
            return Some(line);
        }
        if connection.fill().await.ok()? == 0 {
            return None;
        }
    }
}

/// Answers with one line.
pub(crate) async fn reply<C: Connection>(connection: &mut C, line: &str) -> io::Result<()> {
    connection.output().extend_from_slice(line.as_bytes());
    connection.output().push(b'\n');
    connection.flush().await
}
