//! Cancelled downloads stop, and what was received is kept.

use std::time::Duration;

use http_io::{Method, client::Request};
use serde_json::json;
use share::Content;
use test_support::browser::Browser;

use crate::{
    lying::false_peer,
    support::{Index, Peer, get, post, send, wait_until},
};

/// A response that does not come while anyone waits for it.
fn never(_: Option<(usize, usize)>) -> Vec<u8> {
    std::thread::sleep(Duration::from_secs(3600));
    Vec::new()
}

fn cancel(peer: &Peer, hash: &str) -> u16 {
    send(peer.at, &Request::new(Method::Delete, &format!("/obtain/{hash}"))).status()
}

#[test]
fn what_is_being_obtained_can_be_cancelled_and_asked_for_again() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    let hash = Content::of(b"what never comes").to_string();
    assert_eq!(cancel(&ann, &hash), 404, "nobody asked for it");
    assert_eq!(cancel(&ann, "x"), 422);
    false_peer(index.at, "never.bin", b"what never comes", never);
    assert_eq!(post(ann.at, "/obtain", &json!({ "hash": hash })).0, 202);
    assert_eq!(cancel(&ann, &hash), 204);
    wait_until(|| get(ann.at, &format!("/obtain/{hash}")).1["state"] == "failed");
    let over = get(ann.at, &format!("/obtain/{hash}")).1;
    assert!(over["error"].as_str().unwrap().contains("cancelled"), "{over}");
    assert_eq!(cancel(&ann, &hash), 404, "it is over");

    let bob = Peer::start(index.at);
    bob.write("never.bin", b"what never comes");
    wait_until(|| ann.sharers(&format!("hash={hash}")) == 2);
    assert_eq!(ann.obtain(&hash)["state"], "done");
    assert_eq!(cancel(&ann, &hash), 404, "it is here");
}

#[test]
fn what_two_want_goes_on_until_both_have_cancelled_or_one_for_all() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    let hash = Content::of(b"what never comes").to_string();
    false_peer(index.at, "never.bin", b"what never comes", never);
    let want = || assert_eq!(post(ann.at, "/obtain", &json!({ "hash": hash })).0, 202);
    let state = || get(ann.at, &format!("/obtain/{hash}?wait=1")).1["state"].clone();
    let [one, all] = [hash.clone(), format!("{hash}?for=all")];
    for cancelling in [&[&one, &one][..], &[&all]] {
        want();
        want();
        let (last, before) = cancelling.split_last().unwrap();
        for some in before {
            assert_eq!(cancel(&ann, some), 204);
            assert_eq!(state(), "running", "the other wants it");
        }
        assert_eq!(cancel(&ann, last), 204);
        wait_until(|| state() == "failed");
    }
    assert_eq!(cancel(&ann, &format!("{hash}?for=me")), 422);
}

/// A cancelled download takes a while to stop while bytes are being received. A new request must not see the old result.
#[test]
fn what_is_asked_for_again_while_it_is_being_given_up_goes_on() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    let content = b"what never comes";
    let hash = Content::of(content).to_string();
    false_peer(index.at, "never.bin", content, never);
    let want = || post(ann.at, "/obtain", &json!({ "hash": hash }));
    want();
    wait_until(|| get(ann.at, &format!("/obtain/{hash}")).1["name"] == "never.bin");
    assert_eq!(cancel(&ann, &hash), 204);
    let again = want();
    assert_eq!((again.0, &again.1["state"]), (202, &json!("running")));
    let bob = Peer::start(index.at);
    bob.write("never.bin", content);
    wait_until(|| get(ann.at, &format!("/obtain/{hash}?wait=1")).1["state"] != "running");
    let over = get(ann.at, &format!("/obtain/{hash}")).1;
    assert_eq!(over["state"], "done", "{over}");
}

#[test]
fn what_is_being_obtained_can_be_cancelled_in_a_browser() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    false_peer(index.at, "never.bin", b"what never comes", never);
    let Some(mut page) = Browser::open(&format!("http://{}/", ann.at)) else { return };
    page.wait("document.activeElement.name === 'text'");
    page.write("never.bin");
    page.press("Enter");
    page.wait("document.querySelectorAll('#found li').length === 1");
    page.click("#found button");
    // At first it is shown by its hash.
    let button = "#coming [data-state=running] button[aria-label='Cancel getting never.bin']";
    page.wait(&format!("find(\"{button}\") !== null"));
    page.click(button);
    page.wait("find('#coming [data-state=failed]').innerText.includes('cancelled')");
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}
