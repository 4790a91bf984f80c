//! The index server: registrations are found until their peers leave or die.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use engine::Model;
use http_io::{Method, client::Request};
use serde_json::{Value, json};
use share::index::Options;
use store::Database;
use tempfile::TempDir;
use test_support::database_servers::{DatabaseServer, Kind};

use crate::{
    keys, migration,
    support::{PATIENCE, file, get, index, post, send, wait_until},
};

const ANN: &str = "127.0.0.1:1001";
const BOB: &str = "127.0.0.1:1002";

type Test = (&'static str, fn(&Options));

/// All tests that each run on a new database.
const ALL: &[Test] = &[
    ("registered files are found by name, by words and by content", found),
    ("a file of several peers is one result, different files are several", several),
    ("a peer that leaves or dies is forgotten", forgotten),
    ("everything survives a restart", kept),
    ("names that look the same are distinguished", alike),
    ("an address belongs to the key that registered it first", keys::held),
    ("several servers on one database agree on who holds an address", keys::several_servers),
    ("a database of the previous version is migrated", migration::version_before),
];

fn hold(new: impl Fn(&TempDir) -> Database) {
    for (name, test) in ALL {
        eprintln!("{name}");
        let folder = tempfile::tempdir().unwrap();
        test(&Options::new(new(&folder)));
    }
}

#[test]
fn all_holds_on_sqlite() {
    hold(|folder| Database::Sqlite(folder.path().join("index.db")));
}

#[test]
fn all_holds_on_mariadb() {
    let Some(server) = DatabaseServer::start(Kind::Mariadb) else { return };
    hold(|_| server.database());
}

#[test]
fn all_holds_on_postgresql() {
    let Some(server) = DatabaseServer::start(Kind::Postgres) else { return };
    hold(|_| server.database());
}

#[test]
fn all_concurrency_models_can_run_it() {
    for &model in Model::ALL {
        let folder = tempfile::tempdir().unwrap();
        let server = index(model, Options::new(folder.path().join("index.db")));
        let at = server.local_addr();
        register(at, ANN, &[file("a.txt", "")]);
        assert_eq!(names(&get(at, "/search?name=a.txt").1), ["a.txt"], "{model}");
        // Any process may answer, with the counts of all of them.
        let metrics = send(at, &Request::new(Method::Get, "/metrics"));
        let metrics = String::from_utf8_lossy(metrics.body());
        for line in [
            "{route=\"/register\",status=\"200\"} 1",
            "{route=\"/search\",status=\"200\"} 1",
            "files_registered_total 1",
        ] {
            assert!(metrics.contains(line), "{model}: {line} is missing in:\n{metrics}");
        }
    }
}

fn register(at: SocketAddr, peer: &str, files: &[Value]) {
    let (status, said) = post(at, "/register", &json!({ "peer": peer, "files": files }));
    assert_eq!((status, &said["registered"]), (200, &json!(files.len())), "{said}");
}

fn names(answer: &Value) -> Vec<&str> {
    answer["found"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect()
}

fn found(options: &Options) {
    let server = index(Model::Epoll, options.clone());
    let at = server.local_addr();
    let report = file("Annual Report 2026.pdf", "");
    register(at, ANN, &[report.clone(), file("report.txt", ""), file("größe.txt", "")]);

    let whole = get(at, "/search?name=Annual%20Report%202026.pdf").1;
    assert_eq!(whole["found"][0]["hash"], report["hash"]);
    assert_eq!(whole["found"][0]["size"], report["size"]);
    assert_eq!(whole["found"][0]["peers"], json!([ANN]));
    assert!(names(&get(at, "/search?name=annual%20report%202026.pdf").1).is_empty(), "a name is exact");
    assert_eq!(names(&get(at, "/search?words=REPORT").1), ["Annual Report 2026.pdf", "report.txt"]);
    assert_eq!(names(&get(at, "/search?words=2026+report+pdf+annual").1), ["Annual Report 2026.pdf"]);
    assert_eq!(names(&get(at, "/search?words=gr%C3%B6%C3%9Fe").1), ["größe.txt"]);
    let hash = report["hash"].as_str().unwrap();
    assert_eq!(names(&get(at, &format!("/search?hash={hash}")).1), ["Annual Report 2026.pdf"]);
    let (_, cut) = get(at, "/search?words=report&limit=1");
    assert_eq!((names(&cut).len(), &cut["truncated"]), (1, &json!(true)));
}

fn several(options: &Options) {
    let server = index(Model::Epoll, options.clone());
    let at = server.local_addr();
    register(at, ANN, &[file("a.txt", "1"), file("a.txt", "2")]);
    register(at, BOB, &[file("a.txt", "1")]);
    register(at, BOB, &[file("a.txt", "1"), file("b.txt", "")]);
    let (_, answer) = get(at, "/search?name=a.txt");
    let mut peers: Vec<_> = answer["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["peers"].as_array().unwrap().len())
        .collect();
    peers.sort_unstable();
    assert_eq!(peers, [1, 2]);
    let (_, listed) = get(at, &format!("/files?peer={BOB}"));
    assert_eq!(listed["files"].as_array().unwrap().len(), 2, "{listed}");
    let (_, known) = get(at, "/peers");
    let counts: Vec<_> = known["peers"].as_array().unwrap().iter().map(|peer| &peer["files"]).collect();
    assert_eq!(counts, [2, 2]);
}

fn forgotten(options: &Options) {
    // First what peers take away themselves, however slow the machine is.
    let mut lasting = options.clone();
    lasting.life = Duration::from_secs(3600);
    let server = index(Model::Epoll, lasting);
    let at = server.local_addr();
    register(at, ANN, &[file("a.txt", ""), file("b.txt", "")]);
    register(at, BOB, &[file("a.txt", "")]);

    assert_eq!(
        post(
            at,
            "/deregister",
            &json!({ "peer": ANN, "files": [{"name": "b.txt", "hash": file("b.txt", "")["hash"]}] })
        )
        .0,
        204
    );
    assert!(names(&get(at, "/search?words=b").1).is_empty());
    assert_eq!(post(at, "/deregister", &json!({ "peer": BOB, "all": true })).0, 204);
    assert_eq!(get(at, "/search?name=a.txt").1["found"][0]["peers"], json!([ANN]));
    assert_eq!(post(at, "/renew", &json!({ "peer": BOB })).0, 404);
    assert_eq!(post(at, "/deregister", &json!({ "peer": ANN, "all": true })).0, 204);
    drop(server);

    let mut brief = options.clone();
    brief.life = Duration::from_secs(1);
    let server = index(Model::Epoll, brief);
    let at = server.local_addr();
    register(at, ANN, &[file("a.txt", "")]);
    let (patience, mut registered) = (Instant::now() + PATIENCE, Instant::now());
    loop {
        if post(at, "/renew", &json!({ "peer": ANN })).0 != 200 {
            // The machine stood still for a second, so the renewal came too late.
            register(at, ANN, &[file("a.txt", "")]);
            registered = Instant::now();
        }
        let found = get(at, "/search?name=a.txt").1;
        if registered.elapsed() > Duration::from_millis(1500) && names(&found) == ["a.txt"] {
            break;
        }
        assert!(Instant::now() < patience, "renewed, and forgotten");
        thread::sleep(Duration::from_millis(50));
    }
    wait_until(|| names(&get(at, "/search?name=a.txt").1).is_empty());
    assert_eq!(post(at, "/renew", &json!({ "peer": ANN })).0, 404, "too late");
    // Once more where the machine stood still for a second, and this is forgotten already.
    wait_until(|| {
        register(at, ANN, &[file("c.txt", "")]);
        let found = get(at, "/search?words=txt").1;
        assert!(!names(&found).contains(&"a.txt"), "what was forgotten does not come back");
        names(&found) == ["c.txt"]
    });
}

fn kept(options: &Options) {
    let first = index(Model::Epoll, options.clone());
    register(first.local_addr(), ANN, &[file("a.txt", "")]);
    drop(first);
    let second = index(Model::Epoll, options.clone());
    assert_eq!(names(&get(second.local_addr(), "/search?name=a.txt").1), ["a.txt"]);
    assert_eq!(post(second.local_addr(), "/renew", &json!({ "peer": ANN })).0, 200);
}

fn alike(options: &Options) {
    let server = index(Model::Epoll, options.clone());
    let at = server.local_addr();
    let alike = ["a.txt", "A.txt", "a.txt ", "\u{e4}", "a\u{308}", "%", "'; DROP TABLE terms; --"];
    register(at, ANN, &alike.map(|name| file(name, "")));
    let (_, listed) = get(at, &format!("/files?peer={ANN}"));
    assert_eq!(listed["files"].as_array().unwrap().len(), alike.len(), "{listed}");
    assert_eq!(names(&get(at, "/search?name=a.txt+").1), ["a.txt "]);
    assert_eq!(names(&get(at, "/search?name=%25").1), ["%"]);
}

#[test]
fn bad_input_is_told_by_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let server = index(Model::Epoll, Options::new(folder.path().join("index.db")));
    let at = server.local_addr();
    let registration =
        json!({ "peer": ANN, "files": [file("a.txt", ""), {"name": "../x", "hash": "", "size": 1}] });
    let (status, said) = post(at, "/register", &registration);
    assert_eq!((status, &said["field"]), (422, &json!("files[1].name")), "{said}");
    for (target, status) in [
        ("/search", 422),
        ("/search?name=a&words=b", 422),
        ("/search?hash=x", 422),
        ("/search?name=a&limit=0", 422),
        ("/search?nmae=a", 422),
        ("/files?peer=nobody", 422),
        ("/files", 422),
        ("/register", 405),
        ("/none", 404),
    ] {
        assert_eq!(get(at, target).0, status, "{target}");
    }
    assert_eq!(post(at, "/register", &json!([])).0, 400);
    assert!(names(&get(at, "/search?words=txt").1).is_empty(), "nothing of a refused batch is kept");
}

#[test]
fn only_members_of_a_group_are_answered() {
    use http_io::{Method, client::Request};
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(folder.path().join("index.db"));
    options.secret = Some(folder.path().join("secret"));
    let server = index(Model::Epoll, options);
    let at = server.local_addr();
    assert_eq!(get(at, "/search?name=a").0, 401);
    assert_eq!(get(at, "/healthz").0, 200);
    let secret = std::fs::read_to_string(folder.path().join("secret")).unwrap();
    for (token, status) in [(secret.trim(), 200), ("x", 401), (&secret[..10], 401)] {
        let bearer = format!("Bearer {token}");
        let request = Request::new(Method::Get, "/search?name=a");
        assert_eq!(send(at, &request.headers(&[("Authorization", bearer.as_bytes())])).status(), status);
    }
}

#[test]
fn many_files_come_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let server = index(Model::Epoll, Options::new(folder.path().join("index.db")));
    let at = server.local_addr();
    let files: Vec<_> = (0..10_000).map(|number| file(&format!("file {number:05}.bin"), "")).collect();
    let started = Instant::now();
    for batch in files.chunks(1000) {
        register(at, ANN, batch);
    }
    eprintln!("{:.0} files/s registered", 10_000.0 / started.elapsed().as_secs_f64());
    assert_eq!(get(at, "/peers").1["peers"][0]["files"], 10_000);
    assert_eq!(names(&get(at, "/search?words=00077").1), ["file 00077.bin"]);
}

/// Another site points a name of its own to this machine, or makes a browser send a request.
#[test]
fn an_open_index_answers_to_no_name_of_others_and_to_no_other_site() {
    let folder = tempfile::tempdir().unwrap();
    let server = index(Model::Epoll, Options::new(Database::Sqlite(folder.path().join("index.db"))));
    let body = json!({ "peer": ANN, "files": [] }).to_string();
    for (host, fields, status) in [
        ("127.0.0.1:8084", "", 200),
        ("localhost", "Origin: http://localhost\r\n", 200),
        ("evil.example", "Origin: http://evil.example\r\n", 421),
        ("localhost", "Origin: http://evil.example\r\n", 403),
        ("localhost", "Sec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let length = body.len();
        let text = format!(
            "POST /register HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{fields}Connection: close\r\n\r\n{body}"
        );
        let answer = test_support::http::exchange(server.local_addr(), text.as_bytes()).unwrap();
        assert_eq!(answer.status, status, "{host} {fields}: {}", answer.body);
    }
}
