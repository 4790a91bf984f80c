//! A change of an account through one file server takes effect at once in another. For the models that fork, see the tests
//! of the whole program: `testbed/nstar-lab/tests/conformance/accounts.rs`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use engine::{Model, Server};
use files::{AccountsBackend, Options};

use crate::support::{MODELS, PASSWORD, any_port, basic, get, post, send, serve_accounts, serve_files};

const NEW: &str = "another horse";
/// Far less than the life of a cached credential, and only reached on failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two file servers with the same users, which cache credentials for an hour.
struct Two {
    one: Server,
    other: Server,
    folder: tempfile::TempDir,
    _accounts: Option<Server>,
}

impl Two {
    /// With an accounts server.
    fn remote(model: Model) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let accounts = serve_accounts(any_port(), folder.path());
        let backend = AccountsBackend::Remote(accounts.local_addr());
        Self::new(model, folder, &backend, Some(accounts))
    }

    /// Each has the accounts in its own process, from one database.
    fn local(model: Model) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backend = AccountsBackend::Local(folder.path().join("accounts.db"));
        Self::new(model, folder, &backend, None)
    }

    fn new(
        model: Model,
        folder: tempfile::TempDir,
        backend: &AccountsBackend,
        accounts: Option<Server>,
    ) -> Self {
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "hello").unwrap();
        let serve = || {
            let mut options = Options::new(&root, backend.clone());
            options.auth_cache_ttl = Duration::from_secs(3600);
            serve_files(model, options)
        };
        Self { one: serve(), other: serve(), folder, _accounts: accounts }
    }

    fn admin(&self) -> String {
        bearer(fs::read_to_string(self.folder.path().join("accounts.db.admin")).unwrap().trim())
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// A persistent connection, as browsers use.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// The status of the response to a request for the file.
    fn get(&mut self, fields: &str) -> u16 {
        write!(self.0.get_mut(), "GET /files/a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").unwrap();
        let lines: Vec<_> =
            self.0.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        lines[0][9..12].parse().unwrap()
    }

    fn until(&mut self, status: u16, fields: &str) {
        let since = Instant::now();
        while self.get(fields) != status {
            assert!(since.elapsed() < PATIENCE, "it is not {status}");
        }
    }
}

fn change_password(to: SocketAddr) {
    let body = serde_json::json!({ "password": NEW, "old_password": PASSWORD }).to_string();
    let changed = send(to, "PUT", "/accounts/ann/password", "", &body).unwrap();
    assert_eq!(changed.status, 204, "{}", changed.body);
}

fn changed_password(model: Model, two: &Two) {
    let (one, other) = (two.one.local_addr(), two.other.local_addr());
    assert_eq!(post(one, "/accounts", "ann", PASSWORD).status, 201);
    let token = post(one, "/sessions", "ann", PASSWORD).json()["token"].as_str().unwrap().to_owned();
    let (old, session) = (basic("ann", PASSWORD), bearer(&token));
    let mut here = Kept::open(one);
    let mut there = Kept::open(other);
    for credential in [&old, &session] {
        for kept in [&mut here, &mut there] {
            assert_eq!((kept.get(credential), kept.get(credential)), (200, 200), "{model:?}");
        }
    }
    change_password(one);
    assert_eq!(here.get(&old), 401, "{model:?}: where it was changed, from the next request on");
    assert_eq!(here.get(&session), 401, "{model:?}");
    there.until(401, &old);
    assert_eq!(there.get(&session), 401, "{model:?}");
    assert_eq!(there.get(&basic("ann", NEW)), 200, "{model:?}");
    assert_eq!(get(other, "/files/a", &basic("ann", NEW)).status, 200, "{model:?}");
}

#[test]
fn a_changed_password_is_refused_everywhere_with_an_accounts_server() {
    for model in MODELS {
        changed_password(model, &Two::remote(model));
    }
}

#[test]
fn a_changed_password_is_refused_everywhere_with_accounts_in_each_process() {
    for model in MODELS {
        changed_password(model, &Two::local(model));
    }
}

#[test]
fn disabled_accounts_logouts_and_roles_take_effect_everywhere() {
    let two = Two::remote(Model::Epoll);
    let (one, other) = (two.one.local_addr(), two.other.local_addr());
    for name in ["ann", "bob"] {
        assert_eq!(post(one, "/accounts", name, PASSWORD).status, 201);
    }
    let patch = |name: &str, body: &str| {
        let changed = send(one, "PATCH", &format!("/accounts/{name}"), &two.admin(), body).unwrap();
        assert_eq!(changed.status, 200, "{}", changed.body);
    };
    let mut there = Kept::open(other);
    let (anns, bobs) = (basic("ann", PASSWORD), basic("bob", PASSWORD));
    assert_eq!((there.get(&anns), there.get(&bobs)), (200, 200));
    patch("ann", r#"{"disabled": true}"#);
    there.until(401, &anns);
    assert_eq!(there.get(&bobs), 200);

    let token = post(one, "/sessions", "bob", PASSWORD).json()["token"].as_str().unwrap().to_owned();
    assert_eq!(there.get(&bearer(&token)), 200);
    assert_eq!(send(one, "DELETE", "/sessions", &bearer(&token), "").unwrap().status, 204);
    there.until(401, &bearer(&token));

    assert_eq!(get(other, "/me", &bobs).json()["role"], "user");
    patch("bob", r#"{"role": "admin"}"#);
    let since = Instant::now();
    while get(other, "/me", &bobs).json()["role"] != "admin" {
        assert!(since.elapsed() < PATIENCE, "his role is not known");
    }
    assert_eq!(get(other, "/accounts?limit=1", &bobs).json()["next_after"], "ann", "and it counts");
    assert_eq!(send(other, "HEAD", "/audit", &bobs, "").unwrap().bytes, b"");
}

/// A client cannot claim to be another one.
#[test]
fn guessing_through_a_file_server_is_slowed_down() {
    for two in [Two::remote(Model::Epoll), Two::local(Model::Epoll)] {
        let one = two.one.local_addr();
        assert_eq!(post(one, "/accounts", "ann", PASSWORD).status, 201);
        let guess = |n: u8| {
            let fields = format!("X-Forwarded-For: 192.0.2.{n}\r\n{}", basic("ann", "wrong horse"));
            get(one, "/files/a", &fields)
        };
        let slowed = (0..12).map(guess).find(|answer| answer.status != 401).unwrap();
        assert_eq!(slowed.status, 429, "{}", slowed.body);
        assert!(slowed.field("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        let metrics = get(one, "/metrics", "").body;
        assert!(metrics.contains("credential_checks_total{outcome=\"slowed\"} 1"), "{metrics}");
    }
}

#[test]
fn the_feed_is_for_file_servers_only() {
    let two = Two::local(Model::Epoll);
    assert_eq!(get(two.one.local_addr(), "/revocations", "").status, 404);
    assert_eq!(get(two.one.local_addr(), "/auth", "").status, 404);
}
