//! A pool with more connections than workers: what its clients see under each policy.

use engine::Model;
use serde_json::Value;

use crate::{
    client::{Client, get},
    content::content,
    server::{Served, Setup},
};

/// One worker, held by the first connection returned, and a queue of one, filled by the second.
fn full(policy: &str) -> (Served, Client, Client) {
    let flags = format!("--workers 1 --queue 1 --overload {policy}");
    let server = Setup::files(Model::Pool, &[1_000]).with(&flags).start();
    let mut held = server.connect();
    // Within a request, so that it is not closed in favour of waiting ones.
    held.send(get("/files/1000", "") + "GET /files/1000 HTTP/1.1\r\n");
    assert_eq!(held.response().status, 200);
    let mut waiting = server.connect();
    waiting.send(get("/files/1000", "Connection: close\r\n"));
    (server, held, waiting)
}

/// Ends the request that occupies the worker. All waiting connections are then served, and later ones too.
fn release(server: Served, mut held: Client, mut waiting: Client, then: impl FnOnce()) {
    held.send("Host: localhost\r\nConnection: close\r\n\r\n");
    for client in [&mut held, &mut waiting] {
        assert!(client.response().body == content(1_000));
    }
    drop((held, waiting));
    then();
    server.assert_well();
    server.stop();
}

#[test]
fn an_http_client_reads_the_503_that_says_when_to_come_back() {
    let (server, held, waiting) = full("503");
    // More than the server lingers for, and each has sent bytes that are never read: no reset may destroy the response.
    for _ in 0..300 {
        let mut refused = server.connect();
        // The response may have arrived already, and the other side may be closed.
        let _ = refused.try_send([get("/files/1000", "").as_bytes(), &[b'x'; 10_000]].concat());
        let answer = refused.response();
        assert_eq!(answer.status, 503, "{}", answer.head);
        assert!(
            answer.field("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()),
            "{}",
            answer.head
        );
        assert_eq!(refused.rest(), b"");
    }
    release(server, held, waiting, || ());
}

#[test]
fn a_load_tells_that_it_was_turned_away() {
    let (server, held, waiting) = full("503");
    let url = format!("http://{}/files/1000", server.address);
    let load = server.folder.nstar(["load", &url, "-c", "10", "-d", "500ms", "--json"]).run().exits(1);
    assert!(errors(&load.stdout).contains("turned away by a busy server"), "{load}");
    release(server, held, waiting, || ());
}

fn errors(run: &str) -> String {
    let run: Value = serde_json::from_str(run).unwrap_or_default();
    run["warnings"].to_string()
}

#[test]
fn with_the_backlog_everyone_is_served_in_the_end() {
    let (server, held, waiting) = full("backlog");
    let url = format!("http://{}/files/1000", server.address);
    let words =
        ["load", &url, "-c", "50", "-n", "5", "--timeout", "60s", "--connections", "per-request", "--json"];
    let load = server.folder.nstar(words).start();
    release(server, held, waiting, || {
        let outcome = load.finish();
        assert!(!errors(&outcome.stdout).contains("\"errors\""), "{outcome}");
    });
}
