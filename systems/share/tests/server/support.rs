//! Servers on ports of their own, and a client that reads JSON.

use std::net::SocketAddr;

use engine::{Model, Server, service::Factory};
use http_io::{
    Method,
    client::{Caller, ClientOptions, Request, Response},
};
use serde_json::{Value, json};
use share::{Content, index};

/// Starts a server with two loops or workers.
pub(crate) fn serve(model: Model, factory: impl Factory) -> Server {
    let mut run = engine::Options::new("127.0.0.1:0".parse().unwrap());
    (run.loops, run.workers) = (2, 4);
    engine::start(model, &run, factory).unwrap()
}

/// An index server on a database.
pub(crate) fn index(model: Model, options: index::Options) -> Server {
    serve(model, index::factory(options).unwrap())
}

/// Asks on a connection of its own.
pub(crate) fn send(to: SocketAddr, request: &Request<'_>) -> Response {
    Caller::new(to, ClientOptions::default()).send(request).unwrap()
}

pub(crate) fn get(to: SocketAddr, target: &str) -> (u16, Value) {
    read(&send(to, &Request::new(Method::Get, target)))
}

pub(crate) fn post(to: SocketAddr, target: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let json = [("Content-Type", &b"application/json"[..])];
    read(&send(to, &Request::new(Method::Post, target).headers(&json).body(body.as_bytes())))
}

fn read(response: &Response) -> (u16, Value) {
    (response.status(), serde_json::from_slice(response.body()).unwrap_or(Value::Null))
}

/// A file as it is registered, whose content is its name and `more`.
pub(crate) fn file(name: &str, more: &str) -> Value {
    let content = format!("{name}{more}");
    json!({ "name": name, "hash": Content::of(content.as_bytes()), "size": content.len() })
}
