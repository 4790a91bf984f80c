//! A server on a port of its own, and a client that shows everything it was answered.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use accounts::Options;
use base64::{Engine, engine::general_purpose::STANDARD};
use engine::{Model, Server};

/// Starts an accounts server with two loops.
pub(crate) fn serve(model: Model, options: Options) -> Server {
    let mut run = engine::Options::new("127.0.0.1:0".parse().unwrap());
    (run.loops, run.workers) = (2, 2);
    engine::start(model, &run, accounts::factory(options).unwrap()).unwrap()
}

/// Options that keep the tests light.
pub(crate) fn options(folder: &Path) -> Options {
    Options::new(folder.join("accounts.db"))
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
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

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Asks on a connection of its own.
pub(crate) fn ask(
    to: SocketAddr,
    method: &str,
    target: &str,
    fields: &str,
    body: &str,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.get(9..12).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

/// Posts a name and a password.
pub(crate) fn post(to: SocketAddr, target: &str, name: &str, password: &str) -> io::Result<Answer> {
    let body = serde_json::json!({ "name": name, "password": password }).to_string();
    ask(to, "POST", target, "", &body)
}

pub(crate) const PASSWORD: &str = "correct horse";

/// Asks one server, by itself and as its administrator.
pub(crate) struct Client {
    pub(crate) to: SocketAddr,
    token: String,
}

impl Client {
    pub(crate) fn new(to: SocketAddr, admin_token: &Path) -> Self {
        Self { to, token: std::fs::read_to_string(admin_token).unwrap().trim().to_owned() }
    }

    pub(crate) fn ask(&self, line: &str, fields: &str, body: &str) -> Answer {
        let (method, target) = line.split_once(' ').unwrap();
        ask(self.to, method, target, fields, body).unwrap()
    }

    /// As the administrator.
    pub(crate) fn admin(&self, line: &str, body: &str) -> Answer {
        self.ask(line, &bearer(&self.token), body)
    }

    pub(crate) fn post(&self, target: &str, name: &str, password: &str) -> Answer {
        post(self.to, target, name, password).unwrap()
    }

    /// Whose credential this is.
    pub(crate) fn auth(&self, authorization: &str) -> Answer {
        self.ask("GET /auth", &format!("Authorization: {authorization}\r\n"), "")
    }

    pub(crate) fn login(&self, name: &str, password: &str) -> Answer {
        self.auth(&basic(name, password))
    }

    /// Makes an account with the usual password.
    pub(crate) fn make(&self, name: &str) {
        let made = self.post("/accounts", name, PASSWORD);
        assert_eq!(made.status, 201, "{}", made.body);
    }

    /// Begins a session; returns its token.
    pub(crate) fn begin(&self, name: &str) -> String {
        let session = self.post("/sessions", name, PASSWORD);
        assert_eq!(session.status, 200, "{}", session.body);
        session.json()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn patch(&self, name: &str, body: &str) -> Answer {
        self.admin(&format!("PATCH /accounts/{name}"), body)
    }

    pub(crate) fn admin_token(&self) -> &str {
        &self.token
    }
}

pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// The header line that presents a token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
