//! Peers that lie, break off or are slow: wrong bytes are never delivered.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use share::Content;

use crate::support::{Index, Peer, bytes, post, wait_until};

/// What a false peer responds to a request for a range, or for the outboard.
pub(crate) type BodyOfRange = fn(range: Option<(usize, usize)>) -> Vec<u8>;

/// A peer that registers some content and responds falsely.
pub(crate) fn false_peer(index: SocketAddr, name: &str, content: &[u8], answer: BodyOfRange) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || stream.map(|stream| answer_all(stream, answer)));
        }
    });
    let file = json!({ "name": name, "hash": Content::of(content), "size": content.len() });
    assert_eq!(post(index, "/register", &json!({ "peer": at, "files": [file] })).0, 200);
    at
}

fn answer_all(mut stream: TcpStream, answer: BodyOfRange) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(request)) = lines.next() {
        let mut range = None;
        for line in lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()) {
            if let Some((from, to)) =
                line.strip_prefix("Range: bytes=").and_then(|range| range.split_once('-'))
            {
                range = Some((from.parse().unwrap(), to.parse().unwrap()));
            }
        }
        if stream.write_all(&answer(range.filter(|_| !request.contains("/outboard")))).is_err() {
            return;
        }
    }
}

fn with_head(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body]
        .concat()
}

/// Wrong bytes of the right number.
pub(crate) fn zeros(range: Option<(usize, usize)>) -> Vec<u8> {
    match range {
        Some((from, to)) => with_head(&vec![0; to - from + 1]),
        None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
    }
}

/// Wrong hashes.
fn false_hashes(range: Option<(usize, usize)>) -> Vec<u8> {
    match range {
        Some(_) => zeros(range),
        None => b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n".iter().copied().chain([1; 64]).collect(),
    }
}

/// Half of what was requested, and the end of the connection.
fn half(range: Option<(usize, usize)>) -> Vec<u8> {
    let mut answer = zeros(range);
    answer.truncate(answer.len() / 2);
    answer
}

/// Nothing, for longer than anybody waits.
fn silence(_: Option<(usize, usize)>) -> Vec<u8> {
    thread::sleep(Duration::from_secs(600));
    Vec::new()
}

#[test]
fn a_peer_that_lies_is_named_and_its_bytes_never_come_through() {
    let index = Index::start();
    let (honest, receiver) = (Peer::start(index.at), Peer::start(index.at));
    for (name, length, answer) in [
        ("small.bin", 5_000, zeros as BodyOfRange),
        ("large.bin", 3_000_000, zeros),
        ("hashes.bin", 20_000, false_hashes),
        ("half.bin", 500_000, half),
        ("silence.bin", 500_000, silence),
    ] {
        let file = [name.as_bytes(), &bytes(length)].concat();
        let liar = false_peer(index.at, name, &file, answer);
        honest.write(name, &file);
        wait_until(|| receiver.sharers(&format!("name={name}")) == 2);
        let obtained = receiver.obtain(&Content::of(&file).to_string());
        assert_eq!(obtained["state"], "done", "{name}: {obtained}");
        assert_eq!(fs::read(receiver.path(name)).unwrap(), file, "{name}");
        let said = &obtained["sources"][liar.to_string()];
        assert!(said.is_null() || said["bytes"] == 0, "{name}: {obtained}");
    }
}

#[test]
fn where_only_liars_are_nothing_is_delivered_and_each_is_named() {
    let index = Index::start();
    let receiver = Peer::start(index.at);
    let file = bytes(10_000);
    let liar = false_peer(index.at, "a.bin", &file, zeros);
    let obtained = receiver.obtain(&Content::of(&file).to_string());
    assert_eq!(obtained["state"], "failed", "{obtained}");
    assert_eq!(obtained["sources"][liar.to_string()]["lied"], true, "{obtained}");
    assert!(obtained["error"].as_str().unwrap().contains(&liar.to_string()), "{obtained}");
    assert!(!receiver.path("a.bin").exists());
}

/// An index that answers every search with these files, and every other request with success.
fn false_index(found: Value) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = json!({ "found": found, "truncated": false, "expires_in_s": 120 }).to_string();
            thread::spawn(move || stream.map(|stream| answer_as_index(stream, &answer)));
        }
    });
    at
}

