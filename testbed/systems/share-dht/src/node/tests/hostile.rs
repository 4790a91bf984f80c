//! Peers that make things up, and strangers that fill up a peer.

use std::time::Duration;

use share::entry::Entry;

use super::world::{HERE, Peers, virtually, words};
use crate::{
    key::KeySet,
    message::{FILES_MAX, FOUND_MAX, LeaseTerms, Placed, Request, Response},
    node::searching,
    placement::Placement,
    records::Limits,
    testing::{address, all_keys, entry, peer},
};

#[test]
fn what_no_honest_peer_says_is_refused() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 2).await;
        let file = entry("a.txt", "x");
        let placed = Placed { keys: all_keys(&file), file };
        let keep = |at: &str, files| {
            let lease = LeaseTerms { at: at.parse().unwrap(), life_s: u32::MAX };
            peers.all[0].answer(peer(9), HERE, &Request::Keep { lease, files, anew: false, all: true })
        };
        assert!(matches!(keep("192.0.2.1:80", vec![placed.clone()]), Response::Refused { .. }));
        assert!(matches!(keep("127.0.0.1:0", vec![placed.clone()]), Response::Refused { .. }));
        assert!(matches!(
            keep("127.0.0.1:80", vec![placed.clone(); FILES_MAX + 1]),
            Response::Refused { .. }
        ));
        assert_eq!(peers.all[0].search(&words("a")).await, []);
        assert!(matches!(keep("127.0.0.1:80", vec![placed]), Response::Kept { files: 1, refused: 0, .. }));
        let leave = peers.all[0].answer(peer(8), HERE, &Request::Leave);
        let nothing = matches!(leave, Response::Kept { files: 0, refused: 0, .. });
        assert!(nothing, "nobody takes back what another told");
        assert_eq!(peers.all[0].search(&words("a")).await.len(), 1);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(peers.all[0].search(&words("a")).await, [], "no peer is believed for ever");
    });
}

#[test]
fn a_size_that_no_peer_could_take_is_believed_of_nobody() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 2).await;
        let (honest, absurd) = (entry("a.txt", "x"), 1_000_000_000_000_000);
        let lies = [0, absurd, i64::MAX as u64].map(|size| Entry { size, ..honest.clone() });
        let files = lies.iter().chain([&honest]);
        let files = files.map(|file| Placed { keys: all_keys(file), file: file.clone() }).collect();
        let lease = LeaseTerms { at: "127.0.0.1:80".parse().unwrap(), life_s: 120 };
        let keep = Request::Keep { lease, files, anew: false, all: true };
        let kept = peers.all[0].answer(peer(9), HERE, &keep);
        let one = matches!(kept, Response::Kept { files: 1, refused: 0, .. });
        assert!(one, "the others of the message are kept");
        let found = peers.all[0].search(&words("a")).await;
        assert_eq!(found.iter().map(|found| &found.entry).collect::<Vec<_>>(), [&honest]);

        let told = lies.map(|entry| share::entry::SearchResult { entry, peers: vec![address(1)] });
        assert_eq!(searching::valid_results(&words("a"), told.to_vec()), []);
    });
}

#[test]
fn strangers_who_fill_a_peer_do_not_push_out_what_it_has_itself() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 2).await;
        let keep = |number: u8, file: Entry, keys| {
            let lease = LeaseTerms { at: address(number), life_s: 120 };
            let files = vec![Placed { file, keys }];
            peers.all[0].answer(peer(number), HERE, &Request::Keep { lease, files, anew: false, all: true })
        };
        let word = KeySet::default().with(2);
        let places = Limits::default().places;
        for number in 0..places {
            keep(2 + (number % 8) as u8, entry(&format!("flood x{number}"), "x"), word);
        }
        let more = entry("flood once more", "x");
        assert!(matches!(keep(2, more, word), Response::Kept { refused: 1, .. }), "it is full");
        let own = entry("flood of my own", "own");
        peers.all[0].register(std::slice::from_ref(&own)).await;
        for node in &peers.all {
            let found = node.search(&words("flood")).await;
            assert!(found.iter().any(|found| found.entry == own), "not among {}", found.len());
        }
    });
}

#[test]
fn what_a_holder_makes_up_leads_nowhere_and_hides_nothing() {
    let own = entry("own file.txt", "own");
    let nowhere = ["0.0.0.0:80", "224.0.0.1:80", "127.0.0.1:0"].map(|at| at.parse().unwrap());
    let made_up = (0..FOUND_MAX).map(|number| entry(&format!("a file {number}"), "x"));
    let lies: Vec<_> = made_up.map(|entry| (entry, nowhere.to_vec(), address(1))).collect();
    let found = |file: &Entry, peers| share::entry::SearchResult { entry: file.clone(), peers };
    let known = found(&own, vec![address(0)]);
    let all = lies.iter().map(|(file, _, at)| found(file, vec![*at]));
    let merged = searching::merged([known.clone()].into_iter().chain(all));
    assert!(merged.len() == FOUND_MAX && merged.contains(&known));

    let answer = lies.iter().map(|(file, nowhere, _)| found(file, nowhere.clone())).collect();
    assert_eq!(searching::valid_results(&words("file"), answer), []);
    let mixed = found(&own, [&nowhere[..], &[address(1)]].concat());
    assert_eq!(searching::valid_results(&words("file"), vec![mixed]), [found(&own, vec![address(1)])]);
}
