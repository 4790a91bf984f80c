//! No request reads a byte from outside the root.

use std::{fs, os::unix::fs::symlink};

use proptest::prelude::*;

use crate::support::{MODELS, get, serve_open};

const SECRET: &str = "outside the root";

/// A root with a secret beside it, and every kind of link to it.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/a"), "inside").unwrap();
    fs::write(folder.path().join("secret"), SECRET).unwrap();
    symlink(folder.path().join("secret"), root.join("absolute")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("/proc/self/cwd", root.join("magic")).unwrap();
    symlink("../../secret", root.join("sub/relative")).unwrap();
    folder
}

#[test]
fn no_known_trick_escapes_the_root() {
    let folder = tree();
    let outside = folder.path().join("secret").to_str().unwrap().to_owned();
    for model in MODELS {
        let server = serve_open(model, &folder.path().join("root"));
        let to = server.local_addr();
        let tricks = [
            "../secret",
            "%2e%2e/secret",
            "%2E%2E%2Fsecret",
            "..%2fsecret",
            "..%5csecret",
            "sub/../../secret",
            "sub/%2e%2e/%2e%2e/secret",
            "%252e%252e/secret",
            "..;/secret",
            ".../secret",
            "./../secret",
            "absolute",
            "relative",
            "up/secret",
            "up/",
            "magic/secret",
            "magic/",
            "sub/relative",
            "%00../secret",
            "sub/a%00/../../secret",
            "..%c0%afsecret",
            "%c0%ae%c0%ae/secret",
            "/etc/passwd",
            "//etc/passwd",
        ];
        for trick in tricks.into_iter().chain([outside.as_str()]) {
            let answer = get(to, &format!("/files/{trick}"), "");
            assert!([400, 404].contains(&answer.status), "{trick}: {} {}", answer.status, answer.body);
            assert!(!answer.body.contains(SECRET), "{trick}");
        }
        for target in ["/../secret", "/files", "/files/../secret", "http://test/files/../secret"] {
            assert!(!get(to, target, "").body.contains(SECRET), "{target}");
        }
        assert_eq!(
            get(to, &format!("/files/{}", "n".repeat(300)), "").status,
            404,
            "longer than a name can be"
        );
        assert_eq!(
            get(to, &format!("/files/{}", "n/".repeat(3_000)), "").status,
            404,
            "longer than a path can be"
        );
        assert_eq!(get(to, "/files/sub/a", "").body, "inside");
    }
}

#[test]
fn links_that_lead_out_are_not_listed() {
    let folder = tree();
    let server = serve_open(engine::Model::Epoll, &folder.path().join("root"));
    let listing = get(server.local_addr(), "/files/", "").json();
    let names: Vec<_> =
        listing["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str()).collect();
    assert_eq!(names, [Some("sub")]);
}

#[test]
fn no_combination_of_tricks_escapes_the_root() {
    let folder = tree();
    let server = serve_open(engine::Model::Epoll, &folder.path().join("root"));
    let to = server.local_addr();
    let piece = prop::sample::select(vec![
        "..", "%2e%2e", ".", "/", "%2f", "//", "up", "sub", "secret", "absolute", "relative", "%00", "%5c",
        "a", "magic",
    ]);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) };
    proptest!(config, |(pieces in prop::collection::vec(piece, 0..8))| {
        let answer = get(to, &format!("/files/{}", pieces.concat()), "");
        prop_assert!(!answer.body.contains(SECRET), "{pieces:?}");
        prop_assert!([200, 301, 400, 404].contains(&answer.status), "{pieces:?}: {}", answer.status);
    });
}
