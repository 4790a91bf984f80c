//! A sink on its own port, and a client that sends exactly the given bytes.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{Model, Server};
use sink::{Options, Totals};

pub(crate) const MODELS: [Model; 2] = [Model::Threads, Model::Epoll];

/// Longer than any step of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and its counters.
pub(crate) struct Sink {
    server: Server,
    pub(crate) totals: Totals,
}

impl Sink {
    pub(crate) fn start(model: Model, options: Options) -> Self {
        let mut run = engine::Options::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        (run.loops, run.counters) = (1, Arc::clone(&options.connections));
        let factory = sink::factory(options);
        let totals = factory.totals();
        Self { server: engine::start(model, &run, factory).unwrap(), totals }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.local_addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The complete response to a request on a new connection.
    pub(crate) fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }

    pub(crate) fn metrics(&self) -> String {
        self.ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    }
}

/// Everything until the server closes the connection.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The status line and body of one response with a `Content-Length`, on a connection that stays open.
pub(crate) fn answer(stream: &mut TcpStream) -> (String, String) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head.lines().next().unwrap().to_owned(), String::from_utf8(body).unwrap())
}

/// The head of an upload with these header fields.
pub(crate) fn head(fields: &str) -> Vec<u8> {
    format!("POST /upload HTTP/1.1\r\nHost: x\r\n{fields}\r\n").into_bytes()
}

/// An upload with a `Content-Length`.
pub(crate) fn upload(body: &[u8]) -> Vec<u8> {
    let mut request = head(&format!("Content-Length: {}\r\n", body.len()));
    request.extend_from_slice(body);
    request
}

/// An upload in chunks of these lengths, taken in turn.
pub(crate) fn chunked(mut body: &[u8], lengths: &[usize]) -> Vec<u8> {
    let mut request = head("Transfer-Encoding: chunked\r\n");
    for length in lengths.iter().cycle() {
        let (chunk, left) = body.split_at(body.len().min(*length));
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
        if chunk.is_empty() {
            return request;
        }
        body = left;
    }
    request
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
