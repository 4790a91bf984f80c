//! The page of a peer, in a real browser and without one.

use std::{fs, net::SocketAddr};

use engine::Model;
use http_io::{Method, client::Request};
use serde_json::json;
use share::peer;
use test_support::browser::Browser;
use test_support::http::exchange;

use crate::{
    lying::{false_peer, zeros},
    support::{Index, Peer, bytes, send, wait_until},
};

/// Header fields.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// A file with this name shows whether text is ever taken for markup.
const HOSTILE: &str = "<img src=x onerror=document.title='taken over'>.pdf";

#[test]
fn files_are_searched_got_and_taken_out_of_sharing_in_a_browser() {
    let index = Index::start();
    let (ann, bob) = (Peer::start(index.at), Peer::start(index.at));
    let report = bytes(600_000);
    ann.write("annual report.pdf", &report);
    ann.write(HOSTILE, b"hostile");
    bob.find("annual%20report.pdf");
    let liar = false_peer(index.at, "lies.pdf", b"the truth", zeros);
    wait_until(|| bob.search("words=pdf").len() == 3);
    let Some(mut page) = Browser::open(&format!("http://{}/", bob.at)) else { return };

    // By keyboard: words, Enter, and on to the results.
    page.wait("document.activeElement.name === 'text' && !find('#none').hidden");
    page.write("nothing such");
    page.press("Enter");
    page.wait("said.textContent.startsWith('Nobody shares')");
    page.value("document.activeElement.value = ''");
    page.write("pdf");
    page.press("Enter");
    page.wait(
        "document.querySelectorAll('#found li').length === 3 && said.textContent === 'Found: 3 files.'",
    );
    page.value("find('#search button').focus()");
    page.press("Tab");
    page.wait("document.activeElement.matches('#found button')");
    page.value("find('#found li[data-name=\\'annual report.pdf\\'] button').focus()");
    page.press("Enter");
    page.wait("document.querySelectorAll('#coming [data-state=done]').length === 1");
    // The other one by mouse.
    page.click("#found li[data-name^='<img'] button");
    page.wait("document.querySelectorAll('#coming [data-state=done]').length === 2");
    page.wait("document.querySelectorAll('#shared li').length === 2");
    assert_eq!(fs::read(bob.path("annual report.pdf")).unwrap(), report);
    assert_eq!(fs::read(bob.path(HOSTILE)).unwrap(), b"hostile");

    page.wait(&format!("{}.includes('last answered just now')", peer_line(ann.at)));
    // A file that only a liar has says so.
    page.click("#found li[data-name='lies.pdf'] button");
    page.wait("find('#coming [data-state=failed]').innerText.includes('sent bad bytes')");
    page.wait(&format!("{}.includes('Sent bad bytes')", peer_line(liar)));

    // Removing a file asks first, and leaves the file where it is.
    page.click("#shared button[aria-label='Take annual report.pdf out of sharing']");
    page.wait("find('#ask').open && find('#question').textContent.includes('annual report.pdf')");
    page.press("Enter");
    page.wait("!find('#ask').open");
    page.click("#shared button[aria-label='Take annual report.pdf out of sharing']");
    page.wait("find('#ask').open");
    page.press("Tab");
    page.press("Enter");
    page.wait("said.textContent === 'No longer shared: annual report.pdf'");
    page.wait("document.querySelectorAll('#shared li').length === 1");
    assert!(bob.path("annual report.pdf").exists());

    // A failed download can be tried again.
    page.click("#coming [data-state=failed] button");
    page.wait("find('#coming [data-state=running]').innerText.includes('lies.pdf')");

    page.fits_a_phone();
    assert_eq!(page.value("find('#shared .what span').textContent"), json!(HOSTILE));
    assert_eq!(page.value("document.title"), json!("Share files"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

fn peer_line(peer: SocketAddr) -> String {
    format!(
        "[...document.querySelectorAll('#peers li')].find((line) => line.innerText.includes('{peer}')).innerText"
    )
}

#[test]
fn a_closed_group_asks_for_its_secret_in_a_browser() {
    let (index, secrets, folder) =
        (Index::start(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = peer::Options::new(folder.path(), index.at);
    let secret = secrets.path().join("secret");
    options.secret = Some(secret.clone());
    let peer = Peer::with(folder, Model::Epoll, &options);
    peer.write("a.txt", b"for members");
    let Some(mut page) = Browser::open(&format!("http://{}/", peer.at)) else { return };
    page.wait("document.activeElement.name === 'secret' && find('main').hidden");
    for wrong in ["wrong", "\u{2192}"] {
        page.write(wrong);
        page.press("Enter");
        page.wait("said.textContent === 'That is not the group\\'s secret.' && !enter.hidden");
        page.wait("document.activeElement.name === 'secret' && document.activeElement.value === ''");
        page.value("say('')");
    }
    page.write(fs::read_to_string(&secret).unwrap().trim());
    page.press("Enter");
    page.wait("enter.hidden && find('#shared').innerText.includes('a.txt')");
    page.go(&format!("http://{}/?", peer.at));
    page.wait("enter.hidden && find('#shared').innerText.includes('a.txt')");
    page.click("#leave");
    page.wait("!enter.hidden && find('main').hidden && sessionStorage.length === 0");
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

#[test]
fn only_the_peers_own_page_is_answered_and_only_by_names_that_lead_here() {
    let index = Index::start();
    let ann = Peer::start(index.at);
    ann.write("a.txt", b"x");
    let content = format!("/content/{}", ann.find("a.txt"));
    let own = format!("http://{}", ann.at);
    let status = |target: &str, headers: Fields<'_>| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        send(ann.at, &Request::new(Method::Get, target).headers(&headers)).status()
    };
    let cases: [(&str, Fields<'_>, u16); 9] = [
        ("/files", &[("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")], 200),
        ("/files", &[("Origin", &own)], 200),
        ("/files", &[("Origin", "http://example.org")], 403),
        ("/files", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")], 403),
        ("/peers", &[("Sec-Fetch-Site", "same-site")], 403),
        ("/", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")], 200),
        (&content, &[], 200),
        (&content, &[("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate")], 403),
        (&content, &[("Origin", &own)], 403),
    ];
    for (target, headers, expected) in cases {
        assert_eq!(status(target, headers), expected, "{target} {headers:?}");
    } // As the page of a site would ask whose name was pointed here.
    let rebound = |target: &str| {
        let fields = "Host: site.example\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n";
        exchange(ann.at, format!("GET {target} HTTP/1.1\r\n{fields}\r\n").as_bytes()).unwrap()
    };
    assert_eq!(rebound("/files").status, 421, "{}", rebound("/files").body);
    assert_eq!(rebound("/healthz").status, 200);
}
