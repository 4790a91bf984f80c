//! Peers that share an index, in virtual time.

mod hostile;
mod partitioned;
mod world;

use std::{sync::Arc, time::Duration};

use share::{Content, entry::Query};

use self::world::{LIFE, Peers, files, virtually, words};
use crate::{key::Key, metrics::Answered, network::Routing, placement::Placement, testing::peer};

#[test]
fn few_peers_find_everything_without_asking() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 8).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 20)).await;
        }
        assert_eq!(peers.find(&words("txt")).await, [160; 8]);
        assert_eq!(peers.find(&words("3 of 5")).await, [2; 8], "3 of 5, and 5 of 3");
        assert_eq!(peers.find(&Query::Content(Content::of(b"7 19"))).await, [1; 8]);
        assert_eq!(peers.find(&Query::Name("file 1 of 2.txt".parse().unwrap())).await, [1; 8]);
        assert_eq!(peers.find(&words("nothing")).await, [0; 8]);
        let here: u64 = peers.all.iter().map(|node| node.metrics.searches(Answered::Here)).sum();
        assert_eq!(here, 40);
        let messages: u64 = peers.all.iter().map(|node| node.metrics.sent_of("find")).sum();
        assert_eq!(messages, 0);
    });
}

#[test]
fn among_many_peers_a_search_asks_three() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 60).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 3)).await;
        }
        assert_eq!(peers.find(&Query::Name("file 1 of 33.txt".parse().unwrap())).await, [1; 60]);
        assert_eq!(peers.find(&words("59")).await, [3; 60]);
        assert_eq!(peers.find(&words("file")).await, [180; 60]);
        let messages: u64 = peers.all.iter().map(|node| node.metrics.sent_of("find")).sum();
        assert!(messages <= 3 * 180, "{messages}");
        let placed: usize = peers.all.iter().map(|node| node.records()).sum();
        // A file has seven or eight keys (its two numbers may be equal), each at eight holders and at the publisher.
        assert!((180 * 6 * 8..=180 * 8 * 9).contains(&placed), "{placed}");
    });
}

#[test]
fn who_comes_is_told_and_until_then_asks() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 3).await;
        peers.all[0].register(&files(0, 5)).await;
        peers.come(3);
        let newcomer = Arc::clone(&peers.all[3]);
        newcomer.routing.table.set((0..3).map(|number| peer(number).into()).collect());
        assert_eq!(newcomer.search_here(&words("file")), None, "nobody told it anything yet");
        assert_eq!(newcomer.search(&words("file")).await.len(), 5);
        peers.meet().await;
        assert_eq!(newcomer.search_here(&words("file")).map(|found| found.len()), Some(5));
    });
}

#[test]
fn who_dies_disappears_and_who_renews_does_not() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 4).await;
        for (number, node) in peers.all.iter().enumerate() {
            node.register(&files(number, 1)).await;
        }
        peers.die(3);
        for _ in 0..4 {
            tokio::time::advance(LIFE / 3).await;
            peers.renew().await;
            peers.all.iter().for_each(|node| node.expire());
        }
        assert_eq!(peers.find(&words("file")).await, [3; 3]);
        assert!(peers.all.iter().all(|node| !node.kept().records.knows(&peer(3))));
    });
}

#[test]
fn what_is_deregistered_and_who_leaves_is_not_found() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 5).await;
        let own = files(0, 3);
        peers.all[0].register(&own).await;
        peers.all[1].register(&own[..1]).await;
        peers.all[0].deregister(&own[1..]).await;
        assert_eq!(peers.find(&words("file")).await, [2; 5]);
        peers.all[0].leave().await;
        peers.all[0].rearrange().await;
        assert_eq!(peers.find(&words("file")).await, [1; 5]);
    });
}

#[test]
fn who_forgot_is_told_again_when_it_is_renewed() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 3).await;
        peers.all[0].register(&files(0, 2_500)).await;
        peers.die(2);
        peers.come(2);
        peers.meet().await;
        // The others knew it before, and believe that it still has their records.
        peers.renew().await;
        assert_eq!(peers.all[2].search_here(&words("file")).map(|found| found.len()), Some(1000));
        assert_eq!(peers.all[2].kept().records.files(peer(0)), 2_500);
    });
}

#[test]
fn the_dead_among_those_asked_are_replaced() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 60).await;
        peers.all[7].register(&files(7, 1)).await;
        let query = words("txt");
        let holders = peers.all[7].routing.look_up(&Key::of_query(&query).unwrap()).await;
        for dead in holders.iter().filter(|holder| **holder != peer(7)).take(5) {
            let at = peers.all.iter().position(|node| node.routing.me() == *dead).unwrap();
            peers.die(at);
        }
        assert!(peers.find(&query).await.iter().all(|found| *found == 1));
    });
}

