//! Groups that are closed by keys: who is admitted, and who may change the registrations of an address.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use engine::{Model, Server, service::Factory};
use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Insecurity, Request, Response, Upstream},
    server::{HttpOptions, Secured},
};
use serde_json::{Value, json};
use share::{
    Content, Key, Members,
    client::{Client, RequestError},
    index::{self, Options},
    peer::{self, IndexChoice},
};
use tempfile::TempDir;
use tls::Identity;

use crate::support::{Index, Peer, file, get, serve, wait_until};

const ANNS: &str = "127.0.0.1:1001";

/// Everyone's keys.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn of(&self, name: &str) -> Key {
        Key::open(&self.folder.path().join(name)).unwrap()
    }

    /// The members as one of them lists them.
    fn members(&self, own: &str, others: &[&str]) -> Members {
        Members::new(self.of(own), others.iter().map(|name| self.of(name).public()))
    }

    /// A server, as this member connects to it.
    fn to(&self, own: &str, others: &[&str], at: SocketAddr) -> Upstream {
        Upstream::secure(at, self.members(own, others).trust().unwrap().peer("127.0.0.1").unwrap())
    }

    /// An index that lists Ann and Bob.
    fn index(&self, options: &Options) -> Server {
        let mut options = options.clone();
        options.members = Some(self.members("index", &["ann", "bob"]));
        self.secured("index", index::factory(options).unwrap())
    }

    /// A server with the key of this name.
    fn secured(&self, own: &str, factory: impl Factory) -> Server {
        let identity = Identity::of_key(self.of(own).pair(), None).unwrap();
        serve(Model::Epoll, Secured::new(factory, identity, HttpOptions::default(), Arc::default()))
    }

    /// A peer that lists these keys, one of them its index.
    fn peer(&self, own: &str, others: &[&str], index: &Server) -> Peer {
        let folder = tempfile::tempdir().unwrap();
        let members = self.members(own, others);
        let index = IndexChoice::Central(self.to(own, others, index.local_addr()));
        let mut options = peer::Options::new(folder.path(), index);
        options.trust = Some(members.trust().unwrap());
        options.members = Some(members);
        Peer::served(folder, &options, |factory| self.secured(own, factory))
    }

    /// The status and body of the response to a client with the key of this name.
    fn post(&self, own: &str, index: &Server, target: &str, body: &Value) -> (u16, Value) {
        let to = self.to(own, &["index"], index.local_addr());
        let body = body.to_string();
        let json = [("Content-Type", &b"application/json"[..])];
        let request = Request::new(Method::Post, target).headers(&json).body(body.as_bytes());
        let answer = BlockingClient::new(to, ClientOptions::default()).send(&request).unwrap();
        (answer.status(), serde_json::from_slice(answer.body()).unwrap_or(Value::Null))
    }

    /// Registers `name.txt` at Ann's address.
    fn register(&self, own: &str, index: &Server) -> (u16, Value) {
        let files = [file(&format!("{own}.txt"), "")];
        self.post(own, index, "/register", &json!({ "peer": ANNS, "files": files }))
    }

    fn leave(&self, own: &str, index: &Server) -> u16 {
        self.post(own, index, "/deregister", &json!({ "peer": ANNS, "all": true })).0
    }

    fn names(&self, index: &Server) -> Vec<String> {
        let to = self.to("ann", &["index"], index.local_addr());
        let files = ask(to, &format!("/files?peer={ANNS}")).unwrap();
        let files: Value = serde_json::from_slice(files.body()).unwrap();
        let files = files["files"].as_array().unwrap();
        files.iter().map(|file| file["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn ask(to: Upstream, target: &str) -> Result<Response, ClientError> {
    BlockingClient::new(to, ClientOptions::default()).send(&Request::new(Method::Get, target))
}

/// Runs with registrations that outlive the test; [`expire`] makes them expire.
fn lasting(options: &Options) -> Options {
    let mut options = options.clone();
    options.life = Duration::from_secs(3600);
    options
}

/// The second of two members cannot change anything at the address of the first, not even after a restart, until the first
/// is gone.
pub(crate) fn held(options: &Options) {
    let keys = Keys::new();
    let index = keys.index(&lasting(options));
    assert_eq!(keys.register("ann", &index).0, 200);
    refused(&keys, &index);
    assert_eq!(keys.post("ann", &index, "/renew", &json!({ "peer": ANNS })).0, 200, "the first goes on");
    drop(index);
    let index = keys.index(&lasting(options));
    refused(&keys, &index);
    assert_eq!(keys.register("ann", &index).0, 200);
    assert_eq!(keys.names(&index), ["ann.txt"]);

    assert_eq!(keys.leave("ann", &index), 204);
    assert_eq!(keys.register("bob", &index).0, 200, "free, as the first has left");
    assert_eq!(keys.register("ann", &index).0, 403);
    assert_eq!(keys.leave("index", &index), 204, "the owner of the index may change all");
    assert_eq!(keys.register("ann", &index).0, 200);
    drop(index);
    expire(&keys, options);
    let index = keys.index(&lasting(options));
    wait_until(|| keys.register("bob", &index).0 == 200);
    assert_eq!((keys.register("ann", &index).0, keys.names(&index)), (403, vec!["bob.txt".to_owned()]));
}

/// Bob cannot register, deregister or renew at Ann's address, however it is written.
fn refused(keys: &Keys, index: &Server) {
    let one = json!([{ "name": "ann.txt", "hash": file("ann.txt", "")["hash"] }]);
    for at in [ANNS, "[::ffff:127.0.0.1]:1001"] {
        for (target, body) in [
            ("/register", json!({ "peer": at, "files": [file("bob.txt", "")] })),
            ("/deregister", json!({ "peer": at, "files": one })),
            ("/deregister", json!({ "peer": at, "all": true })),
            ("/renew", json!({ "peer": at })),
        ] {
            let (status, said) = keys.post("bob", index, target, &body);
            let ann = keys.of("ann").public().to_string();
            assert_eq!(status, 403, "{target} {body}: {said}");
            assert!(said["error"].as_str().unwrap().contains(&ann), "{said}");
            assert!(said["hint"].as_str().unwrap().contains("--listen"), "{said}");
        }
    }
    assert_eq!(keys.names(index), ["ann.txt"]);
}

/// Leaves Ann only a moment.
fn expire(keys: &Keys, options: &Options) {
    let mut options = options.clone();
    options.life = Duration::from_secs(1);
    let index = keys.index(&options);
    assert_eq!(keys.post("ann", &index, "/renew", &json!({ "peer": ANNS })).0, 200);
}

/// Each server caches what it read of an address, and the other one changes it.
pub(crate) fn several_servers(options: &Options) {
    let keys = Keys::new();
    let [one, other] = [0, 1].map(|_| keys.index(&lasting(options)));
    assert_eq!(keys.register("ann", &one).0, 200);
    assert_eq!(keys.leave("ann", &other), 204);
    assert_eq!(keys.register("bob", &other).0, 200);
    assert_eq!(keys.register("bob", &one).0, 200);
    assert_eq!(keys.register("ann", &one).0, 403);
    assert_eq!(keys.leave("bob", &one), 204);
    assert_eq!(keys.register("bob", &one).0, 200);
    let gone = json!([{ "name": "bob.txt", "hash": file("bob.txt", "")["hash"] }]);
    let gone = keys.post("bob", &other, "/deregister", &json!({ "peer": ANNS, "files": gone }));
    assert_eq!((gone.0, keys.names(&one)), (204, Vec::new()));
}

#[test]
fn an_index_and_a_peer_answer_whom_they_list_and_nobody_else() {
    let keys = Keys::new();
    let index = keys.index(&Options::new(keys.folder.path().join("index.db")));
    assert_eq!(keys.post("bob", &index, "/renew", &json!({ "peer": ANNS })).0, 404);
    let ann = keys.peer("ann", &["bob", "index"], &index);
    let page = ask(keys.to("bob", &["ann"], ann.at), "/").unwrap();
    assert!(String::from_utf8_lossy(page.body()).contains("The owner's secret"));
    let absent = format!("/content/{}", Content::of(b"x"));
    let as_owner = |name| ask(keys.to(name, &["ann"], ann.at), "/files").unwrap().status();
    assert_eq!((as_owner("ann"), as_owner("bob")), (200, 403));
    for (at, server, target, status) in
        [(index.local_addr(), "index", "/search?name=a", 200), (ann.at, "ann", &absent, 404)]
    {
        let asked = |name: &str, target: &str| ask(keys.to(name, &[server], at), target).unwrap();
        assert_eq!(asked("bob", target).status(), status);
        let refused = asked("eve", target);
        let said = String::from_utf8_lossy(refused.body()).into_owned();
        let eve = keys.of("eve").public();
        assert_eq!(refused.status(), 403, "{said}");
        assert!(said.contains(&format!("the key {eve} is not on the list")), "{said}");
        assert!(said.contains(&format!("--allow {eve}")), "{said}");
    }
}

#[test]
fn who_lists_others_only_asks_neither_an_index_nor_a_peer() {
    let keys = Keys::new();
    let index = keys.index(&Options::new(keys.folder.path().join("index.db")));
    let ann = keys.peer("ann", &["bob", "index"], &index);
    for (at, server) in [(index.local_addr(), "index"), (ann.at, "ann")] {
        let asked = ask(keys.to("bob", &["bob", "eve"], at), "/healthz");
        let shown = keys.of(server).public();
        let Err(ClientError::Insecure { source: Insecurity::UnknownKey(key), .. }) = asked else {
            panic!("{asked:?}")
        };
        assert_eq!(key, shown);
    }
}

#[test]
fn what_speaks_tls_says_so_to_who_does_not() {
    let keys = Keys::new();
    let index = keys.index(&Options::new(keys.folder.path().join("index.db")));
    let ann = keys.peer("ann", &["bob", "index"], &index);
    for at in [index.local_addr(), ann.at] {
        let (status, said) = get(at, "/healthz");
        assert_eq!((status, &said["hint"]), (400, &json!("use https:// instead of http://")), "{said}");
    }
    let asked = Client::new(ann.at, None).unwrap().list();
    assert!(matches!(asked, Err(RequestError::WantsTls(at)) if at == ann.at), "{asked:?}");
    let plain = Peer::start(index.local_addr());
    wait_until(|| plain.health().contains("give --index https://"));
}

#[test]
fn what_speaks_no_tls_is_told_so_by_who_does() {
    let keys = Keys::new();
    let index = Index::start();
    let plain = Peer::start(index.at);
    let mut asking = Client::new(keys.to("bob", &["ann"], plain.at), None).unwrap();
    let asked = asking.list();
    assert!(matches!(asked, Err(RequestError::Insecure { why: Insecurity::NotTls, .. })), "{asked:?}");

    let folder = tempfile::tempdir().unwrap();
    let secure = IndexChoice::Central(keys.to("bob", &["index"], index.at));
    let options = peer::Options::new(folder.path(), secure);
    let bob = Peer::with(folder, Model::Epoll, &options);
    wait_until(|| {
        bob.health().contains("it does not speak TLS, as this peer does; start it with --tls-cert or --allow")
    });
}
