//! An index that is gone or hangs, and what its peers report meanwhile.

use std::{net::TcpListener, time::Duration};

use engine::{Model, Server};
use share::{Content, index, peer};
use test_support::{browser::Browser, http::ask};

use crate::support::{Index, Peer, serve_at, wait_until};

/// An index whose peers renew only every 20 minutes.
fn rarely_renewed(folder: &tempfile::TempDir, port: u16) -> Server {
    let mut options = index::Options::new(folder.path().join("index.db"));
    options.life = Duration::from_secs(3600);
    serve_at(([127, 0, 0, 1], port).into(), || index::factory(options.clone()).unwrap())
}

#[test]
fn a_peer_soon_says_that_its_index_is_gone_and_that_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let index = rarely_renewed(&folder, 0);
    let at = index.local_addr();
    let ann = Peer::start(at);
    ann.write("a.txt", b"x");
    ann.find("a.txt");
    assert_eq!(ann.health(), "ok\n");
    let page = Browser::open(&format!("http://{}/", ann.at));
    index.drain(Duration::ZERO);
    index.join();
    let gone = format!("ok\nthe index at {at} cannot be asked now");
    wait_until(|| ann.health().starts_with(&gone));
    if let Some(mut page) = page {
        page.wait(&format!("find('#trouble').innerText.includes('{at} cannot be asked now')"));
        assert!(page.errors.is_empty(), "{:#?}", page.errors);
    }
    let _again = rarely_renewed(&folder, at.port());
    wait_until(|| ann.health() == "ok\n");
}

/// Anybody may ask whether a peer is well, but not where on its disk things are.
#[test]
fn a_closed_peer_tells_its_paths_to_members_only() {
    let (index, folder) = (Index::start(), tempfile::tempdir().unwrap());
    let (shared, secret) = (folder.path().join("shared"), folder.path().join("secret"));
    std::fs::create_dir(&shared).unwrap();
    let mut options = peer::Options::new(&shared, index.at);
    (options.secret, options.state) = (Some(secret.clone()), folder.path().join("state"));
    let moved = folder.path().join("moved");
    let ann = Peer::with(folder, Model::Epoll, &options);
    std::fs::rename(&shared, moved).unwrap();
    let token = format!("Authorization: Bearer {}\r\n", std::fs::read_to_string(&secret).unwrap().trim());
    let to_member = || ask(ann.at, "GET /healthz", &token, b"").unwrap().body;
    wait_until(|| to_member().contains("cannot be found"));
    assert!(to_member().contains(shared.to_str().unwrap()));
    let said = ann.health();
    assert!(said.contains("who presents the group's secret") && !said.contains("/shared"), "{said}");
}

#[test]
fn a_failed_search_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let index = rarely_renewed(&folder, 0);
    let ann = Peer::start(index.local_addr());
    ann.write("a.txt", b"x");
    ann.find("a.txt");
    index.drain(Duration::ZERO);
    index.join();
    assert!(ann.search("name=a.txt").is_empty());
    assert!(ann.health().contains("cannot be asked now"));
}

#[test]
fn what_cannot_be_had_because_the_index_is_away_says_so() {
    // Bound without listening: no other test gets the port.
    let bound = engine::Listeners::bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let nobody = bound.address();
    let peer = Peer::start(nobody);
    let over = peer.obtain(&Content::of(b"what nobody is known to have").to_string());
    let why = over["error"].as_str().unwrap();
    assert!(why.contains("nobody is known to have it") && why.contains(&nobody.to_string()), "{over}");
}

#[test]
fn an_index_that_hangs_does_not_make_its_peer_hang() {
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let ann = Peer::start(hung.local_addr().unwrap());
    wait_until(|| ann.health().contains("cannot be asked now"));
}
