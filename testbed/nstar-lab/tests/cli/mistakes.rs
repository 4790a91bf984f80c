//! Deliberate mistakes: each gets a message that says what is wrong, where, and what to do, and the right exit code.

use std::net::TcpListener;

use crate::common::support::{Place, free_port};

#[test]
fn an_unknown_concurrency_model_is_usage() {
    let words = ["serve", "files", "--root", ".", "--accounts", "none", "--engine", "magic"];
    Place::beside_others().nstar(words).run().exits(2).complains("epoll");
}

#[test]
fn a_password_of_a_database_that_cannot_be_had_is_told() {
    let place = Place::beside_others();
    place.write("empty", "\n");
    place.write("hush", "hush hush\n");
    let there = format!("mysql://ann@127.0.0.1:{}/x", free_port());
    let shown = there.replace("ann@", "ann:hush@");
    for (database, file, code, said) in [
        (&there, "none", 2, "none cannot be read"),
        (&there, "empty", 2, "first line is empty"),
        (&shown, "hush", 2, "holds a password already"),
        (&"a.db".to_owned(), "hush", 2, "SQLite"),
        (&there, "hush", 1, "cannot be reached"),
        (&there, "hush", 1, "may be read by others"),
    ] {
        for system in ["booking", "accounts", "index"] {
            let words = [
                "serve",
                system,
                "--listen",
                "127.0.0.1:0",
                "--database",
                database,
                "--database-password-file",
                file,
            ];
            let outcome = place.nstar(words).run().exits(code).complains(said);
            assert!(!outcome.stderr.contains("hush hush"), "{outcome}");
        }
    }
    // clap's own message would repeat what was typed.
    let wrong = "mysql://ann:hush@db";
    let outcome = place.nstar(["serve", "booking", "--database", wrong]).run().exits(2);
    let outcome = outcome.complains("lacks user, host or database");
    assert!(!outcome.stderr.contains("hush"), "{outcome}");
    for wrong in ["mysql:/ann:hush@127.0.0.1/db", "host=127.0.0.1 user=ann password=hush dbname=x"] {
        let outcome = place.nstar(["serve", "booking", "--database", wrong]).run().exits(2);
        let outcome = outcome.complains("neither the URL of a database nor a likely path");
        assert!(!outcome.stderr.contains("hush"), "{outcome}");
    }
    let told =
        place.nstar(["serve", "booking", "--listen", "127.0.0.1:0", "--database", &shown]).run().exits(1);
    told.complains("others on this machine can see the password");
}

#[test]
fn a_database_that_cannot_be_reached_or_is_mistyped_is_told_once_and_clearly() {
    let place = Place::beside_others();
    let nobody = format!("mysql://ann@127.0.0.1:{}/x", free_port());
    let outcome = place
        .nstar(["serve", "booking", "--listen", "127.0.0.1:0", "--database", &nobody])
        .run()
        .exits(1)
        .complains("refused");
    assert!(!outcome.stderr.contains("Input/output error"), "{outcome}");
    let mistyped = "mysqll://ann:hush@db/x";
    let outcome = place.nstar(["serve", "booking", "--database", mistyped]).run().exits(2);
    let outcome = outcome.complains("did you mean mysql://USER");
    assert!(!outcome.stderr.contains("hush"), "{outcome}");
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (system, secret) in [("booking", "--key"), ("accounts", "--admin-token")] {
        let place = Place::beside_others();
        place.nstar(["serve", system, "--listen", &taken]).run().exits(1).complains("in use");
        let nowhere = ["serve", system, "--listen", "127.0.0.1:0", secret, "nowhere/secret"];
        place.nstar(nowhere).run().exits(1).complains("mkdir -p");
        let left: Vec<_> =
            std::fs::read_dir(place.path("")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
