//! Peers that share with each other through one index.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use engine::Model;
use http_io::{
    Method,
    client::{Request, Response},
};
use serde_json::json;
use share::{Content, peer};

use crate::support::{Index, Peer, bytes, get, index, post, send, serve_at, wait_until};

fn content(at: SocketAddr, hash: &str, range: &str) -> Response {
    let target = format!("/content/{hash}");
    send(at, &Request::new(Method::Get, &target).headers(&[("Range", range.as_bytes())]))
}

#[test]
fn a_file_dropped_at_one_is_obtained_at_another_and_then_from_that_one() {
    let index = Index::start();
    let [ann, bob, eve] = [(); 3].map(|()| Peer::start(index.at));
    let file = bytes(1_000_000);
    ann.write("sub/report 2026.pdf", &file);
    let hash = bob.find("report%202026.pdf");
    assert_eq!(hash, Content::of(&file).to_string());
    let obtained = bob.obtain(&hash);
    assert_eq!(
        (&obtained["state"], &obtained["path"]),
        (&json!("done"), &json!("report 2026.pdf")),
        "{obtained}"
    );
    assert_eq!(fs::read(bob.path("report 2026.pdf")).unwrap(), file);

    wait_until(|| eve.sharers("words=report") == 2);
    let (bob_at, _) = (bob.at, ann.end());
    wait_until(|| eve.search("words=report").first().is_some_and(|found| found["peers"] == json!([bob_at])));
    assert_eq!(eve.obtain(&hash)["state"], "done");
    assert_eq!(fs::read(eve.path("report 2026.pdf")).unwrap(), file);
    let left: Vec<_> = fs::read_dir(eve.path(".nstar/parts")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_changes_and_goes_is_told_and_what_cannot_be_shared_is_left_out() {
    let index = Index::start();
    let (ann, bob) = (Peer::start(index.at), Peer::start(index.at));
    for (name, length) in [("empty.bin", 0), ("one.bin", 1), ("group.bin", 16_384), ("more.bin", 16_385)] {
        ann.write(name, &bytes(length));
    }
    ann.write(".hidden.bin", b"x");
    std::os::unix::fs::symlink("/etc/passwd", ann.path("link.bin")).unwrap();
    wait_until(|| bob.search("words=bin").len() == 4);
    for found in bob.search("words=bin") {
        let obtained = bob.obtain(found["hash"].as_str().unwrap());
        assert_eq!(obtained["state"], "done", "{obtained}");
        let name = found["name"].as_str().unwrap();
        assert_eq!(fs::read(bob.path(name)).unwrap(), fs::read(ann.path(name)).unwrap(), "{name}");
    }

    let before = bob.find("one.bin");
    ann.write("one.bin", b"something else");
    let now = Content::of(b"something else").to_string();
    wait_until(|| bob.search("name=one.bin").iter().any(|file| file["hash"] == now.as_str()));
    assert_eq!(content(ann.at, &before, "bytes=0-").status(), 404, "what is no longer there is not sent");
    assert_eq!(bob.search("name=one.bin").len(), 2, "bob has the earlier one still");
    fs::remove_file(ann.path("group.bin")).unwrap();
    fs::rename(ann.path("more.bin"), ann.path("renamed.dat")).unwrap();
    wait_until(|| {
        let found = bob.search("name=group.bin");
        let is_his = found.first().is_some_and(|found| found["peers"] == json!([bob.at]));
        is_his && bob.search("words=renamed").len() == 1
    });
}

#[test]
fn ranges_and_hashes_of_content_are_served_under_every_model_that_has_one_process() {
    let index = Index::start();
    let file = bytes(100_000);
    let hash = Content::of(&file).to_string();
    for &model in Model::ALL.iter().filter(|model| !model.forks()) {
        let peer = Peer::on(tempfile::tempdir().unwrap(), model, index.at);
        peer.write("a.bin", &file);
        wait_until(|| content(peer.at, &hash, "bytes=0-0").status() == 206);
        assert_eq!(content(peer.at, &hash, "bytes=500-70000").body(), &file[500..=70_000], "{model}");
        assert_eq!(content(peer.at, &hash, "bytes=100000-").status(), 416);
        let outboard = format!("/content/{hash}/outboard");
        assert_eq!(send(peer.at, &Request::new(Method::Get, &outboard)).body().len(), 6 * 64);
        assert_eq!(content(peer.at, "x", "bytes=0-").status(), 404);
        peer.end();
    }
}

#[test]
fn a_file_taken_out_of_sharing_stays_out_over_a_restart() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    ann.write("a.txt", b"one");
    ann.write("sub/a.txt", b"two");
    wait_until(|| get(ann.at, "/files").1["files"].as_array().unwrap().len() == 2);
    let delete = |at, target: &str| send(at, &Request::new(Method::Delete, target)).status();
    assert_eq!(delete(ann.at, "/files/a.txt"), 409, "two files of one name");
    let one = Content::of(b"one");
    assert_eq!(delete(ann.at, &format!("/files/a.txt?hash={one}")), 204);
    assert_eq!(delete(ann.at, "/files/none.txt"), 404);
    let folder = ann.end();
    let again = Peer::on(folder, Model::Epoll, index.at);
    wait_until(|| again.search("name=a.txt").len() == 1);
    assert_eq!(again.search("name=a.txt")[0]["hash"], Content::of(b"two").to_string());
    assert!(again.path("a.txt").exists());
}

#[test]
fn an_index_that_was_away_is_told_everything_again() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let start = || {
        let options = share::index::Options::new(folder.path().join("index.db"));
        serve_at(port, || share::index::factory(options.clone()).unwrap())
    };
    let ann = Peer::start(port);
    ann.write("early.txt", b"x");
    assert_eq!(get(ann.at, "/search?name=early.txt").0, 503);
    assert_eq!(get(ann.at, "/healthz").0, 200);
    let first = start();
    wait_until(|| ann.search("name=early.txt").len() == 1);
    first.drain(std::time::Duration::ZERO);
    first.join();
    ann.write("late.txt", b"y");
    let _second = start();
    wait_until(|| ann.search("words=txt").len() == 2);
}

