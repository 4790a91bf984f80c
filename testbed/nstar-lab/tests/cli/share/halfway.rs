//! Downloads that are interrupted and resumed.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use super::{Group, eventually};
use crate::{
    common::support::{Running, free_port},
    serve::ask,
};

/// A proxy that forwards a limited number of response bytes, and the rest once it is opened.
pub(super) struct LimitedProxy {
    pub(super) at: String,
    pub(super) open: Arc<AtomicBool>,
    pub(super) passed: Arc<AtomicU64>,
}

impl LimitedProxy {
    fn before(port: u16, most: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("an address").to_string();
        let (open, passed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (gate, count) = (Arc::clone(&open), Arc::clone(&passed));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
                let (mut up, mut to) =
                    (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                thread::spawn(move || io::copy(&mut up, &mut to));
                let (gate, count) = (Arc::clone(&gate), Arc::clone(&count));
                thread::spawn(move || pass(server, client, most, &gate, &count));
            }
        });
        Self { at, open, passed }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, most: u64, open: &AtomicBool, passed: &AtomicU64) {
    let mut buffer = vec![0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while passed.load(SeqCst) >= most && !open.load(SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        passed.fetch_add(count as u64, SeqCst);
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A group in which ann shares a large file, half of which gets through before the proxy is opened.
pub(super) struct Halfway {
    pub(super) group: Group,
    pub(super) proxy: LimitedProxy,
    pub(super) ann: Running,
    pub(super) port: u16,
    pub(super) file: Vec<u8>,
    pub(super) hash: String,
}

impl Halfway {
    const SIZE: usize = 4_000_000;

    pub(super) fn new() -> Self {
        let group = Group::new();
        let port = free_port();
        let proxy = LimitedProxy::before(port, Self::SIZE as u64 / 2);
        let file: Vec<_> = (0..Self::SIZE as u32 / 4).flat_map(|number| (number * 7).to_le_bytes()).collect();
        group.place.write("ann/large.bin", &file);
        let listen = format!("127.0.0.1:{port}");
        let (ann, _) = group.wrapped_peer(&[], "ann", &["--listen", &listen, "--advertise", &proxy.at]);
        let hash = blake3::hash(&file).to_string();
        Self { group, proxy, ann, port, file, hash }
    }

    /// A peer that has begun to download the file, and records how far it got.
    pub(super) fn begin(&self, folder: &str) -> (Running, String, Running) {
        self.begin_with(folder, &[])
    }

    fn begin_with(&self, folder: &str, more: &[&str]) -> (Running, String, Running) {
        let (peer, at) = self.group.peer(folder, &[]);
        self.group.ask_until(&at, &["search", "large.bin"]);
        let words = ["share", "get", &self.hash, "--peer", &at];
        let get = self.group.place.nstar(words.iter().chain(more)).start();
        let map = self.map(folder);
        eventually("nothing was kept", || {
            std::fs::read(&map).is_ok_and(|bits| bits.iter().any(|&byte| byte != 0))
        });
        (peer, at, get)
    }

    /// Where a peer records how far it got.
    fn map(&self, folder: &str) -> PathBuf {
        self.group.place.path(&format!("{folder}/.nstar/parts/{}-{}.map", self.hash, self.file.len()))
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        std::fs::read(self.group.place.path(path)).is_ok_and(|read| read == self.file)
    }
}

#[test]
fn getting_a_file_that_is_interrupted_is_given_up_and_gone_on_with_when_asked_again() {
    let halfway = Halfway::new();
    let (_bob, bob_at, get) = halfway.begin("bob");
    get.signal("INT");
    get.finish().exits(130).complains("keeps what it has");
    let state =
        format!("GET /obtain/{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", halfway.hash);
    eventually("it is given up", || ask(&bob_at, &state).contains("cancelled"));
    let map = std::fs::read(halfway.map("bob")).expect("what is kept");
    assert!(map.iter().any(|&byte| byte != 0) && !halfway.is_at("bob/large.bin"));

    halfway.proxy.open.store(true, SeqCst);
    halfway.group.ask(&bob_at, &["get", &halfway.hash, "-o", "large.bin"]).exits(0);
    assert!(halfway.is_at("large.bin") && halfway.is_at("bob/large.bin"));
}

#[test]
fn a_file_that_comes_while_another_is_got_under_its_name_is_left_as_it_is() {
    let halfway = Halfway::new();
    let (_bob, _, get) = halfway.begin_with("bob", &["-o", "mine.bin"]);
    halfway.group.place.write("mine.bin", "mine");
    halfway.proxy.open.store(true, SeqCst);
    let part = format!("mine.bin.{}.part", get.pid());
    get.finish().exits(1).complains("mine.bin was created during the download").complains(&part);
    assert_eq!(std::fs::read(halfway.group.place.path("mine.bin")).expect("a file"), b"mine");
    assert!(halfway.is_at(&part));
}

/// `timeout`, for one, signals a process and then its group.
#[test]
fn getting_a_file_that_is_interrupted_twice_at_once_is_given_up_before_it_ends() {
    let halfway = Halfway::new();
    let (_bob, bob_at, get) = halfway.begin("bob");
    let twice = format!("kill -INT {0}; kill -TERM {0}", get.pid());
    assert!(std::process::Command::new("sh").args(["-c", &twice]).status().expect("a shell").success());
    let outcome = get.finish().complains("keeps what it has");
    assert!(matches!(outcome.status.code(), Some(130 | 143)), "{:?}", outcome.status);
    let state =
        format!("GET /obtain/{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", halfway.hash);
    eventually("it is given up", || ask(&bob_at, &state).contains("cancelled"));
}

#[test]
fn a_receiver_that_was_killed_goes_on_where_it_was() {
    let halfway = Halfway::new();
    let (bob, _, get) = halfway.begin("bob");
    bob.signal("KILL");
    drop(bob);
    get.finish().exits(1);

    halfway.proxy.open.store(true, SeqCst);
    halfway.proxy.passed.store(0, SeqCst);
    let (_bob, bob_at) = halfway.group.peer("bob", &[]);
    halfway.group.ask_until(&bob_at, &["search", "large.bin"]);
    halfway.group.ask(&bob_at, &["get", &halfway.hash, "-o", "large.bin"]).exits(0);
    assert!(halfway.is_at("large.bin"));
    let again = halfway.proxy.passed.load(SeqCst);
    assert!(again < Halfway::SIZE as u64, "all {again} bytes came again");
}
