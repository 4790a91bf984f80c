//! Peers that each know all others, with three holders for each key.

use std::time::Duration;

use share::entry::Query;

use super::world::{HERE, LIFE, Peers, files, virtually, words};
use crate::{
    key::Key,
    message::{LeaseTerms, Placed, Request},
    metrics::Answered,
    network::Routing,
    placement::Placement,
    testing::{address, all_keys, peer},
};

async fn peers(count: u8) -> Peers {
    Peers::new(Placement::Rendezvous, count).await
}

/// How many searches were sent to other peers.
fn asked(peers: &Peers) -> u64 {
    peers.all.iter().map(|node| node.metrics.sent_of("find")).sum()
}

fn records(peers: &Peers) -> usize {
    peers.all.iter().map(|node| node.records()).sum()
}

#[test]
fn up_to_three_find_everything_without_asking() {
    virtually(async {
        let peers = peers(3).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 20)).await;
        }
        assert_eq!(peers.find(&words("txt")).await, [60; 3]);
        assert_eq!(asked(&peers), 0);
    });
}

#[test]
fn who_comes_among_few_and_was_not_told_yet_asks_all() {
    virtually(async {
        let mut peers = peers(2).await;
        for number in 0..2 {
            // Neither side knows the other side's files.
            peers.all[number].routing.table.set(Vec::new());
            peers.all[number].register(&files(number, 5)).await;
        }
        peers.come(2);
        peers.all[2].routing.table.set((0..2).map(|number| peer(number).into()).collect());
        assert_eq!(peers.all[2].search(&words("file")).await.len(), 10);
    });
}

#[test]
fn a_search_asks_one_and_nothing_is_looked_up() {
    virtually(async {
        let peers = peers(60).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 3)).await;
        }
        let one = Query::Name("file 1 of 33.txt".parse().unwrap());
        assert_eq!(peers.find(&one).await, [1; 60]);
        assert_eq!(peers.find(&words("59")).await, [3; 60]);
        assert_eq!(peers.find(&words("file")).await, [180; 60]);
        assert_eq!(peers.find(&Query::Content(files(7, 1)[0].content)).await, [1; 60]);
        // The three holders of a key ask nobody.
        assert_eq!(asked(&peers), 4 * (60 - 3));
        let looked_up: u64 = peers.all.iter().map(|node| node.metrics.searches(Answered::LookedUp)).sum();
        assert_eq!(looked_up, 0);
        // A file has seven or eight keys, each at three holders and at the publisher.
        assert!((180 * 6 * 3..=180 * 8 * 4).contains(&records(&peers)), "{}", records(&peers));
        assert_eq!(peers.find(&words("nothing")).await, [0; 60]);
    });
}

#[test]
fn while_one_of_the_three_lives_what_they_keep_is_found() {
    virtually(async {
        let mut peers = peers(30).await;
        peers.all[7].register(&files(7, 1)).await;
        let query = words("txt");
        let holders = peers.all[7].routing.known(&Key::of_query(&query).unwrap()).unwrap();
        for dead in holders.iter().filter(|holder| **holder != peer(7)).take(2) {
            let at = peers.all.iter().position(|node| node.routing.me() == *dead).unwrap();
            peers.die(at);
            assert!(peers.find(&query).await.iter().all(|found| *found == 1), "nobody knows yet who died");
        }
        peers.meet().await;
        let before = asked(&peers);
        assert!(peers.find(&query).await.iter().all(|found| *found == 1));
        assert!(asked(&peers) - before <= 28, "others have taken their place");
    });
}

/// A peer that waits for others that died may renew its lease too late. Those that have forgotten it by then, and come to hold
/// more of its keys as others died, are told everything again and not only of those keys.
#[test]
fn who_has_forgotten_a_peer_and_comes_to_keep_more_of_it_is_told_everything() {
    virtually(async {
        let mut peers = peers(8).await;
        let all = files(0, 60);
        peers.all[0].register(&all).await;
        peers.renew().await;
        tokio::time::advance(2 * LIFE).await;
        peers.all.iter().for_each(|node| node.expire());
        for _ in 0..4 {
            peers.die(4);
        }
        peers.meet().await;
        peers.renew().await;
        for file in &all {
            assert_eq!(peers.find(&Query::Name(file.name.clone())).await, [1; 4]);
            assert_eq!(peers.find(&Query::Content(file.content)).await, [1; 4]);
        }
        assert_eq!(peers.find(&words("file")).await, [60; 4]);
    });
}