#[test]
fn the_index_is_told_of_a_file_again_at_once() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    ann.write("a.txt", b"x");
    let hash = ann.find("a.txt");
    let gone = json!({ "peer": ann.at, "files": [{ "name": "a.txt", "hash": hash }] });
    assert_eq!(post(index.at, "/deregister", &gone).0, 204);
    assert!(ann.search("name=a.txt").is_empty());
    let (status, said) = post(ann.at, "/register", &json!({ "name": "a.txt" }));
    assert_eq!((status, &said["registered"]), (200, &json!(1)), "{said}");
    assert_eq!(ann.search("name=a.txt")[0]["peers"], json!([ann.at]));
    assert_eq!(post(ann.at, "/register", &json!({ "name": "b.txt" })).0, 404);
    ann.write("b.txt", b"y");
    ann.find("b.txt");
    assert_eq!(post(index.at, "/deregister", &json!({ "peer": ann.at, "all": true })).0, 204);
    assert_eq!(post(ann.at, "/register", &json!({})).1["registered"], 2);
    assert_eq!(ann.search("words=txt").len(), 2);
    for wrong in
        [json!({ "name": 5 }), json!({ "name": "../a.txt" }), json!({ "name": "a.txt", "hash": hash })]
    {
        assert_eq!(post(ann.at, "/register", &wrong).0, 422, "{wrong}");
    }
    assert_eq!(get(ann.at, "/register").0, 405);
}

fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn what_nobody_has_or_is_no_hash_is_told() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    let (status, said) = post(ann.at, "/obtain", &json!({ "hash": "x" }));
    assert_eq!((status, &said["field"]), (422, &json!("hash")), "{said}");
    let hash = Content::of(b"x").to_string();
    assert_eq!(post(ann.at, "/obtain", &json!({ "hash": hash, "name": "../x" })).0, 422);
    assert_eq!(get(ann.at, &format!("/obtain/{hash}")).0, 404);
    let page = [("Origin", &b"http://example.org"[..])];
    let asked = send(ann.at, &Request::new(Method::Get, "/files").headers(&page));
    assert_eq!(asked.status(), 403, "a page in a browser");
}

