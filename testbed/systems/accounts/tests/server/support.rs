//! A server on its own port, and a client that shows complete responses.

use std::{io, net::SocketAddr, path::Path};

use accounts::Options;
use base64::{Engine, engine::general_purpose::STANDARD};
use engine::{Model, Server};

pub(crate) use test_support::http::{Response, ask};

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

/// Posts a name and a password.
pub(crate) fn post(to: SocketAddr, target: &str, name: &str, password: &str) -> io::Result<Response> {
    let body = serde_json::json!({ "name": name, "password": password }).to_string();
    ask(to, &format!("POST {target}"), "", body.as_bytes())
}

pub(crate) const PASSWORD: &str = "correct horse";

/// A client of one server, with or without the administrator's token.
pub(crate) struct Client {
    pub(crate) to: SocketAddr,
    token: String,
}

impl Client {
    pub(crate) fn new(to: SocketAddr, admin_token: &Path) -> Self {
        Self { to, token: std::fs::read_to_string(admin_token).unwrap().trim().to_owned() }
    }

    pub(crate) fn ask(&self, line: &str, fields: &str, body: &str) -> Response {
        ask(self.to, line, fields, body.as_bytes()).unwrap()
    }

    /// Sends a request as the administrator.
    pub(crate) fn admin(&self, line: &str, body: &str) -> Response {
        self.ask(line, &bearer(&self.token), body)
    }

    pub(crate) fn post(&self, target: &str, name: &str, password: &str) -> Response {
        post(self.to, target, name, password).unwrap()
    }

    /// The response to a check of this credential.
    pub(crate) fn auth(&self, authorization: &str) -> Response {
        self.ask("GET /auth", &format!("Authorization: {authorization}\r\n"), "")
    }

    pub(crate) fn login(&self, name: &str, password: &str) -> Response {
        self.auth(&basic(name, password))
    }

    /// Creates an account with the usual password.
    pub(crate) fn make(&self, name: &str) {
        let made = self.post("/accounts", name, PASSWORD);
        assert_eq!(made.status, 201, "{}", made.body);
    }

    /// Starts a session and returns its token.
    pub(crate) fn begin(&self, name: &str) -> String {
        let session = self.post("/sessions", name, PASSWORD);
        assert_eq!(session.status, 200, "{}", session.body);
        session.json()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn patch(&self, name: &str, body: &str) -> Response {
        self.admin(&format!("PATCH /accounts/{name}"), body)
    }

    pub(crate) fn admin_token(&self) -> &str {
        &self.token
    }
}

pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// The header field with a token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
