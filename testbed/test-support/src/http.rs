//! An HTTP client that sends any bytes, one connection per request, and shows the response as it arrived.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than any step of a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A response as it arrived.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The status line and the header fields.
    pub head: String,
    /// The body as text; bytes that are not UTF-8 are replaced.
    pub body: String,
    /// The body.
    pub bytes: Vec<u8>,
}

impl Response {
    /// The value of the first header field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).next()
    }

    /// The values of all header fields of this name, in order.
    pub fn fields(&self, name: &str) -> impl Iterator<Item = &str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The `id` in the JSON body.
    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.body)).to_owned()
    }

    /// The body, parsed as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends a request and returns the response. `line` is the method and target; `fields` are header lines, each with its
/// line end.
///
/// # Errors
/// When the server cannot be reached, or sends no complete response head.
pub fn ask(to: SocketAddr, line: &str, fields: &str, body: &[u8]) -> io::Result<Response> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}{length}\r\n");
    exchange(to, &[head.as_bytes(), body].concat())
}

/// Sends exactly these bytes and reads until the server closes the connection.
///
/// # Errors
/// As [`ask`].
pub fn exchange(to: SocketAddr, request: &[u8]) -> io::Result<Response> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // A server that refuses the request may close before reading all of it.
    let sent = stream.write_all(request);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        sent?;
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.get(9..12).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = bytes.split_off(end + 4);
    if head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked") {
        bytes = unchunked(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    }
    Ok(Response { status, head, body: String::from_utf8_lossy(&bytes).into_owned(), bytes })
}

/// The body that whole chunks carry.
fn unchunked(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = chunks.windows(2).position(|two| two == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(chunks.get(..line)?).ok()?, 16).ok()?;
        let data = chunks.get(line + 2..)?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(data.get(..length)?);
        chunks = data.get(length..)?.strip_prefix(b"\r\n")?;
    }
}
