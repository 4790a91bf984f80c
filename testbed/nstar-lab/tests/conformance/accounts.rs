//! Accounts behind two file servers: a change through one takes effect at the other, whichever process serves.

use std::cell::RefCell;

use serde_json::Value;

use crate::{
    client::{Client, Response},
    models::every_model,
    server::{Served, Setup, eventually},
};

/// `ann` with `correct horse`, and with `another horse`.
const OLD: &str = "Authorization: Basic YW5uOmNvcnJlY3QgaG9yc2U=\r\n";
const NEW: &str = "Authorization: Basic YW5uOmFub3RoZXIgaG9yc2U=\r\n";

#[test]
fn a_changed_password_is_refused_everywhere_and_failures_count_everywhere() {
    every_model(|model| {
        let accounts = Setup::accounts(model).start();
        let one = Setup::files_behind(model, accounts.address).start();
        let other = Setup::files_behind(model, accounts.address).start();
        let credentials = r#"{"name": "ann", "password": "correct horse"}"#;
        assert_eq!(send(&one, "POST /accounts", credentials).status, 201, "{model}");
        let session: Value = serde_json::from_slice(&send(&one, "POST /sessions", credentials).body).unwrap();
        let session = format!("Authorization: Bearer {}\r\n", session["token"].as_str().unwrap());

        // Kept, because on some models each connection has its own process.
        let kept = RefCell::new(other.connect());
        for credential in [OLD, &session, OLD, &session] {
            assert_eq!(file(&mut kept.borrow_mut(), credential), 200, "{model}");
        }
        let change = r#"{"password": "another horse", "old_password": "correct horse"}"#;
        assert_eq!(send(&one, "PUT /accounts/ann/password", change).status, 204, "{model}");
        for credential in [OLD, &session] {
            assert_eq!(file(&mut one.connect(), credential), 401, "{model}: where it was changed");
            let is_refused = || file(&mut kept.borrow_mut(), credential) == 401;
            eventually(&format!("{model}: the other file server refuses"), is_refused);
        }
        assert_eq!(file(&mut kept.into_inner(), NEW), 200, "{model}");

        // Each try on a new connection, which may be another process's.
        let guess = || accounts.connect().get("/auth", &format!("{OLD}Connection: close\r\n")).status;
        let guesses: Vec<_> = (0..12).map(|_| guess()).take_while(|&status| status == 401).collect();
        assert!((3..12).contains(&guesses.len()), "{model}: {guesses:?}");
        for served in [one, other, accounts] {
            served.stop();
        }
    });
}

/// The status of the response to a request for the file.
fn file(client: &mut Client, credential: &str) -> u16 {
    client.get("/files/5", credential).status
}

fn send(served: &Served, line: &str, body: &str) -> Response {
    let mut client = served.connect();
    let length = body.len();
    client.send(format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    client.response()
}
