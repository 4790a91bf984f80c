//! A server that stops finishes the requests in flight; when one is killed, its clients notice.

use std::io::Write;

use serde_json::Value;

use crate::{
    client::{get, upload, upload_head},
    content::{LARGE, content, receipt},
    models::every_model,
    program::{Folder, Outcome},
    server::{Setup, eventually},
};

#[test]
fn downloads_under_way_are_finished_and_nobody_new_is_served() {
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).start();
        let large = get(&format!("/files/{LARGE}"), "");
        let (mut idle, mut fresh, mut half) = (server.connect(), server.connect(), server.connect());
        assert_eq!(idle.get("/files/1000", "").status, 200, "{model}");
        half.send(get("/files/1000", ""));
        half.send("GET /files/1000 HTTP/1.1\r\nHo");
        assert_eq!(half.response().status, 200, "{model}");
        let mut reading: Vec<_> = (0..5).map(|_| server.connect()).collect();
        for client in &mut reading {
            client.send(&large);
            assert_eq!(client.head().status, 200, "{model}");
        }
        server.signal("TERM");
        eventually(&format!("{model}: new connections are refused"), || server.try_connect().is_err());
        assert_eq!(idle.until_broken(), b"", "{model}: an idle connection ends");
        assert_eq!(fresh.until_broken(), b"", "{model}: a fresh connection ends");
        half.send("st: localhost\r\n\r\n");
        assert_eq!(half.response().status, 200, "{model}: a request half received is answered");
        for mut client in reading {
            assert!(client.rest() == content(LARGE), "{model}: what is under way is finished");
        }
        server.ends();
    });
}

#[test]
fn an_upload_under_way_is_taken_and_acknowledged() {
    every_model(|model| {
        let server = Setup::sink(model).with("--verify blake3").start();
        let body = content(5_000_000);
        let mut client = server.connect();
        client.send(upload_head("Content-Length: 5000000\r\n"));
        client.send(&body[..1_000_000]);
        // Accepted, not only sent.
        server.wait_for_metric("nstar_sink_connections", 2);
        server.signal("TERM");
        eventually(&format!("{model}: new connections are refused"), || server.try_connect().is_err());
        client.send(&body[1_000_000..]);
        assert_eq!(client.response().text(), receipt(body), "{model}");
        assert_eq!(client.rest(), b"", "{model}");
        server.ends().says("received 5000000 bytes; 1 uploads completed, 0 failed");
    });
}

#[test]
fn a_client_that_never_finishes_does_not_keep_a_server_from_stopping() {
    every_model(|model| {
        let server = Setup::files(model, &[LARGE]).with("--drain 200ms").start();
        let mut stalled = server.connect();
        stalled.send(get(&format!("/files/{LARGE}"), ""));
        assert_eq!(stalled.head().status, 200, "{model}");
        server.stop();
        assert!(stalled.until_broken().len() < LARGE, "{model}: the client sees that its file is not whole");
    });
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    every_model(|model| {
        let server = Setup::files(model, &[LARGE]).with("--drain 1h").start();
        let mut stalled = server.connect();
        stalled.send(get(&format!("/files/{LARGE}"), ""));
        assert_eq!(stalled.head().status, 200, "{model}");
        server.signal("TERM");
        eventually(&format!("{model}: new connections are refused"), || server.try_connect().is_err());
        server.signal("TERM");
        server.ends_with(143);
        assert!(stalled.until_broken().len() < LARGE, "{model}");
    });
}

#[test]
fn clients_of_a_killed_server_are_told_and_its_port_is_free_at_once() {
    every_model(|model| {
        let server = Setup::files(model, &[1_000, LARGE]).start();
        let address = server.address;
        let (mut idle, mut reading) = (server.connect(), server.connect());
        assert_eq!(idle.get("/files/1000", "").status, 200, "{model}");
        reading.send(get(&format!("/files/{LARGE}"), ""));
        assert_eq!(reading.head().status, 200, "{model}");
        let folder = Folder::new();
        // Long enough for the server to be killed under it on a slow machine too.
        let flags = ["-c", "20", "-d", "3s", "--json"].map(String::from);
        let load = folder.nstar(server.load_words("/files/1000").into_iter().chain(flags)).start();
        server.wait_for_metric("nstar_files_connections", 1 + 1 + 20 + 1);
        server.kill();
        assert!(reading.until_broken().len() < LARGE, "{model}");
        assert_eq!(idle.until_broken(), b"", "{model}");
        tells_of_its_failures(load.finish());
        let again = Setup::files(model, &[1_000]).at(address).start();
        assert_eq!(again.connect().get("/files/1000", "").status, 200, "{model}");
        again.stop();
    });
}

/// A load whose server died says how its requests ended, and how long the server did not respond.
fn tells_of_its_failures(load: Outcome) {
    let run: Value = serde_json::from_str(&load.stdout).unwrap_or_else(|error| panic!("{error}\n{load}"));
    let warnings = run["warnings"].as_array().unwrap();
    let errors = warnings.iter().find(|warning| warning["kind"] == "errors");
    let told = errors.and_then(|warning| warning["text"].as_str()).unwrap_or_default();
    assert!(told.contains("refused"), "the requests that failed are told, not '{told}'\n{load}");
    match (run["steps"][0]["completed"].as_u64(), load.status.code()) {
        (Some(0), _) => load.exits(1).complains("no request completed"),
        // The stall may or may not be long enough to be reported.
        (_, Some(1)) => load.complains("the server answered nothing"),
        // The load may or may not have been steady before its server died.
        (_, Some(4)) => load,
        _ => load.exits(0),
    };
}

#[test]
fn an_upload_to_a_killed_server_is_not_acknowledged() {
    every_model(|model| {
        let server = Setup::sink(model).start();
        let mut client = server.connect();
        let request = upload(content(1_000_000));
        client.send(&request[..500_000]);
        server.wait_for_metric("nstar_sink_connections", 2);
        server.kill();
        // Whether it can be sent does not matter.
        let _ = client.sender().write_all(&request[500_000..]);
        assert_eq!(client.until_broken(), b"", "{model}");
    });
}