/// What a peer sent before the network was cut may arrive after the cut has healed, and after what it has told since. Only
/// the number of files was compared, so that others were never found.
#[test]
fn what_comes_late_hides_nothing_for_longer_than_until_the_next_renewal() {
    virtually(async {
        let peers = peers(8).await;
        let all = files(0, 20);
        peers.all[0].register(&all).await;
        peers.renew().await;
        for node in &peers.all[1..] {
            let held = node.kept().records.files(peer(0));
            let outdated = files(9, held).into_iter();
            let files = outdated.map(|file| Placed { keys: all_keys(&file), file }).collect();
            let lease = LeaseTerms { at: address(0), life_s: 120 };
            node.answer(peer(0), HERE, &Request::Keep { lease, files, anew: true, all: true });
        }
        let found_by_all = async || {
            let mut missed = 0;
            for file in &all {
                let found = peers.find(&Query::Name(file.name.clone())).await;
                missed += found.iter().filter(|found| **found != 1).count();
            }
            missed == 0
        };
        assert!(!found_by_all().await, "the late message has hidden files");
        peers.renew().await;
        assert!(found_by_all().await);
    });
}

#[test]
fn those_of_the_three_that_fall_silent_hold_up_a_search_for_a_moment() {
    virtually(async {
        let peers = peers(30).await;
        peers.all[7].register(&files(7, 1)).await;
        for (query, found) in [(words("txt"), 1), (words("nothing"), 0)] {
            let holders = peers.all[7].routing.known(&Key::of_query(&query).unwrap()).unwrap();
            let silent: Vec<_> = holders.into_iter().filter(|holder| *holder != peer(7)).take(2).collect();
            silent.iter().for_each(|holder| peers.fall_silent(*holder));
            for node in peers.all.iter().filter(|node| !silent.contains(&node.routing.me())) {
                let since = tokio::time::Instant::now();
                assert_eq!(node.search(&query).await.len(), found);
                assert!(since.elapsed() <= Duration::from_millis(1_500), "{:?}", since.elapsed());
            }
        }
    });
}

#[test]
fn who_comes_is_handed_its_keys_and_nothing_else_moves() {
    virtually(async {
        let mut peers = peers(20).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 25)).await;
        }
        let before: Vec<_> = peers.all.iter().map(|node| node.records()).collect();
        let all: usize = before.iter().sum();
        peers.come(20);
        let newcomer = peers.all[20].clone();
        let query = words("file 22 of 3");
        assert_eq!(newcomer.records(), 0);
        peers.meet().await;
        // Every record is at the three holders of its key and at the publisher.
        let expected = all as f64 * 3.0 / (4.0 * 21.0);
        let taken = newcomer.records() as f64;
        assert!(taken > expected / 2.0 && taken < expected * 2.0, "{taken} for {expected}");
        for (node, before) in peers.all.iter().zip(&before) {
            assert!(node.records() <= *before, "only the newcomer got more");
        }
        assert_eq!(peers.find(&query).await, [1; 21]);
        assert_eq!(peers.find(&words("txt")).await, [500; 21]);

        let gone = peers.die(20);
        peers.meet().await;
        assert_eq!(peers.find(&words("txt")).await, [500; 20]);
        assert!(peers.all.iter().all(|node| !node.kept().records.knows(&gone)));
        assert!(records(&peers) >= all, "what it kept is kept by others again");
    });
}

#[test]
fn who_came_and_was_not_told_yet_hides_nothing() {
    virtually(async {
        let mut peers = peers(10).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 10)).await;
        }
        peers.come(10);
        // All know it already, but the publishers have not told it anything yet.
        for node in &peers.all {
            let others = (0..=10).map(peer).filter(|other| *other != node.routing.me());
            node.routing.table.set(others.map(Into::into).collect());
        }
        for number in 0..10 {
            let name = Query::Name(format!("file 5 of {number}.txt").parse().unwrap());
            assert_eq!(peers.find(&name).await, [1; 11]);
        }
        assert_eq!(peers.find(&words("txt")).await, [100; 11]);
        assert_eq!(peers.all[10].records(), 0);
        assert!(peers.all[10].metrics.searches(Answered::Here) == 0);
    });
}

#[test]
fn who_dies_disappears_and_who_renews_does_not() {
    virtually(async {
        let mut peers = peers(12).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 1)).await;
        }
        peers.die(3);
        peers.meet().await;
        for _ in 0..4 {
            tokio::time::advance(LIFE / 3).await;
            peers.renew().await;
            peers.all.iter().for_each(|node| node.expire());
        }
        assert_eq!(peers.find(&words("file")).await, [11; 11]);
        let own = files(0, 1);
        peers.all[0].deregister(&own).await;
        assert_eq!(peers.find(&words("file")).await, [10; 11]);
        peers.all[1].leave().await;
        assert_eq!(peers.find(&words("file")).await, [9; 11]);
    });
}