#[test]
fn members_share_among_themselves_only() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    let mut options = share::index::Options::new(folder.path().join("index.db"));
    options.secret = Some(secret.clone());
    let index = index(Model::Epoll, options);
    let [ann, bob] = [(); 2].map(|()| {
        let share = tempfile::tempdir().unwrap();
        let mut options = peer::Options::new(share.path(), index.local_addr());
        options.secret = Some(secret.clone());
        let factory = peer::factory(&options).unwrap();
        let server = crate::support::serve(Model::Epoll, factory.clone());
        factory.begin(server.local_addr()).unwrap();
        (share, factory, server)
    });
    fs::write(ann.0.path().join("a.txt"), "for members").unwrap();
    let token = format!("Bearer {}", fs::read_to_string(&secret).unwrap().trim());
    let member = [("Authorization", token.as_bytes())];
    let hash = Content::of(b"for members").to_string();
    let target = format!("/content/{hash}");
    let ann_at = ann.2.local_addr();
    wait_until(|| send(ann_at, &Request::new(Method::Get, &target).headers(&member)).status() == 200);
    assert_eq!(send(ann_at, &Request::new(Method::Get, &target)).status(), 401);
    let wanted = json!({ "hash": hash }).to_string();
    let post = Request::new(Method::Post, "/obtain").headers(&member).body(wanted.as_bytes());
    assert_eq!(send(bob.2.local_addr(), &post).status(), 202);
    wait_until(|| fs::read(bob.0.path().join("a.txt")).is_ok_and(|read| read == b"for members"));
    ann.1.end();
    bob.1.end();
}

