//! `nstar serve files` with uploads, through the real program.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::{
    common::support::{Place, is_root_or_skip},
    serve::{ask, listening},
};

#[test]
fn flags_that_make_no_sense_are_told_before_anything_starts() {
    let place = Place::beside_others();
    fs::create_dir(place.path("shared")).expect("a folder");
    place.write("rules.toml", "[[rule]]\npath = \"/a\"\nmay = [\"raed\"]\n");
    place.write("good.toml", "[[rule]]\npath = \"/a\"\nmay = [\"read\"]\n");
    for (flags, complaint) in [
        ("--accounts sqlite:a.db --open-uploads", "--accounts none"),
        ("--accounts none --open-uploads --read-only", "--read-only"),
        ("--accounts none --quota many", "many"),
        ("--accounts none --quota 1MB", "--quota limits each user"),
        ("--accounts none --upload-life never", "never"),
        ("--accounts none --max-upload=-1", "--max-upload"),
        ("--accounts sqlite:a.db --permissions rules.toml", "rules.toml, line 3: "),
        ("--accounts sqlite:a.db --permissions missing.toml", "missing.toml"),
        ("--accounts none --permissions good.toml", "with --accounts none there are no users"),
    ] {
        let words = ["serve", "files", "--root", "shared", "--listen", "127.0.0.1:0"].into_iter();
        let outcome = place.nstar(words.chain(flags.split(' '))).run();
        outcome.exits(2).complains(complaint);
    }
    let words = "serve files --root shared --accounts none --audit missing/audit --listen 127.0.0.1:0";
    place.nstar(words.split(' ')).run().exits(1).complains("missing/audit");
}

#[test]
fn state_among_the_files_is_refused_before_anything_is_made() {
    let place = Place::beside_others();
    place.write("shared/key.pem", "secret");
    place.write("rules.toml", "");
    std::os::unix::fs::symlink("shared", place.path("link")).expect("a link");
    std::os::unix::fs::symlink("../rules.toml", place.path("shared/rules.toml")).expect("a link");
    std::os::unix::fs::symlink("shared/key.pem", place.path("token")).expect("a link");
    for (flags, what) in [
        ("--accounts sqlite:shared/loc.db", "database (--accounts) at shared/loc.db"),
        ("--accounts sqlite:link/loc.db", "database (--accounts) at link/loc.db"),
        ("--accounts sqlite:a.db --audit shared/../shared/audit", "--audit"),
        ("--accounts sqlite:a.db --permissions shared/rules.toml", "--permissions"),
        ("--accounts http://127.0.0.1:1 --accounts-token-file token", "--accounts-token-file"),
    ] {
        let words = ["serve", "files", "--root", "shared", "--listen", "127.0.0.1:0"].into_iter();
        let outcome = place.nstar(words.chain(flags.split(' '))).run().exits(2);
        outcome.complains(what).complains("keep it outside");
    }
    let words = "serve files --root . --accounts sqlite:a.db --listen 127.0.0.1:0";
    place.nstar(words.split(' ')).run().exits(2).complains("a.db would be served");
    assert!(!place.path("a.db").exists() && !place.path("shared/loc.db.admin").exists(), "nothing was made");
}

#[test]
fn a_load_puts_files_each_under_a_name_of_its_own() {
    let place = Place::beside_others();
    fs::create_dir(place.path("shared")).expect("a folder");
    let words = "serve files --root shared --accounts none --open-uploads --audit audit --listen 127.0.0.1:0";
    let mut running = place.nstar(words.split(' ')).start();
    let address = listening(&mut running);
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/put-files.toml");
    let url = format!("http://{address}");
    place.nstar(["load", scenario, "--base", &url, "-c", "3", "-n", "4"]).run().has_not_panicked();
    let audit = fs::read_to_string(place.path("audit")).expect("a trail");
    let uploads = audit
        .lines()
        .filter(|line| line.contains("\"upload\"") && line.contains("\"bytes\":100000,"))
        .count();
    assert!(uploads >= 12 && uploads == audit.lines().count(), "{audit}");
    let listing = ask(&address, "GET /files/put/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(listing.contains("user0") && listing.contains("user2"), "{listing}");
    running.signal("TERM");
    running.finish().exits(0);
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left_of_what_did_not_fit() {
    if !is_root_or_skip("a_full_disk_is_told_and_nothing_is_left_of_what_did_not_fit") {
        return;
    }
    let place = Place::beside_others();
    fs::create_dir(place.path("small")).expect("a folder");
    // A disk that only the server sees.
    let mount = "mount -t tmpfs -o size=3m none small && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    let words = "serve files --root small --accounts none --open-uploads --listen 127.0.0.1:0";
    let mut running = place.wrapped(wrapper, words.split(' ')).start();
    let address = listening(&mut running);
    // An upload of known length is refused before its body is requested.
    let known = |name: &str, length: usize| {
        let head = format!(
            "PUT /files/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n"
        );
        insist(&address, &format!("{head}Content-Length: {length}\r\n\r\n"))
    };
    let unknown = |name: &str, pieces: usize| {
        let piece = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
        let head = format!("PUT /files/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        insist(
            &address,
            &format!("{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", piece.repeat(pieces)),
        )
    };
    for _ in 0..3 {
        assert!(known("a", 4_000_000).starts_with("HTTP/1.1 507"));
        let answer = unknown("b", 32);
        assert!(answer.contains("507") && answer.contains("disk is full"), "{answer}");
    }
    let answer = unknown("c", 25);
    assert!(answer.starts_with("HTTP/1.1 201"), "there is room again: {answer}");
    let listing = ask(&address, "GET /files/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(
        listing.contains("\"c\"") && !listing.contains("\"a\"") && !listing.contains("\"b\""),
        "{listing}"
    );
    running.signal("TERM");
    running.finish().exits(0);
}

/// Sends one request, which the server may not read whole. Returns the response.
fn insist(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
