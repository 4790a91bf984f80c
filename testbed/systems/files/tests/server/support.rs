//! Servers on their own ports, and a client that shows complete responses.

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use engine::{Model, Server};
use files::{AccountsBackend, Options};

pub(crate) use test_support::http::Response;
use test_support::http::{self, exchange};

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

/// A server of the files in a folder, open to everyone.
pub(crate) fn serve_open(model: Model, root: &Path) -> Server {
    serve_files(model, Options::new(root, AccountsBackend::Open))
}

/// Sends a request on a new connection.
pub(crate) fn ask(to: SocketAddr, method: &str, target: &str, fields: &str) -> Response {
    send(to, method, target, fields, "").unwrap()
}

pub(crate) fn get(to: SocketAddr, target: &str, fields: &str) -> Response {
    ask(to, "GET", target, fields)
}

pub(crate) fn post(to: SocketAddr, target: &str, name: &str, password: &str) -> Response {
    let body = serde_json::json!({ "name": name, "password": password }).to_string();
    send(to, "POST", target, "", &body).unwrap()
}

/// The header field with a name and a password.
pub(crate) fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:{password}")))
}

pub(crate) fn send(
    to: SocketAddr,
    method: &str,
    target: &str,
    fields: &str,
    body: &str,
) -> io::Result<Response> {
    http::ask(to, &format!("{method} {target}"), fields, body.as_bytes())
}

/// Sends exactly these bytes, which must close the connection, and returns the last response.
pub(crate) fn raw(to: SocketAddr, request: &str) -> Response {
    exchange(to, request.as_bytes()).unwrap()
}
