//! Servers on ports of their own, and a client that parses JSON.

use std::{
    cell::Cell,
    net::SocketAddr,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use engine::{EngineError, Model, Server, service::Factory};
use http_io::{
    Method,
    client::{BlockingClient, ClientOptions, Request, Response},
};
use serde_json::{Value, json};
use share::{Content, index, peer};
use tempfile::TempDir;

use test_support::http::ask;

/// Starts a server with two loops or workers.
pub(crate) fn serve(model: Model, factory: impl Factory) -> Server {
    let mut run = engine::Options::new("127.0.0.1:0".parse().unwrap());
    (run.loops, run.workers) = (2, 4);
    engine::start(model, &run, factory).unwrap()
}

/// Starts a server at a port that was free a moment ago. The system may have given it to another test meanwhile, and a
/// process that another test starts holds copies of all sockets until it runs its program.
pub(crate) fn serve_at<F: Factory>(at: SocketAddr, factory: impl Fn() -> F) -> Server {
    let patience = Instant::now() + PATIENCE;
    loop {
        match engine::start(Model::Epoll, &engine::Options::new(at), factory()) {
            Err(EngineError::AddressInUse { .. }) if Instant::now() < patience => {
                thread::sleep(Duration::from_millis(20));
            }
            started => return started.unwrap(),
        }
    }
}

/// An index server on a database.
pub(crate) fn index(model: Model, options: index::Options) -> Server {
    serve(model, index::factory(options).unwrap())
}

/// Sends a request on a connection of its own.
pub(crate) fn send(to: SocketAddr, request: &Request<'_>) -> Response {
    BlockingClient::new(to, ClientOptions::default()).send(request).unwrap()
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

/// A file to register, whose content is its name and `more`.
pub(crate) fn file(name: &str, more: &str) -> Value {
    let content = format!("{name}{more}");
    json!({ "name": name, "hash": Content::of(content.as_bytes()), "size": content.len() })
}

/// A generous bound: reached only by what would never happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a generously long time.
pub(crate) fn wait_until(holds: impl Fn() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < patience, "it never came to be");
        thread::sleep(Duration::from_millis(20));
    }
}

/// An index server, and the folder with its files.
pub(crate) struct Index {
    pub(crate) at: SocketAddr,
    _server: Server,
    _folder: TempDir,
}

impl Index {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = index(Model::Epoll, index::Options::new(folder.path().join("index.db")));
        Self { at: server.local_addr(), _server: server, _folder: folder }
    }
}

/// A peer with a folder of its own.
pub(crate) struct Peer {
    pub(crate) at: SocketAddr,
    folder: TempDir,
    factory: peer::PeerFactory,
    server: Server,
}

impl Peer {
    pub(crate) fn start(index: SocketAddr) -> Self {
        Self::on(tempfile::tempdir().unwrap(), Model::Epoll, index)
    }

    pub(crate) fn on(folder: TempDir, model: Model, index: SocketAddr) -> Self {
        let options = peer::Options::new(folder.path(), index);
        Self::with(folder, model, &options)
    }

    /// A peer with other options, on the same folder.
    pub(crate) fn with(folder: TempDir, model: Model, options: &peer::Options) -> Self {
        Self::served(folder, options, |factory| serve(model, factory))
    }

    /// A peer on the same folder, with its server started by `start`.
    pub(crate) fn served(
        folder: TempDir,
        options: &peer::Options,
        start: impl FnOnce(peer::PeerFactory) -> Server,
    ) -> Self {
        let factory = peer::factory(options).unwrap();
        let server = start(factory.clone());
        factory.begin(server.local_addr()).unwrap();
        Self { at: server.local_addr(), folder, factory, server }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Stops the peer in the ordinary way, and returns its folder.
    pub(crate) fn end(self) -> TempDir {
        self.server.drain(Duration::ZERO);
        self.server.join();
        self.factory.end();
        self.folder
    }

    /// The text of `/healthz`.
    pub(crate) fn health(&self) -> String {
        ask(self.at, "GET /healthz", "", b"").unwrap().body
    }

    /// Searches through this peer, and returns the files found.
    pub(crate) fn search(&self, query: &str) -> Vec<Value> {
        let (status, answer) = get(self.at, &format!("/search?{query}"));
        if status == 200 { answer["found"].as_array().unwrap().clone() } else { Vec::new() }
    }

    /// Waits until this peer finds a file, and returns its hash.
    pub(crate) fn find(&self, name: &str) -> String {
        let hash = Cell::new(None);
        wait_until(|| {
            let found = self.search(&format!("name={name}"));
            hash.set(found.first().map(|found| found["hash"].as_str().unwrap().to_owned()));
            !found.is_empty()
        });
        hash.take().unwrap()
    }

    /// How many peers have the first file that this peer finds; none where it finds nothing now.
    pub(crate) fn sharers(&self, query: &str) -> usize {
        self.search(query).first().map_or(0, |found| found["peers"].as_array().unwrap().len())
    }

    /// Downloads content, and returns the final progress.
    pub(crate) fn obtain(&self, hash: &str) -> Value {
        let (status, said) = post(self.at, "/obtain", &json!({ "hash": hash }));
        assert_eq!(status, 202, "{said}");
        wait_until(|| get(self.at, &format!("/obtain/{hash}")).1["state"] != "running");
        get(self.at, &format!("/obtain/{hash}")).1
    }
}

/// Bytes that do not repeat soon.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
