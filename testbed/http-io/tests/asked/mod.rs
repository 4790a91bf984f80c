//! A client for the tests of servers: sends what it is told on a connection of its own, and shows the answer as it came.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The body, as text where it is some.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// The first header field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).next()
    }

    /// All of this name, in order.
    pub(crate) fn fields(&self, name: &str) -> impl Iterator<Item = &str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The `id` in the JSON body.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.body)).to_owned()
    }

    /// The body, read as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Asks with a body. `fields` are header lines, each with its end.
pub(crate) fn ask(to: SocketAddr, line: &str, fields: &str, body: &[u8]) -> io::Result<Answer> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{line} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}{length}\r\n");
    exchange(to, &[head.as_bytes(), body].concat())
}

/// Sends exactly this, which is to end the connection, and gives the answer.
pub(crate) fn exchange(to: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // A server that refuses may not read it all.
    let sent = stream.write_all(request);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        sent?;
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.get(9..12).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let bytes = bytes.split_off(end + 4);
    Ok(Answer { status, head, body: String::from_utf8_lossy(&bytes).into_owned(), bytes })
}
