//! Acknowledged bookings survive a kill, and repeating the requests books nothing twice.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use engine::Model;
use serde_json::json;

use crate::{
    suite::Fixture,
    support::{booking_body, day, get, options, post, serve},
};

const FOLDER: &str = "NSTAR_TEST_BOOKING_FOLDER";
const DATABASE: &str = "NSTAR_TEST_BOOKING_DATABASE";
const CLIENTS: u64 = 4;

/// Not a test: the server process that the other test starts and kills.
#[test]
fn server_process() {
    let (Some(folder), Ok(database)) = (std::env::var_os(FOLDER), std::env::var(DATABASE)) else { return };
    let mut options = options(&database.parse().unwrap(), folder.as_ref());
    options.rooms = 200;
    let server = serve(Model::Epoll, options);
    println!("\nlistening on {}", server.local_addr());
    server.join();
}

fn spawn(fixture: &Fixture) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::server_process", "--nocapture"])
        .env(FOLDER, fixture.folder())
        .env(DATABASE, fixture.database.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
        .expect("the server prints its address");
    (child, address.parse().unwrap())
}

/// Sends the `n`-th request of a client, which is the same each time.
fn request(to: SocketAddr, round: i32, client: u64, n: u64) -> Option<crate::support::Response> {
    let key = format!("Idempotency-Key: {round}-{client}-{n}\r\n");
    post(to, &booking_body(None, &day(1 + round), client), &key).ok()
}

/// Books from several connections until the server is killed. Returns the acknowledged ids, and how many requests each
/// client had to send.
fn book_until_killed(fixture: &Fixture, round: i32) -> (Vec<String>, u64) {
    let (mut child, to) = spawn(fixture);
    let acknowledged = AtomicUsize::new(0);
    let ids = thread::scope(|scope| {
        let acknowledged = &acknowledged;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let answers = (0..40)
                        .map_while(|n| request(to, round, client, n).filter(|answer| answer.status == 201));
                    answers
                        .map(|answer| {
                            acknowledged.fetch_add(1, SeqCst);
                            answer.id()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        while acknowledged.load(SeqCst) < 20 && !clients.iter().any(|client| client.is_finished()) {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    (ids, 40)
}

pub(crate) fn killed_server(fixture: &Fixture) {
    let rounds = 2;
    let kept: Vec<_> = (0..rounds).map(|round| book_until_killed(fixture, round)).collect();
    let mut options = options(&fixture.database, fixture.folder());
    options.rooms = 200;
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    for (ids, _) in &kept {
        assert!(ids.len() >= 20, "only {} were acknowledged", ids.len());
        for id in ids {
            assert_eq!(get(to, &format!("/bookings/{id}")).json()["cancelled"], json!(false), "{id} is lost");
        }
    }
    // The same keys again return the acknowledged bookings, and no room is taken twice.
    for (round, (ids, requests)) in (0..rounds).zip(&kept) {
        let again: BTreeSet<_> = (0..CLIENTS)
            .flat_map(|client| (0..*requests).map(move |n| request(to, round, client, n).unwrap().id()))
            .collect();
        assert_eq!(again.len() as u64, CLIENTS * requests);
        assert!(ids.iter().all(|id| again.contains(id)));
        let room_days = get(to, &format!("/rooms?from={0}&to={0}", day(1 + round))).json();
        let booked = room_days["rooms"].as_array().unwrap().iter();
        let booked: usize = booked.map(|room| room["booked"].as_array().unwrap().len()).sum();
        assert_eq!(booked, again.len(), "each promise takes one room");
    }
}
