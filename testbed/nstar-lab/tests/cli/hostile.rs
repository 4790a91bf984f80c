//! Servers and peers that send what a terminal would obey.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use crate::common::support::Place;

/// Clears the screen, sets the title, and its one-byte form.
const STEERING: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}2J";

/// Serves one body with a status to every client, until the test ends.
fn serve(status: &str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            // A client that has gone needs no answer.
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    at
}

#[test]
fn what_a_peer_says_does_not_steer_the_terminal() {
    let place = Place::beside_others();
    let peer = serve("403 Forbidden", serde_json::json!({ "error": format!("no{STEERING}way") }).to_string());
    let outcome = place.nstar(["share", "list", "--peer", &peer]).run().exits(1).complains("way");
    assert!(!outcome.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", outcome.stderr);
    assert!(outcome.stderr.contains("no\\u{1b}[2J"), "{:?}", outcome.stderr);
}
