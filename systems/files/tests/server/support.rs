//! Servers on ports of their own, and a client that shows everything it was answered.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use engine::{Model, Server};
use files::{AccountsBackend, Options};

pub(crate) const MODELS: [Model; 2] = [Model::Threads, Model::Epoll];
pub(crate) const PASSWORD: &str = "correct horse";

pub(crate) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn serve_accounts(listen: SocketAddr, folder: &Path) -> Server {
    let options = accounts::Options::new(folder.join("accounts.db"));
    let mut run = engine::Options::new(listen);
    run.loops = 2;
    engine::start(Model::Epoll, &run, accounts::factory(options).unwrap()).unwrap()
}

pub(crate) fn serve_files(model: Model, options: Options) -> Server {
    let mut run = engine::Options::new(any_port());
    (run.loops, run.workers, run.counters) = (2, 4, Arc::clone(&options.connections));
    engine::start(model, &run, files::factory(options).unwrap()).unwrap()
}

/// A server of the files of a folder, open to everyone.
pub(crate) fn serve_open(model: Model, root: &Path) -> Server {
    serve_files(model, Options::new(root, AccountsBackend::Open))
}

/// An answer as it came.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).next()
    }

    pub(crate) fn fields(&self, name: &str) -> impl Iterator<Item = &str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Asks on a connection of its own.
pub(crate) fn ask(to: SocketAddr, method: &str, target: &str, fields: &str) -> Answer {
    send(to, method, target, fields, "").unwrap()
}

pub(crate) fn get(to: SocketAddr, target: &str, fields: &str) -> Answer {
    ask(to, "GET", target, fields)
}

pub(crate) fn post(to: SocketAddr, target: &str, name: &str, password: &str) -> Answer {
    let body = serde_json::json!({ "name": name, "password": password }).to_string();
    send(to, "POST", target, "", &body).unwrap()
}

/// The header line that presents a name and a password.
pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:{password}")))
}

pub(crate) fn send(
    to: SocketAddr,
    method: &str,
    target: &str,
    fields: &str,
    body: &str,
) -> io::Result<Answer> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}{length}\r\n{body}"
    );
    exchange(to, request.as_bytes())
}

/// Sends exactly this, which is to end the connection, and gives the last answer.
pub(crate) fn raw(to: SocketAddr, request: &str) -> Answer {
    exchange(to, request.as_bytes()).unwrap()
}

fn exchange(to: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
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
    Ok(Answer { status, head, body: bytes[end + 4..].to_vec() })
}
