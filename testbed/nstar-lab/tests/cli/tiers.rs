//! The two tiers of the file server: encrypted, and open only to each other.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
};

use crate::{
    common::program::Running,
    common::support::Place,
    serve::{ask, listening},
};

const BODY: &str = r#"{"name":"ada","password":"a long enough one"}"#;
/// ada:a long enough one
const BASIC: &str = "Authorization: Basic YWRhOmEgbG9uZyBlbm91Z2ggb25l\r\n";

/// A folder with a file to serve, and a certificate of this machine.
fn place() -> Place {
    let place = Place::beside_others();
    place.write("shared/hello.txt", "hello, reader");
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let pair = rcgen::generate_simple_self_signed(names).expect("a certificate");
    place.write("cert.pem", pair.cert.pem());
    place.write("key.pem", pair.signing_key.serialize_pem());
    place
}

fn start(place: &Place, words: &str) -> (Running, String) {
    let words = format!("serve {words} --listen 127.0.0.1:0");
    let mut running = place.nstar(words.split_whitespace().map(String::from)).start();
    let address = listening(&mut running);
    (running, address)
}

fn post(path: &str, fields: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}Content-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
}

fn get(address: &str, path: &str, fields: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

fn stop(running: Running) {
    running.signal("TERM");
    running.finish().exits(0);
}

#[test]
fn the_file_server_asks_the_accounts_server_in_private() {
    let place = place();
    for engine in ["epoll", "threads", "processes", "uring"] {
        let words = format!(
            "accounts --database {engine}.db --service-token-file {engine}.token --tls-cert cert.pem --tls-key key.pem --engine {engine}"
        );
        let (accounts, backend) = start(&place, &words);
        let words = format!(
            "files --root shared --accounts https://{backend} --accounts-ca cert.pem --accounts-token-file {engine}.token --engine {engine}"
        );
        let (files, address) = start(&place, &words);
        assert!(ask(&address, &post("/accounts", "")).starts_with("HTTP/1.1 201"), "{engine}");
        assert!(get(&address, "/files/hello.txt", BASIC).ends_with("hello, reader"), "{engine}");
        let wrong = "Authorization: Basic YWRhOm5vdCBpdA==\r\n";
        assert!(get(&address, "/files/hello.txt", wrong).starts_with("HTTP/1.1 401"), "{engine}");
        stop(files);
        stop(accounts);
    }
}

#[test]
fn an_accounts_server_with_a_token_answers_only_those_who_know_it() {
    let place = place();
    let (accounts, backend) = start(&place, "accounts --database a.db --service-token-file a.token");
    let token = std::fs::read_to_string(place.path("a.token")).expect("made at the first start");
    let token = token.trim();
    for fields in [String::new(), "Service-Token: x\r\n".into(), format!("Service-Token: {token}x\r\n")] {
        for request in [
            format!("GET /auth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{BASIC}{fields}\r\n"),
            post("/accounts", &fields),
        ] {
            let answer = ask(&backend, &request);
            assert!(
                answer.starts_with("HTTP/1.1 403") && answer.contains("--accounts-token-file"),
                "{answer}"
            );
            assert!(!answer.contains(token), "{answer}");
        }
    }
    let admin = std::fs::read_to_string(place.path("a.db.admin")).expect("made at the first start");
    let admin = format!("Authorization: Bearer {}\r\n", admin.trim());
    assert!(get(&backend, "/accounts", &admin).starts_with("HTTP/1.1 200"), "administrators are let in");
    assert!(get(&backend, "/healthz", "").starts_with("HTTP/1.1 200"));
    assert!(get(&backend, "/metrics", "").starts_with("HTTP/1.1 200"));
    let known = format!("Service-Token: {token}\r\n");
    assert!(ask(&backend, &post("/accounts", &known)).starts_with("HTTP/1.1 201"));
    assert!(get(&backend, "/auth", &format!("{BASIC}{known}")).starts_with("HTTP/1.1 200"));
    // A file server without the token says so in its log only.
    let (mut files, address) = start(&place, &format!("files --root shared --accounts http://{backend}"));
    let answer = get(&address, "/files/hello.txt", BASIC);
    assert!(answer.starts_with("HTTP/1.1 503") && !answer.contains("token"), "{answer}");
    files.wait_for_stderr("--accounts-token-file");
    assert!(ask(&address, &post("/accounts", "")).starts_with("HTTP/1.1 503"));
    stop(files);
    stop(accounts);
}

#[test]
fn without_a_flag_whoever_is_on_this_machine_may_ask_and_a_wrong_token_is_wrong() {
    let place = place();
    let (accounts, backend) = start(&place, "accounts --database a.db");
    assert!(ask(&backend, &post("/accounts", "")).starts_with("HTTP/1.1 201"));
    assert!(get(&backend, "/auth", BASIC).starts_with("HTTP/1.1 200"));
    let wrong = format!("{BASIC}Service-Token: x\r\n");
    assert!(get(&backend, "/auth", &wrong).starts_with("HTTP/1.1 403"));
    stop(accounts);
}

#[test]
fn an_accounts_server_that_others_can_reach_wants_its_token() {
    let place = place();
    let words = ["serve", "accounts", "--database", "a.db", "--listen", "0.0.0.0:0", "--user", "root"];
    let mut accounts = place.nstar(words).start();
    let address = listening(&mut accounts).replace("0.0.0.0", "127.0.0.1");
    assert!(get(&address, "/auth", BASIC).starts_with("HTTP/1.1 403"));
    accounts.signal("TERM");
    accounts.finish().exits(0).complains("a.db.service");
}

#[test]
fn a_file_server_that_cannot_trust_the_accounts_server_says_why() {
    let place = place();
    let (accounts, backend) = start(&place, "accounts --database a.db --tls-cert cert.pem --tls-key key.pem");
    let (mut files, address) = start(&place, &format!("files --root shared --accounts https://{backend}"));
    assert!(get(&address, "/files/hello.txt", BASIC).starts_with("HTTP/1.1 503"));
    let said = files.wait_for_stderr("--accounts-ca");
    assert!(said.contains("is not trusted here"), "{said}");
    stop(files);
    stop(accounts);
}

#[test]
fn an_accounts_server_over_tls_that_is_asked_without_is_away_and_the_log_says_why() {
    let place = place();
    let (accounts, backend) = start(&place, "accounts --database a.db --tls-cert cert.pem --tls-key key.pem");
    let (mut files, address) = start(&place, &format!("files --root shared --accounts http://{backend}"));
    assert!(ask(&address, &post("/accounts", "")).starts_with("HTTP/1.1 503"));
    assert!(get(&address, "/files/hello.txt", BASIC).starts_with("HTTP/1.1 503"));
    files.wait_for_stderr("give --accounts https://");
    stop(files);
    stop(accounts);
}

#[test]
fn mistakes_between_the_tiers_are_told_at_the_start() {
    let place = place();
    set_mode(&place.write("empty", ""), 0o600);
    for (flags, said) in [
        ("--accounts http://127.0.0.1:1 --accounts-ca cert.pem", "goes with --accounts https"),
        ("--accounts none --accounts-ca cert.pem", "goes with --accounts https"),
        ("--accounts none --accounts-token-file empty", "URL of an accounts server"),
        ("--accounts https://127.0.0.1:1 --accounts-ca none.pem", "none.pem cannot be read"),
        ("--accounts https://127.0.0.1:1 --accounts-ca key.pem", "no certificate in key.pem"),
        ("--accounts http://127.0.0.1:1 --accounts-token-file none", "none cannot be read"),
        ("--accounts http://127.0.0.1:1 --accounts-token-file empty", "it contains no token"),
        ("--accounts https://127.0.0.1:1/x", "a path"),
    ] {
        let words = format!("serve files --root shared --listen 127.0.0.1:0 {flags}");
        place.nstar(words.split_whitespace().map(String::from)).run().exits(2).complains(said);
    }
}

#[test]
fn a_service_token_that_others_may_read_or_change_is_refused() {
    let place = place();
    let token = place.write("token", "x".repeat(43));
    let refused = |said: &str| {
        let flags = "--accounts http://127.0.0.1:1 --accounts-token-file token";
        let words = format!("serve files --root shared --listen 127.0.0.1:0 {flags}");
        place.nstar(words.split(' ')).run().exits(2).complains(said);
    };
    set_mode(&token, 0o644);
    refused("chmod 600 token");
    set_mode(&token, 0o600);
    match chown(&token, Some(65_534), None) {
        Ok(()) => refused("another user"),
        Err(_) => eprintln!("SKIPPED: only root gives files away"),
    }
}

#[test]
fn passwords_that_would_cross_a_network_to_the_other_tier_are_told() {
    let place = place();
    // An address for documentation (RFC 5737), to which nothing is sent.
    for (accounts, told) in [("http://192.0.2.1:8081", true), ("http://127.0.0.1:1", false)] {
        let words = ["serve", "files", "--root", "shared", "--accounts", accounts];
        let words = words.into_iter().chain(["--listen", "127.0.0.1:0", "--until-stdin-closes"]);
        let outcome = place.nstar(words).run().exits(0);
        assert_eq!(outcome.stderr.contains("unencrypted"), told, "{outcome}");
    }
}
