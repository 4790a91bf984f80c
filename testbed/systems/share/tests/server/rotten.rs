//! A peer whose disk changed a shared file: it notices when it is asked to check, and downloads the file from others.

use std::fs;

use engine::Model;
use serde_json::json;
use share::Content;

use crate::support::{Index, Peer, bytes, get, post, wait_until};

/// A peer that takes a file for this content, as if its bytes had been different when they were hashed.
fn rotten(index: &Index, name: &str, content: Content, bytes: &[u8]) -> Peer {
    let peer = Peer::start(index.at);
    peer.write(name, bytes);
    // A search may find the copy of another peer before this one has hashed its own.
    let (journal, hash) = (peer.path(".nstar/memory"), Content::of(bytes).to_string());
    wait_until(|| fs::read_to_string(&journal).is_ok_and(|kept| kept.contains(&hash)));
    let folder = peer.end();
    let kept = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, kept.replace(&hash, &content.to_string())).unwrap();
    Peer::on(folder, Model::Epoll, index.at)
}

#[test]
fn a_copy_that_rotted_is_found_out_when_it_is_to_be_checked_and_the_file_taken_from_others() {
    let index = Index::start();
    let honest = Peer::start(index.at);
    let (right, wrong) = (bytes(5_000), vec![7; 5_000]);
    let content = Content::of(&right);
    honest.write("a.bin", &right);
    let peer = rotten(&index, "a.bin", content, &wrong);
    wait_until(|| {
        peer.search("name=a.bin").iter().any(|found| found["peers"].as_array().unwrap().len() == 2)
    });
    let believed = peer.obtain(&content.to_string());
    assert_eq!((&believed["state"], &believed["path"]), (&json!("done"), &json!("a.bin")));

    let check = json!({ "hash": content, "check": true });
    assert_eq!(post(peer.at, "/obtain", &check).0, 202);
    let progress = || get(peer.at, &format!("/obtain/{content}")).1;
    wait_until(|| progress()["state"] != "running");
    assert_eq!((&progress()["state"], &progress()["path"]), (&json!("done"), &json!("a (2).bin")));
    assert_eq!(fs::read(peer.path("a (2).bin")).unwrap(), right);
    let shared = get(peer.at, "/files").1["files"].clone();
    let hash_of = |path: &str| {
        shared.as_array().unwrap().iter().find(|file| file["path"] == path).unwrap()["hash"].clone()
    };
    assert_eq!(hash_of("a.bin"), json!(Content::of(&wrong)), "it is shared as what it is now");
    assert_eq!(hash_of("a (2).bin"), json!(content));
}

/// Only its owner's own requests made a peer look at its copy.
#[test]
fn a_copy_that_rotted_is_found_out_when_others_get_wrong_bytes() {
    let index = Index::start();
    let asking = Peer::start(index.at);
    let (right, wrong) = (bytes(5_000), vec![7; 5_000]);
    let content = Content::of(&right);
    let peer = rotten(&index, "a.bin", content, &wrong);
    wait_until(|| !asking.search("name=a.bin").is_empty());
    assert_eq!(post(asking.at, "/obtain", &json!({ "hash": content })).0, 202);
    let offers = |content: Content| {
        let shared = get(peer.at, "/files").1["files"].clone();
        shared.as_array().unwrap().iter().any(|file| file["hash"] == json!(content))
    };
    wait_until(|| offers(Content::of(&wrong)) && !offers(content));
    wait_until(|| asking.search(&format!("hash={content}")).is_empty());
}

#[test]
fn a_copy_that_is_right_stays_as_it_is_when_it_is_checked() {
    let index = Index::start();
    let peer = Peer::start(index.at);
    let file = bytes(100_000);
    peer.write("a.bin", &file);
    let hash = peer.find("a.bin");
    assert_eq!(post(peer.at, "/obtain", &json!({ "hash": hash, "check": true })).0, 202);
    wait_until(|| get(peer.at, &format!("/obtain/{hash}")).1["state"] == "done");
    assert_eq!(get(peer.at, "/files").1["files"].as_array().unwrap().len(), 1);
}
