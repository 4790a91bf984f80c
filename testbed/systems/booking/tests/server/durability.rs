//! What was acknowledged is there after a kill, and nothing is booked twice by asking again.

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
    suite::Bed,
    support::{day, get, options, post, serve, wish},
};

const FOLDER: &str = "NSTAR_TEST_BOOKING_FOLDER";
const DATABASE: &str = "NSTAR_TEST_BOOKING_DATABASE";
const CLIENTS: u64 = 4;

/// Not a test by itself: the server that the other test runs as a process of its own, and kills.
#[test]
fn server_process() {
    let (Some(folder), Ok(database)) = (std::env::var_os(FOLDER), std::env::var(DATABASE)) else { return };
    let mut options = options(&database.parse().unwrap(), folder.as_ref());
    options.rooms = 200;
    let server = serve(Model::Epoll, options);
    println!("\nlistening on {}", server.local_addr());
    server.join();
}

fn spawn(bed: &Bed) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::server_process", "--nocapture"])
        .env(FOLDER, bed.folder())
        .env(DATABASE, bed.database.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
        .expect("the server says where it listens");
    (child, address.parse().unwrap())
}

/// A client's counter, so that its `n`-th request is the same whenever it is asked.
fn request(to: SocketAddr, round: i32, client: u64, n: u64) -> Option<crate::support::Response> {
    let key = format!("Idempotency-Key: {round}-{client}-{n}\r\n");
    post(to, &wish(None, &day(1 + round), client), &key).ok()
}

/// Books from several connections until the server is killed; returns the acknowledged ids, and how many requests each
/// client sent.
fn book_until_killed(bed: &Bed, round: i32) -> (Vec<String>, u64) {
    let (mut child, to) = spawn(bed);
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

pub(crate) fn killed_server(bed: &Bed) {
    let rounds = 2;
    let kept: Vec<_> = (0..rounds).map(|round| book_until_killed(bed, round)).collect();
    let mut options = options(&bed.database, bed.folder());
    options.rooms = 200;
    let server = serve(Model::Epoll, options);
    let to = server.local_addr();
    for (ids, _) in &kept {
        assert!(ids.len() >= 20, "only {} were acknowledged", ids.len());
        for id in ids {
            assert_eq!(get(to, &format!("/bookings/{id}")).json()["cancelled"], json!(false), "{id} is lost");
        }
    }
    // Asked again with the same keys, the bookings that were acknowledged are answered, and no room is taken twice.
    for (round, (ids, requests)) in (0..rounds).zip(&kept) {
        let again: BTreeSet<_> = (0..CLIENTS)
            .flat_map(|client| (0..*requests).map(move |n| request(to, round, client, n).unwrap().id()))
            .collect();
        assert_eq!(again.len() as u64, CLIENTS * requests);
        assert!(ids.iter().all(|id| again.contains(id)));
        let room_days = get(to, &format!("/rooms?from={0}&to={0}", day(1 + round))).json();
        let booked = room_days["rooms"].as_array().unwrap().iter();
        let booked: usize = booked.map(|room| room["booked"].as_array().unwrap().len()).sum();
        assert_eq!(booked, again.len(), "as many rooms are taken as promises were made");
    }
}