fn answer_as_index(mut stream: TcpStream, answer: &str) {
    let mut input = BufReader::new(stream.try_clone().unwrap());
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
    loop {
        let mut length = 0;
        let lines = input.by_ref().lines().map_while(Result::ok);
        for line in lines.take_while(|line| !line.is_empty()) {
            let found = line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned);
            length = found.map_or(length, |found| found.parse().unwrap());
        }
        let mut body = vec![0; length];
        if input.read_exact(&mut body).is_err() || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn sizes_that_no_file_has_are_passed_over_and_an_honest_peer_gives_the_file() {
    let index = Index::start();
    let honest = Peer::start(index.at);
    let file = bytes(100_000);
    honest.write("a.bin", &file);
    let hash = honest.find("a.bin");
    let claim =
        |size: u64, peer: SocketAddr| json!({ "name": "a.bin", "hash": hash, "size": size, "peers": [peer] });
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let absurd = [0, 1_000_000_000_000_000, i64::MAX as u64, u64::MAX].map(|size| claim(size, nowhere));
    let told = [&absurd[..], &[claim(file.len() as u64, honest.at)]].concat();
    let receiver = Peer::start(false_index(told.into()));
    let obtained = receiver.obtain(&hash);
    assert_eq!(obtained["state"], "done", "{obtained}");
    assert_eq!(fs::read(receiver.path("a.bin")).unwrap(), file);
}

/// An immediate refusal.
fn nothing(_: Option<(usize, usize)>) -> Vec<u8> {
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()
}

#[test]
fn a_false_size_hides_no_file_and_blames_no_honest_peer_it_is_told_of() {
    let index = Index::start();
    let (honest, receiver) = (Peer::start(index.at), Peer::start(index.at));
    for (name, length) in [("small.bin", 5_000), ("large.bin", 3_000_000)] {
        let file = [name.as_bytes(), &bytes(length)].concat();
        honest.write(name, &file);
        wait_until(|| !receiver.search(&format!("name={name}")).is_empty());
        let liar = false_peer(index.at, name, &file, nothing);
        let size = file.len() as u64;
        for false_size in [1, size - 1, size + 1, size * 3, 60 << 30] {
            // By another name, because the first registration of a file at an address stays.
            let other = format!("{false_size} of {name}");
            let lie = json!({ "name": other, "hash": Content::of(&file), "size": false_size });
            for peer in [liar, honest.at] {
                assert_eq!(post(index.at, "/register", &json!({ "peer": peer, "files": [lie] })).0, 200);
            }
        }
        let obtained = receiver.obtain(&Content::of(&file).to_string());
        assert_eq!(obtained["state"], "done", "{name}: {obtained}");
        assert_eq!(fs::read(receiver.path(name)).unwrap(), file, "{name}");
        assert_ne!(obtained["sources"][honest.at.to_string()]["lied"], true, "{name}: {obtained}");
    }
}

#[test]
fn silent_peers_that_claim_a_huge_size_are_not_waited_for_as_long_as_its_hashes_would_take() {
    let index = Index::start();
    let (honest, receiver) = (Peer::start(index.at), Peer::start(index.at));
    let file = bytes(100_000);
    honest.write("a.bin", &file);
    for _ in 0..2 {
        let silent = false_peer(index.at, "b.bin", b"another", silence);
        let lie = json!({ "name": "a.bin", "hash": Content::of(&file), "size": 60_u64 << 30 });
        assert_eq!(post(index.at, "/register", &json!({ "peer": silent, "files": [lie] })).0, 200);
    }
    wait_until(|| receiver.search("name=a.bin").len() == 2);
    let obtained = receiver.obtain(&Content::of(&file).to_string());
    assert_eq!(obtained["state"], "done", "{obtained}");
    assert_eq!(fs::read(receiver.path("a.bin")).unwrap(), file);
}

/// As above, but the one that has it is too slow at first: when the silent ones have been waited for, it is
/// asked again.
#[test]
fn a_peer_that_was_too_slow_once_is_asked_again_after_silent_ones() {
    let index = Index::start();
    let receiver = Peer::start(index.at);
    let file = bytes(5_000);
    for _ in 0..2 {
        let silent = false_peer(index.at, "b.bin", b"another", silence);
        let lie = json!({ "name": "a.bin", "hash": Content::of(&file), "size": 60_u64 << 30 });
        assert_eq!(post(index.at, "/register", &json!({ "peer": silent, "files": [lie] })).0, 200);
    }
    false_peer(index.at, "a.bin", &file, |range| {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        match ASKED.fetch_add(1, Ordering::Relaxed) {
            // For the whole, and then for its only group.
            0 | 1 => Vec::new(),
            _ => range.map_or_else(Vec::new, |(from, to)| with_head(&bytes(5_000)[from..=to])),
        }
    });
    let obtained = receiver.obtain(&Content::of(&file).to_string());
    assert_eq!(obtained["state"], "done", "{obtained}");
}

#[test]
fn sizes_that_no_file_has_are_refused_by_the_index() {
    let index = Index::start();
    for size in [0, 1_000_000_000_000_000, i64::MAX as u64] {
        let file = json!({ "name": "a.bin", "hash": Content::of(b"a"), "size": size });
        let (status, said) = post(index.at, "/register", &json!({ "peer": "127.0.0.1:1", "files": [file] }));
        assert_eq!((status, said["field"].as_str()), (422, Some("files[0].size")), "{said}");
    }
}