/// A server that passes everything on to `to`. Returns its address, and what it heard from clients and from `to`.
fn eavesdropper(to: SocketAddr) -> (SocketAddr, Arc<Mutex<String>>) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(Mutex::new(String::new())));
    let (at, hears) = (listener.local_addr().unwrap(), Arc::clone(&heard));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(to) else { return };
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let hears = Arc::clone(&hears);
                thread::spawn(move || {
                    let mut part = [0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut part) {
                        hears.lock().unwrap().push_str(&String::from_utf8_lossy(&part[..count]));
                        if to.write_all(&part[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (at, heard)
}

/// The secret was sent to every address that an index named.
#[test]
fn who_is_named_by_the_index_learns_no_secret_and_gets_no_content() {
    const CONTENT: &[u8] = b"what Ann has";
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    let started = |name: &str| {
        let mut options = share::index::Options::new(folder.path().join(name));
        options.secret = Some(secret.clone());
        let index = index(Model::Epoll, options);
        let share = tempfile::tempdir().unwrap();
        let mut options = peer::Options::new(share.path(), index.local_addr());
        options.secret = Some(secret.clone());
        (Peer::with(share, Model::Epoll, &options), index)
    };
    let ((ann, _index_of_ann), (bob, index_of_bob)) = (started("ann.db"), started("bob.db"));
    ann.write("a.txt", CONTENT);
    let (spy, heard) = eavesdropper(ann.at);
    let token = format!("Bearer {}", fs::read_to_string(&secret).unwrap().trim());
    let as_member = |to: SocketAddr, target: &str, body: &serde_json::Value| {
        let (headers, body) = ([("Authorization", token.as_bytes())], body.to_string());
        send(to, &Request::new(Method::Post, target).headers(&headers).body(body.as_bytes())).status()
    };
    let hash = Content::of(CONTENT);
    let files = json!({ "peer": spy, "files": [{ "name": "a.txt", "hash": hash, "size": CONTENT.len() }] });
    assert_eq!(as_member(index_of_bob.local_addr(), "/register", &files), 200);
    assert_eq!(as_member(bob.at, "/obtain", &json!({ "hash": hash })), 202);
    let heard = || heard.lock().unwrap().clone();
    wait_until(|| heard().contains(&format!("to=\"{spy}\"")) && heard().contains("HTTP/1.1 403"));
    let secret = fs::read_to_string(&secret).unwrap();
    assert!(!heard().contains(secret.trim()) && !heard().contains("what Ann has"), "{}", heard());
    assert!(heard().contains("which is not this peer"), "{}", heard());
}

#[test]
fn a_file_that_changes_while_it_is_read_is_shared_as_it_is_in_the_end() {
    let index = Index::start();
    let (ann, bob) = (Peer::start(index.at), Peer::start(index.at));
    let mut whole = Vec::new();
    for round in 0..10_usize {
        // Longer, and different from the first byte on; large enough to change while it is hashed or sent.
        whole = bytes(2_000_000 + 50_000 * round).into_iter().map(|byte| byte ^ round as u8).collect();
        ann.write("changing.bin", &whole);
        for found in bob.search("name=changing.bin") {
            assert_eq!(post(bob.at, "/obtain", &json!({ "hash": found["hash"] })).0, 202);
        }
    }
    let last = Content::of(&whole).to_string();
    wait_until(|| bob.search(&format!("hash={last}")).len() == 1);
    assert_eq!(bob.obtain(&last)["state"], "done");
    for file in get(bob.at, "/files").1["files"].as_array().unwrap() {
        let read = fs::read(bob.path(file["path"].as_str().unwrap())).unwrap();
        assert_eq!(Content::of(&read).to_string(), file["hash"], "{file}");
    }
}

/// Takes 20 GB of the disk and a minute or more: `cargo test --release -p share -- --ignored beyond`.
#[test]
#[ignore = "writes 10 GB"]
fn a_file_beyond_10_gb_is_obtained() {
    const SIZE: u64 = 10 * 1024 * 1024 * 1024 + 12_345;
    let index = Index::start();
    let (ann, bob) = (Peer::start(index.at), Peer::start(index.at));
    let sparse = fs::File::create(ann.path("large.bin")).unwrap();
    sparse.set_len(SIZE).unwrap();
    for at in [0, SIZE / 2, SIZE - 3] {
        std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", at).unwrap();
    }
    let until = |holds: &dyn Fn() -> bool| while !holds() {};
    until(&|| !bob.search("name=large.bin").is_empty());
    let hash = bob.find("large.bin");
    assert_eq!(post(bob.at, "/obtain", &json!({ "hash": hash })).0, 202);
    until(&|| get(bob.at, &format!("/obtain/{hash}?wait=5")).1["state"] != "running");
    assert_eq!(get(bob.at, &format!("/obtain/{hash}")).1["bytes"], SIZE);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(bob.path("large.bin")).unwrap()).unwrap();
    assert_eq!(hasher.finalize().to_string(), hash);
}

#[test]
fn many_small_files_are_asked_for_at_once_and_each_is_right() {
    let index = Index::start();
    let (ann, bob) = (Peer::start(index.at), Peer::start(index.at));
    // Some with the same name, some longer than a group.
    let files: Vec<_> = (0..300_usize)
        .map(|number| {
            (format!("{}/{}.bin", number / 100, number % 100), format!("{number} ").repeat(number * 20))
        })
        .collect();
    for (name, text) in &files {
        ann.write(name, text.as_bytes());
    }
    let sharing_all = || {
        let known = get(index.at, "/peers").1;
        known["peers"].as_array().unwrap().iter().filter(|peer| peer["files"] == files.len()).count()
    };
    wait_until(|| sharing_all() == 1);
    let hashes: Vec<_> = files.iter().map(|(_, text)| Content::of(text.as_bytes()).to_string()).collect();
    for hash in &hashes {
        assert_eq!(post(bob.at, "/obtain", &json!({ "hash": hash })).0, 202);
    }
    for (hash, (_, text)) in hashes.iter().zip(&files) {
        let mut obtained = json!({ "state": "running" });
        while obtained["state"] == "running" {
            obtained = get(bob.at, &format!("/obtain/{hash}?wait=5")).1;
        }
        assert_eq!(obtained["state"], "done", "{obtained}");
        assert_eq!(fs::read_to_string(bob.path(obtained["path"].as_str().unwrap())).unwrap(), *text);
    }
    wait_until(|| sharing_all() == 2);
    assert_eq!(get(bob.at, &format!("/obtain/{}?wait=x", hashes[0])).1["field"], "wait");
}

#[test]
fn hashes_that_were_lost_are_made_again_and_those_of_no_file_taken_away() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    let file = bytes(50_000);
    ann.write("a.bin", &file);
    let hash = ann.find("a.bin");
    let folder = ann.end();
    let outboards = folder.path().join(".nstar/outboards");
    // As a power failure leaves it: there, but empty.
    fs::write(outboards.join(&hash), b"").unwrap();
    let stale = outboards.join(Content::of(b"nothing").to_string());
    fs::write(&stale, b"x").unwrap();
    let again = Peer::on(folder, Model::Epoll, index.at);
    assert_eq!(again.find("a.bin"), hash);
    assert_eq!(fs::metadata(outboards.join(&hash)).unwrap().len(), 3 * 64);
    assert!(!stale.exists());
}
