//! A client that sends exactly the given bytes, and reads responses one by one.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use engine::Model;
use rustix::net::sockopt::set_socket_linger;

use crate::stream::Stream;

/// One connection.
pub(crate) struct Client {
    input: BufReader<Stream>,
    model: Model,
}

/// A response, read to its end and no further.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// Connects. Failures name `model`.
    pub(crate) fn connect(to: SocketAddr, secure: bool, model: Model) -> io::Result<Self> {
        Ok(Self { input: BufReader::new(Stream::connect(to, secure)?), model })
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.try_send(bytes);
        sent.unwrap_or_else(|error| panic!("{}: cannot send: {error}", self.model));
    }

    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.input.get_mut().write_all(bytes.as_ref())
    }

    /// Waits for the server to respond or to end the connection. Returns whether it responds.
    pub(crate) fn is_answered(&mut self) -> bool {
        match self.input.fill_buf() {
            Ok(answer) => !answer.is_empty(),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{}: neither an answer nor the end: {error}", self.model),
        }
    }

    /// A second handle on the connection, to send while the first reads.
    pub(crate) fn sender(&self) -> Stream {
        self.input.get_ref().clone()
    }

    /// Closes the sending side.
    pub(crate) fn end_sending(&mut self) {
        self.input.get_ref().end().unwrap();
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        set_socket_linger(self.input.get_ref().socket(), Some(Duration::ZERO)).unwrap();
    }

    /// Sends a `GET`.
    pub(crate) fn get(&mut self, target: &str, fields: &str) -> Response {
        self.send(get(target, fields));
        self.response()
    }

    /// The next response.
    pub(crate) fn response(&mut self) -> Response {
        let mut response = self.head();
        let length = response.field("content-length").map_or(0, |length| length.parse().unwrap());
        response.body.resize(length, 0);
        let read = self.input.read_exact(&mut response.body);
        read.unwrap_or_else(|error| panic!("{}: a body broke off: {error}\n{}", self.model, response.head));
        response
    }

    /// The head of the next response, which is all of it for a `HEAD`.
    pub(crate) fn head(&mut self) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = self.input.read_line(&mut head);
            let read =
                line.unwrap_or_else(|error| panic!("{}: no answer: {error}, after '{head}'", self.model));
            assert_ne!(read, 0, "{}: the connection ended instead of an answer, after '{head}'", self.model);
        }
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        Response { status: status.unwrap_or_else(|| panic!("no status in '{head}'")), head, body: Vec::new() }
    }

    /// Reads some bytes; none at the end.
    pub(crate) fn read_some(&mut self, into: &mut [u8]) -> usize {
        self.input.read(into).unwrap_or_else(|error| panic!("{}: cannot read: {error}", self.model))
    }

    /// Everything until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = self.input.read_to_end(&mut rest);
        read.unwrap_or_else(|error| panic!("{}: no clean end: {error}", self.model));
        rest
    }

    /// Everything until the connection ends, even by a reset.
    pub(crate) fn until_broken(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.input.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                panic!("{}: instead of the end: {error}", self.model)
            }
            _ => rest,
        }
    }
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// One value in a response to `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let value = self.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {}", self.text())).parse().unwrap()
    }
}

/// A `GET`, with these header lines.
pub(crate) fn get(target: &str, fields: &str) -> String {
    request("GET", target, fields)
}

/// A request without a body, with these header lines.
pub(crate) fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

/// The head of an upload.
pub(crate) fn upload_head(fields: &str) -> String {
    request("POST", "/upload", fields)
}

/// An upload of known length.
pub(crate) fn upload(body: &[u8]) -> Vec<u8> {
    [upload_head(&format!("Content-Length: {}\r\n", body.len())).as_bytes(), body].concat()
}

/// An upload in chunks of this many bytes.
pub(crate) fn chunked(body: &[u8], chunk: usize) -> Vec<u8> {
    chunked_request("POST", "/upload", body, chunk)
}

/// A request whose body comes in chunks of this many bytes.
pub(crate) fn chunked_request(method: &str, target: &str, body: &[u8], chunk: usize) -> Vec<u8> {
    let mut request = request(method, target, "Transfer-Encoding: chunked\r\n").into_bytes();
    for piece in body.chunks(chunk).chain([&b""[..]]) {
        request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request
}
