//! Every request of the accounts server, over real sockets, on each concurrency model.

use std::{thread, time::Duration};

use crate::support::{Response, ask, basic, options, post, serve};
use engine::Model;

const MODELS: [Model; 2] = [Model::Threads, Model::Epoll];

fn auth(to: std::net::SocketAddr, authorization: &str) -> Response {
    ask(to, "GET /auth", &format!("Authorization: {authorization}\r\n"), b"").unwrap()
}

#[test]
fn accounts_are_made_once_and_recognised() {
    for model in MODELS {
        let folder = tempfile::tempdir().unwrap();
        let server = serve(model, options(folder.path()));
        let to = server.local_addr();
        let made = post(to, "/accounts", "ann", "correct horse").unwrap();
        assert_eq!((made.status, made.json()["name"].as_str()), (201, Some("ann")), "{model:?}");
        assert_eq!(post(to, "/accounts", "ann", "another password").unwrap().status, 409);

        let session = post(to, "/sessions", "ann", "correct horse").unwrap();
        assert_eq!((session.status, session.json()["expires_in_s"].as_u64()), (200, Some(3600)));
        assert_eq!(session.field("cache-control"), Some("no-store"));
        let token = session.json()["token"].as_str().unwrap().to_owned();

        let by_token = auth(to, &format!("Bearer {token}"));
        assert_eq!((by_token.status, by_token.json()["name"].as_str()), (200, Some("ann")));
        assert!(by_token.json()["expires_in_s"].as_u64().unwrap() <= 3600);
        let by_password = auth(to, &basic("ann", "correct horse"));
        assert_eq!(by_password.body, "{\"name\":\"ann\",\"role\":\"user\",\"quota\":null}\n");
        assert_eq!(auth(to, &format!("Bearer {}", "A".repeat(43))).status, 401);
    }
}

#[test]
fn whoever_is_refused_learns_nothing_about_names() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Model::Epoll, options(folder.path()));
    let to = server.local_addr();
    assert_eq!(post(to, "/accounts", "ann", "correct horse").unwrap().status, 201);
    let wrong = post(to, "/sessions", "ann", "wrong horse").unwrap();
    let refused = [
        post(to, "/sessions", "bob", "wrong horse").unwrap(),
        post(to, "/sessions", "a:b", "wrong horse").unwrap(),
        post(to, "/sessions", "ann", "short").unwrap(),
        auth(to, &basic("ann", "wrong horse")),
        auth(to, &basic("bob", "wrong horse")),
        auth(to, "Digest x"),
        ask(to, "GET /auth", "", b"").unwrap(),
    ];
    assert_eq!(wrong.fields("www-authenticate").count(), 2);
    for answer in refused {
        assert_eq!((answer.status, &answer.body), (401, &wrong.body));
        assert_eq!(answer.head.lines().count(), wrong.head.lines().count());
    }
}

/// Time cannot be asserted, but equal work can.
#[test]
fn an_unknown_name_costs_a_hash_as_a_known_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Model::Epoll, options(folder.path()));
    let to = server.local_addr();
    let hashes = || {
        let metrics = ask(to, "GET /metrics", "", b"").unwrap().body;
        let line =
            metrics.lines().find(|line| line.starts_with("nstar_accounts_hash_seconds_count")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(post(to, "/accounts", "ann", "correct horse").unwrap().status, 201);
    for (name, password) in [("ann", "correct horse"), ("ann", "wrong horse"), ("bob", "wrong horse")] {
        let before = hashes();
        post(to, "/sessions", name, password).unwrap();
        assert_eq!(hashes(), before + 1, "{name}");
    }
}

#[test]
fn what_is_invalid_is_explained_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Model::Epoll, options(folder.path()));
    let to = server.local_addr();
    let send = |body: &str| ask(to, "POST /accounts", "", body.as_bytes()).unwrap();
    for (body, field) in [
        (r#"{"name":"a b","password":"correct horse"}"#, "name"),
        (r#"{"name":"..","password":"correct horse"}"#, "name"),
        (r#"{"password":"correct horse"}"#, "name"),
        (r#"{"name":"ann","password":"short"}"#, "password"),
        (r#"{"name":"ann"}"#, "password"),
        (r#"{"name":1,"password":"hush, a secret"}"#, "name"),
        (r#"{"name":"x","password":["hush"]}"#, "password"),
        (r#"{"name":"x","password":"hush, a secret","role":"admin"}"#, "role"),
    ] {
        let answer = send(body);
        assert_eq!((answer.status, answer.json()["field"].as_str()), (422, Some(field)), "{body}");
        assert!(answer.json()["reason"].is_string() && answer.json()["error"].is_string());
        assert!(!answer.body.contains("hush"), "a secret came back: {}", answer.body);
    }
    for body in ["", "{", "[]", r#""hush""#] {
        let answer = send(body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(!answer.body.contains("hush"), "a secret came back: {}", answer.body);
    }
    assert_eq!(send(&" ".repeat(9000)).status, 413);
}

#[test]
fn other_paths_and_methods_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Model::Threads, options(folder.path()));
    let to = server.local_addr();
    let plain = |method: &str, target: &str| ask(to, &format!("{method} {target}"), "", b"").unwrap();
    assert_eq!(plain("GET", "/healthz").status, 200);
    assert_eq!(plain("GET", "/nothing").status, 404);
    for (method, path, allowed) in [
        ("PUT", "/accounts", "GET, HEAD, POST"),
        ("POST", "/accounts/ann", "GET, HEAD, PATCH, DELETE"),
        ("GET", "/accounts/ann/password", "PUT"),
        ("GET", "/sessions", "POST, DELETE"),
        ("POST", "/audit", "GET, HEAD"),
    ] {
        let wrong_method = plain(method, path);
        assert_eq!((wrong_method.status, wrong_method.field("allow")), (405, Some(allowed)), "{path}");
    }
    let metrics = plain("GET", "/metrics").body;
    for line in ["{route=\"/healthz\",status=\"200\"} 1", "{route=\"other\",status=\"404\"} 1"] {
        assert!(metrics.contains(&format!("nstar_accounts_requests_total{line}")), "{metrics}");
    }
}

#[test]
fn a_session_ends_with_its_life() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.session_life = Duration::ZERO;
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    assert_eq!(post(to, "/accounts", "ann", "correct horse").unwrap().status, 201);
    let session = post(to, "/sessions", "ann", "correct horse").unwrap();
    let token = session.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(auth(to, &format!("Bearer {token}")).status, 401);
}

#[test]
fn a_full_hash_queue_is_busy_not_slow() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    (options.hashers, options.hash_queue) = (Some(1), Some(0));
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    // Whether requests meet is up to the scheduler, so they are sent until some do.
    let (mut made, mut busy) = (0, Vec::new());
    for round in 0..50 {
        let asking: Vec<_> = (0..8)
            .map(|n| thread::spawn(move || post(to, "/accounts", &format!("u{round}-{n}"), "correct horse")))
            .collect();
        for answer in asking.into_iter().map(|asked| asked.join().unwrap().unwrap()) {
            match answer.status {
                201 => made += 1,
                503 => busy.push(answer),
                other => panic!("{other}"),
            }
        }
        if !busy.is_empty() {
            break;
        }
    }
    assert!(made > 0, "whoever got a place was served");
    assert_eq!(busy.first().and_then(|answer| answer.field("retry-after")), Some("1"));
}