#[test]
fn what_was_there_first_is_found_by_all_that_came_since() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 30).await;
        peers.all[0].register(&files(0, 20)).await;
        (30..150).for_each(|number| peers.come(number));
        peers.meet().await;
        for file in files(0, 20) {
            assert_eq!(peers.find(&Query::Name(file.name.clone())).await, [1; 150], "{:?}", file.name);
        }
    });
}

#[test]
fn among_those_asked_who_knows_of_nothing_hides_nothing() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 60).await;
        peers.all[7].register(&files(7, 1)).await;
        let query = words("txt");
        let holders = peers.all[7].routing.look_up(&Key::of_query(&query).unwrap()).await;
        for node in peers.all.iter().filter(|node| holders[..7].contains(&node.routing.me())) {
            node.kept().records.forget(peer(7), &files(7, 1));
        }
        assert!(peers.find(&query).await.iter().all(|found| *found == 1));
    });
}

#[test]
fn who_is_misled_once_about_those_that_answer_hides_nothing() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 250).await;
        let renew_until_looked_up_anew = || async {
            for _ in 0..3 {
                tokio::time::advance(LIFE / 3).await;
                peers.renew().await;
                peers.all.iter().for_each(|node| node.expire());
            }
        };
        let find_all = || async {
            for file in files(0, 30) {
                assert_eq!(peers.find(&Query::Name(file.name.clone())).await, [1; 250], "{:?}", file.name);
            }
        };
        let records = || peers.all.iter().map(|node| node.records()).sum::<usize>();
        peers.all[0].register(&files(0, 30)).await;
        let before = records();
        peers.mislead(peer(0), true);
        renew_until_looked_up_anew().await;
        let meanwhile = records();
        assert!(meanwhile > before, "others were told");
        find_all().await;
        peers.mislead(peer(0), false);
        for _ in 0..2 {
            renew_until_looked_up_anew().await;
            find_all().await;
        }
        assert!(records() < meanwhile, "they need not keep it for ever: {before} {meanwhile} {}", records());
    });
}

#[test]
fn what_is_registered_again_and_then_no_longer_shared_is_kept_by_nobody() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 30).await;
        let own = files(0, 5);
        peers.all[0].register(&own).await;
        (30..120).for_each(|number| peers.come(number));
        peers.meet().await;
        peers.all[0].register(&own).await;
        peers.all[0].deregister(&own).await;
        let records: Vec<_> = peers.all.iter().map(|node| node.records()).collect();
        assert!(records.iter().all(|kept| *kept == 0), "{records:?}");
    });
}

#[test]
fn those_asked_that_fall_silent_hold_up_a_search_for_a_moment() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 60).await;
        peers.all[7].register(&files(7, 1)).await;
        let query = words("txt");
        let holders = peers.all[7].routing.look_up(&Key::of_query(&query).unwrap()).await;
        let silent: Vec<_> = holders.into_iter().filter(|holder| *holder != peer(7)).take(5).collect();
        silent.iter().for_each(|holder| peers.fall_silent(*holder));
        for node in peers.all.iter().filter(|node| !silent.contains(&node.routing.me())) {
            let since = tokio::time::Instant::now();
            assert_eq!(node.search(&query).await.len(), 1);
            assert!(since.elapsed() <= Duration::from_millis(1_500), "{:?}", since.elapsed());
        }
    });
}

#[test]
fn what_went_while_a_peer_was_down_is_found_no_longer_once_it_is_back() {
    virtually(async {
        let mut peers = Peers::new(Placement::Nearest, 3).await;
        peers.all[2].register(&files(2, 2)).await;
        peers.die(2);
        peers.come(2);
        peers.all[2].register(&files(2, 1)).await;
        peers.meet().await;
        assert_eq!(peers.find(&words("file")).await, [1; 3]);
        peers.die(2);
        peers.come(2);
        peers.meet().await;
        peers.renew().await;
        assert_eq!(peers.find(&words("file")).await, [0; 3], "it has nothing now, and says so");
    });
}

#[test]
fn what_goes_while_a_holder_is_not_reached_is_forgotten_when_it_is_again() {
    virtually(async {
        let peers = Peers::new(Placement::Nearest, 3).await;
        let own = files(0, 2_500);
        peers.all[0].register(&own).await;
        let unreached = peers.world.living.write().unwrap().remove(&peer(2)).unwrap();
        peers.all[0].deregister(&own[..1]).await;
        peers.world.living.write().unwrap().insert(peer(2), unreached);
        peers.renew().await;
        let gone = Query::Content(own[0].content);
        assert_eq!(peers.find(&gone).await, [0; 3]);
        assert_eq!(peers.all[2].kept().records.files(peer(0)), 2_499);
        assert!(peers.all[2].search_here(&gone).is_some(), "it was told all again");
    });
}
