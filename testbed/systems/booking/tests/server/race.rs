//! Many clients at once: nothing is booked twice, and the database holds what the responses said.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Barrier, Mutex},
    thread,
};

use engine::Model;
use serde_json::Value;

use crate::{
    suite::Fixture,
    support::{booking_body, day, delete, get, options, post, serve},
};

const CLIENTS: u64 = 12;
const DAYS: i32 = 4;

/// Every client books a room on every day. Half of them name a room, the others take any.
pub(crate) fn clients_for_rooms(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let promised = race(&[server.local_addr()]);
    assert_eq!(promised.len(), 3 * DAYS as usize, "every room is booked every day");
    assert_eq!(promised, stored(server.local_addr()));
}

pub(crate) fn two_servers(fixture: &Fixture) {
    let starting = Barrier::new(2);
    let servers: Vec<_> = thread::scope(|scope| {
        let start = || {
            starting.wait();
            serve(Model::Epoll, options(&fixture.database, fixture.folder()))
        };
        let both: Vec<_> = (0..2).map(|_| scope.spawn(start)).collect();
        both.into_iter().map(|server| server.join().unwrap()).collect()
    });
    let addresses: Vec<_> = servers.iter().map(|server| server.local_addr()).collect();
    assert_eq!(
        get(addresses[0], "/rooms").json()["rooms"].as_array().unwrap().len(),
        3,
        "the rooms are created once"
    );
    let promised = race(&addresses);
    assert_eq!(promised.len(), 3 * DAYS as usize);
    assert_eq!(promised, stored(addresses[1]));
}

/// Returns what the clients were promised. Panics if anything was promised twice.
fn race(to: &[SocketAddr]) -> BTreeSet<(i64, String)> {
    let promised = Mutex::new(BTreeSet::new());
    let barrier = Barrier::new(CLIENTS as usize);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (promised, barrier) = (&promised, &barrier);
            let to = to[client as usize % to.len()];
            scope.spawn(move || {
                barrier.wait();
                for ahead in 1..=DAYS {
                    let room = (client % 2 == 0).then_some(1 + (client / 2) as i64 % 3);
                    let answer = post(to, &booking_body(room, &day(ahead), client), "").unwrap();
                    match answer.status {
                        201 => {
                            assert!(promised.lock().unwrap().insert(booked(&answer.json())), "promised twice")
                        }
                        409 => assert!(answer.json()["free_next"].is_object(), "{}", answer.body),
                        other => panic!("{other}: {}", answer.body),
                    }
                }
            });
        }
    });
    promised.into_inner().unwrap()
}

/// The bookings in the database.
fn stored(to: SocketAddr) -> BTreeSet<(i64, String)> {
    let rooms = get(to, &format!("/rooms?from={}&to={}", day(0), day(30))).json();
    let rooms = rooms["rooms"].as_array().unwrap().clone();
    let mut stored = BTreeSet::new();
    for room in rooms {
        for time in room["booked"].as_array().unwrap() {
            let (room, date) = (room["id"].as_i64().unwrap(), time["date"].as_str().unwrap().to_owned());
            assert!(stored.insert((room, date)), "the database holds a booking twice");
        }
    }
    stored
}

fn booked(booking: &Value) -> (i64, String) {
    (booking["room"].as_i64().unwrap(), booking["date"].as_str().unwrap().to_owned())
}

/// Clients cancel most of what they book, and there are never enough rooms.
pub(crate) fn booking_and_cancelling(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let kept: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8_u64)
            .map(|client| {
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for round in 0..12 {
                        let made = post(to, &booking_body(None, &day(1 + round % 3), client), "").unwrap();
                        if made.status == 409 {
                            continue;
                        }
                        assert_eq!(made.status, 201, "{}", made.body);
                        if (client + round as u64).is_multiple_of(3) {
                            kept.push(booked(&made.json()));
                        } else {
                            assert_eq!(delete(to, &made.id(), "").status, 204);
                        }
                    }
                    kept
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let distinct: BTreeSet<_> = kept.iter().cloned().collect();
    assert_eq!(distinct.len(), kept.len(), "promised twice");
    assert_eq!(distinct, stored(to));
}

/// All clients book and cancel one room on one day. A transaction that the database rolls back as a deadlock must be
/// retried.
pub(crate) fn one_hot_room(fixture: &Fixture) {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    thread::scope(|scope| {
        for client in 0..16_u64 {
            scope.spawn(move || {
                for _ in 0..25 {
                    let made = post(to, &booking_body(Some(1), &day(1), client), "").unwrap();
                    match made.status {
                        201 => assert_eq!(delete(to, &made.id(), "").status, 204),
                        409 => {}
                        other => panic!("{other}: {}", made.body),
                    }
                }
            });
        }
    });
    assert_eq!(stored(to), BTreeSet::new());
}
