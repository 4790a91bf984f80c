//! Quotas under concurrent uploads, permissions, and the audit file.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use engine::Model;
use files::Options;
use serde_json::{Value, json};

use crate::{
    support::{MODELS, PASSWORD, ask, basic, get},
    uploads::{Place, put, staged},
};

/// Waits until the server has counted the user's files again. After a count that took long it waits before the next.
fn until_counted(is_seen: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_seen() {
        assert!(since.elapsed() < Duration::from_secs(30), "a removed file still counts");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn concurrent_uploads_never_exceed_the_quota() {
    for model in MODELS {
        let place = Place::new(model, |options| options.uploads.quota_bytes = Some(1_000_000));
        let body = "x".repeat(300_000);
        let statuses: Vec<u16> = thread::scope(|scope| {
            let all: Vec<_> = (0..10)
                .map(|n| {
                    scope.spawn({
                        let (place, body) = (&place, &body);
                        move || place.put(&format!("users/ann/{n}"), "", body).status
                    })
                })
                .collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|&&status| status == 201).count(), 3, "{model}: {statuses:?}");
        assert_eq!(statuses.iter().filter(|&&status| status == 507).count(), 7, "{model}: {statuses:?}");
        let me = place.me("ann");
        assert_eq!((&me["used"], &me["quota"]), (&json!(900_000), &json!(1_000_000)), "{model}");
        assert_eq!(staged(&place.path("")), [""; 0], "{model}");

        // Deleting makes space, even without the server.
        let kept = (0..10).find(|n| place.path(&format!("users/ann/{n}")).exists()).unwrap();
        fs::remove_file(place.path(&format!("users/ann/{kept}"))).unwrap();
        until_counted(|| place.put("users/ann/more", "", &body).status == 201);
        let refused = place.put("users/ann/evenmore", "Upload-Complete: ?1\r\n", &body);
        assert!(refused.body.contains("900000 of 1000000"), "{model}: {}", refused.body);
        let ann = basic("ann", PASSWORD);
        assert_eq!(ask(place.to(), "DELETE", "/files/users/ann/more", &ann).status, 204);
        assert_eq!(place.me("ann")["used"], 600_000, "{model}");
    }
}

/// Files without a byte and folders take nothing of a quota, but inodes of the disk.
#[test]
fn empty_files_and_folders_are_limited_in_number() {
    for model in MODELS {
        let place = Place::new(model, |options| {
            options.uploads.quota_bytes = Some(1);
            options.uploads.entries_max = 5;
        });
        assert_eq!(place.put("users/ann/a/b/c", "", "").status, 201, "{model}: two folders and a file");
        assert_eq!(place.put("users/ann/d", "", "").status, 201, "{model}");
        let refused = place.put("users/ann/e/f", "", "");
        assert_eq!(refused.status, 507, "{model}: {}", refused.body);
        assert!(refused.body.contains("5 files and folders"), "{model}: {}", refused.body);
        assert_eq!(place.put("users/ann/d", "", "").status, 204, "{model}: it is there already");
        assert_eq!(place.put("users/ann/e", "", "").status, 201, "{model}");
        assert_eq!(place.put("users/ann/f", "", "").status, 507, "{model}");
        let ann = basic("ann", PASSWORD);
        assert_eq!(ask(place.to(), "DELETE", "/files/users/ann/d", &ann).status, 204, "{model}");
        assert_eq!(place.put("users/ann/f", "", "").status, 201, "{model}");
        assert_eq!(staged(&place.path("")), [""; 0], "{model}");
    }
}

/// What waits to be resumed takes space like files, also where it began while the user had no quota.
#[test]
fn unfinished_uploads_count_toward_a_quota_that_is_set_later() {
    for model in MODELS {
        let place = Place::new(model, |_| ());
        let begun = place.put("users/ann/x", "Upload-Complete: ?0\r\n", "x".repeat(800).as_str());
        assert_eq!(begun.status, 104, "{model}: {}", begun.body);
        let Place { folder, server } = place;
        drop(server);
        let limit = |options: &mut Options| options.uploads.quota_bytes = Some(1_000);
        let place = Place { server: Place::serve(&folder, model, limit), folder };
        assert_eq!(place.me("ann")["used"], 800, "{model}");
        let refused = place.put("users/ann/y", "", &"y".repeat(201));
        assert_eq!(refused.status, 507, "{model}: {}", refused.body);
        assert!(refused.body.contains("800 of 1000"), "{model}: {}", refused.body);
        assert_eq!(place.put("users/ann/y", "", &"y".repeat(200)).status, 201, "{model}");
    }
}

#[test]
fn an_upload_of_unknown_length_stops_at_the_quota() {
    let place = Place::new(Model::Epoll, |options| options.uploads.quota_bytes = Some(200_000));
    let chunk = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
    let fields = basic("ann", PASSWORD);
    for (chunks, status) in [(2, 201), (3, 507)] {
        let head = format!(
            "PUT /files/users/ann/{chunks} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"
        );
        let upload = || crate::support::raw(place.to(), &format!("{head}{}0\r\n\r\n", chunk.repeat(chunks)));
        // Refused uploads do not count as used space.
        until_counted(|| {
            let answer = upload();
            assert!(answer.status == status || answer.status == 507, "{}", answer.body);
            answer.status == 201 || answer.body.contains(": 0 of 200000")
        });
        fs::remove_file(place.path("users/ann/2")).ok();
    }
    assert_eq!(staged(&place.path("")), [""; 0]);
}

/// A link lent its own place's permissions to whatever it led to.
#[test]
fn links_open_nothing_that_the_caller_may_not_read() {
    let rules = "[[rule]]\npath = \"/shut\"\nusers = [\"bob\"]\nmay = [\"read\"]\n";
    let place = Place::new(Model::Epoll, |options| options.permissions = rules.parse().unwrap());
    place.user("bob");
    for (path, text) in [("open/o.txt", "open"), ("shut/a.txt", "shut"), ("users/bob/b.txt", "bob's")] {
        fs::create_dir_all(place.path(path).parent().unwrap()).unwrap();
        fs::write(place.path(path), text).unwrap();
    }
    for (target, link) in
        [("o.txt", "o"), ("../shut/a.txt", "a"), ("../users/bob/b.txt", "b"), ("..", "up"), ("../shut", "s")]
    {
        std::os::unix::fs::symlink(target, place.path("open").join(link)).unwrap();
    }
    let (ann, bob) = (basic("ann", PASSWORD), basic("bob", PASSWORD));
    let status = |path: &str, who: &str| get(place.to(), &format!("/files/{path}"), who).status;
    for (path, anns, bobs) in [
        ("open/o", 200, 200),
        ("open/a", 404, 200),
        ("open/b", 404, 200),
        ("open/up/open/o.txt", 200, 200),
        ("open/up/users/bob/b.txt", 404, 200),
        ("open/up/users/bob/", 404, 200),
        ("open/up/users/bob", 404, 301),
        ("open/s/", 404, 200),
        ("open/s/a.txt", 404, 200),
        ("open/s/missing", 404, 404),
    ] {
        for _ in 0..2 {
            assert_eq!((status(path, &ann), status(path, &bob)), (anns, bobs), "{path}");
        }
    }
    let names = |path: &str, who: &str| -> Vec<String> {
        let listing = get(place.to(), &format!("/files/{path}"), who).json();
        listing["entries"].as_array().unwrap().iter().map(|entry| entry["name"].to_string()).collect()
    };
    assert_eq!(names("open/", &ann), ["\"up\"", "\"o\"", "\"o.txt\""]);
    assert_eq!(names("open/", &bob), ["\"s\"", "\"up\"", "\"a\"", "\"b\"", "\"o\"", "\"o.txt\""]);
    assert!(!names("open/up/users/", &ann).contains(&"\"bob\"".into()));
}

#[test]
fn folders_of_others_are_hidden_and_listings_show_only_what_is_permitted() {
    let rules = "[[rule]]\npath = \"/shut\"\nusers = [\"bob\"]\nmay = [\"read\", \"write\"]\n";
    let place = Place::new(Model::Epoll, |options| options.permissions = rules.parse().unwrap());
    place.user("bob");
    for (path, text) in [("open.txt", "open"), ("shut/a.txt", "shut"), ("users/bob/b.txt", "bob's")] {
        fs::create_dir_all(place.path(path).parent().unwrap()).unwrap();
        fs::write(place.path(path), text).unwrap();
    }
    place.put("users/ann/a.txt", "", "ann's");
    let (ann, bob) = (basic("ann", PASSWORD), basic("bob", PASSWORD));
    let status = |path: &str, who: &str| get(place.to(), &format!("/files/{path}"), who).status;
    for (path, anns, bobs) in [
        ("open.txt", 200, 200),
        ("shut/a.txt", 403, 200),
        ("shut/missing", 403, 404),
        ("shut/", 403, 200),
        ("shut", 403, 301),
        ("users/bob/b.txt", 404, 200),
        ("users/bob/missing", 404, 404),
        ("users/bob/", 404, 200),
        ("users/bob", 404, 301),
        ("users/ann/a.txt", 200, 404),
    ] {
        // Twice, as the second response may come from the cache.
        for _ in 0..2 {
            assert_eq!((status(path, &ann), status(path, &bob)), (anns, bobs), "{path}");
        }
    }
    let names = |path: &str, who: &str| -> Vec<Value> {
        let listing = get(place.to(), &format!("/files/{path}"), who).json();
        listing["entries"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect()
    };
    assert_eq!(
        (names("", &ann), names("", &bob)),
        (vec![json!("users"), json!("open.txt")], vec![json!("shut"), json!("users"), json!("open.txt")])
    );
    assert_eq!((names("users/", &ann), names("users/", &bob)), (vec![json!("ann")], vec![json!("bob")]));

    let writes = |path: &str, who: &str| put(place.to(), path, who, "x").status;
    assert_eq!((writes("shut/new", &bob), writes("shut/new", &ann)), (201, 403));
    assert_eq!((writes("users/ann/new", &bob), writes("open.txt", &bob)), (404, 403));
    let delete = |path: &str, who: &str| ask(place.to(), "DELETE", &format!("/files/{path}"), who).status;
    assert_eq!(
        (delete("users/bob/b.txt", &ann), delete("open.txt", &ann), delete("shut/new", &bob)),
        (404, 403, 204)
    );
    assert_eq!(fs::read_to_string(place.path("users/bob/b.txt")).unwrap(), "bob's");
}

#[test]
fn changes_and_refusals_are_recorded_without_secrets() {
    let place = Place::new(Model::Epoll, |options| {
        options.audit = Some(options.root.with_file_name("audit"));
    });
    let id = "0123456789abcdef0123456789abcdef";
    place.user("bob");
    place.put("users/ann/a", "", "one");
    place.put("users/ann/a", "", "three");
    place.put("users/bob/a", "", "no");
    place.put("users/ann/b", "If-Match: *\r\n", "no");
    place.get("users/ann/a");
    place.get("users/bob/");
    get(place.to(), "/files/x?secret-in-a-query", &basic("ann", "a wrong password"));
    ask(place.to(), "DELETE", "/files/users/ann/a", &basic("ann", PASSWORD));
    ask(place.to(), "DELETE", &format!("/uploads/{id}"), &basic("ann", PASSWORD));
    ask(place.to(), "HEAD", &format!("/uploads/{id}"), "");
    let text = fs::read_to_string(place.folder.path().join("audit")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> = lines
        .iter()
        .map(|line| json!([line["user"], line["action"], line["path"], line["bytes"], line["status"]]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["ann", "upload", "users/ann/a", 3, 201]),
            json!(["ann", "replace", "users/ann/a", 5, 204]),
            json!(["ann", "refuse", "users/bob/a", null, 404]),
            json!(["ann", "refuse", "users/ann/b", null, 412]),
            json!(["ann", "refuse", "/files/users/bob/", null, 404]),
            json!([null, "refuse", "/files/x", null, 401]),
            json!(["ann", "delete", "users/ann/a", 5, 204]),
            json!(["ann", "refuse", "/uploads/{id}", null, 404]),
            json!([null, "refuse", "/uploads/{id}", null, 401]),
        ]
    );
    for line in &lines {
        assert!(
            line["peer"].as_str().unwrap().starts_with("127.0.0.1:")
                && line["time"].as_str().unwrap().ends_with('Z')
        );
    }
    for secret in [
        PASSWORD,
        "a wrong password",
        "secret-in-a-query",
        id,
        basic("ann", PASSWORD).trim().rsplit(' ').next().unwrap(),
    ] {
        assert!(!text.contains(secret), "{secret} is in the trail");
    }
}

#[test]
fn anybody_may_be_refused_as_often_as_they_like_and_fills_no_disk() {
    let place = Place::new(Model::Epoll, |options| {
        options.audit = Some(options.root.with_file_name("audit"));
    });
    let (path, begun) = (format!("/files/{}", "x".repeat(3_000)), Instant::now());
    for _ in 0..200 {
        assert_eq!(get(place.to(), &path, "").status, 401);
    }
    let most = 60 + 1 + begun.elapsed().as_secs();
    let text = fs::read_to_string(place.folder.path().join("audit")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!((60..=most).contains(&(lines.len() as u64)), "{} lines", lines.len());
    assert!(lines.iter().all(|line| line["path"].as_str().is_some_and(|path| path.len() == 512)));
}
