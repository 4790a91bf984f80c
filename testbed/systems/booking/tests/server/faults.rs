//! A database server that is down, full, or wrongly configured.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};

use engine::Model;
use serde_json::json;
use store::Database;

use test_support::database_servers::{DatabaseServer, Kind};

use crate::{
    suite::Fixture,
    support::{booking_body, day, get, options, post, serve},
};

const CLIENTS: u64 = 6;
/// Requests per client.
const REQUESTS: u64 = 16;

/// The database is killed with SIGKILL under load. Acknowledged bookings are there when it is back, and the same keys book
/// nothing twice.
pub(crate) fn killed_database(server: &DatabaseServer, fixture: &Fixture) {
    let mut options = options(&fixture.database, fixture.folder());
    options.rooms = 300;
    let booking = serve(Model::Epoll, options);
    let to = booking.local_addr();
    let request = |client: u64, n: u64| {
        post(to, &booking_body(None, &day(1), client), &format!("Idempotency-Key: {client}-{n}\r\n")).unwrap()
    };
    let acknowledged = AtomicUsize::new(0);
    let ids: Vec<String> = thread::scope(|scope| {
        let (acknowledged, request) = (&acknowledged, &request);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    for answer in (0..REQUESTS).map(|n| request(client, n)) {
                        match answer.status {
                            201 => ids.push(answer.id()),
                            503 => assert!(answer.body.contains("database"), "{}", answer.body),
                            other => panic!("{other}: {}", answer.body),
                        }
                        acknowledged.fetch_add(1, SeqCst);
                    }
                    ids
                })
            })
            .collect();
        while acknowledged.load(SeqCst) < 25 {
            thread::yield_now();
        }
        server.kill();
        server.restart();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert!(ids.len() >= 15, "only {} were acknowledged", ids.len());
    for id in &ids {
        // For a moment after a failure to connect the server does not try again, and says so.
        let found = (0..200).map(|_| get(to, &format!("/bookings/{id}"))).find(|answer| answer.status != 503);
        let found = found.expect("the server never recovers");
        assert_eq!(found.json()["cancelled"], json!(false), "{id} is lost: {}", found.body);
    }
    let mut again: Vec<_> = (0..CLIENTS)
        .flat_map(|client| (0..REQUESTS).map(move |n| (client, n)))
        .map(|(client, n)| request(client, n).id())
        .collect();
    assert!(ids.iter().all(|id| again.contains(id)));
    again.sort_unstable();
    again.dedup();
    let rooms = get(to, &format!("/rooms?from={0}&to={0}", day(1))).json();
    let booked =
        rooms["rooms"].as_array().unwrap().iter().map(|room| room["booked"].as_array().unwrap().len());
    assert_eq!(booked.sum::<usize>(), again.len(), "each promise takes one room");
}

/// Connections that the database closed while idle are reopened without an error.
pub(crate) fn database_restarted(server: &DatabaseServer, fixture: &Fixture) {
    let booking = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = booking.local_addr();
    let first = post(to, &booking_body(Some(1), &day(1), 1), "").unwrap();
    assert_eq!(first.status, 201, "{}", first.body);
    server.kill();
    let away = post(to, &booking_body(Some(1), &day(2), 1), "").unwrap();
    assert_eq!((away.status, away.field("retry-after")), (503, Some("1")), "{}", away.body);
    assert!(away.json()["error"].as_str().unwrap().contains("database"), "{}", away.body);
    assert_eq!(get(to, "/healthz").status, 200);
    server.restart();
    // The server pauses between its tries to connect.
    let back = (0..200)
        .map(|_| post(to, &booking_body(Some(1), &day(3), 1), "").unwrap())
        .find(|answer| answer.status == 201);
    assert!(back.is_some(), "the server never recovers");
    assert_eq!(get(to, &format!("/bookings/{}", first.id())).status, 200);
}

/// When the database accepts no more connections, a running server continues with those it has, and another explains why it
/// does not start.
pub(crate) fn too_many_connections(server: &DatabaseServer, fixture: &Fixture) {
    let booking = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = booking.local_addr();
    assert_eq!(post(to, &booking_body(Some(1), &day(1), 1), "").unwrap().status, 201);
    let _sleepers = server.take_all_connections();
    let error =
        booking::factory(options(&fixture.database, fixture.folder())).map(drop).unwrap_err().to_string();
    assert!(error.contains("too many connections") && error.contains("max_connections"), "{error}");
    thread::scope(|scope| {
        for client in 0..10 {
            scope.spawn(move || {
                let answer = post(to, &booking_body(None, &day(2 + client as i32), client), "").unwrap();
                assert_eq!(answer.status, 201, "{}", answer.body);
            });
        }
    });
}

/// A server that is down, a database that does not exist, and a wrong password.
pub(crate) fn what_cannot_be_opened(server: &DatabaseServer, fixture: &Fixture) {
    let opened = |url: &str| {
        let database: Database = url.parse().unwrap();
        booking::factory(options(&database, fixture.folder())).map(drop).unwrap_err().to_string()
    };
    let missing = opened(&server.url_with("nstar_missing", server.password()));
    assert!(missing.contains("CREATE DATABASE") && missing.contains("nstar_missing"), "{missing}");
    let secret = "a-secret-word";
    let refused = opened(&server.url_with("nstar_0", secret));
    assert!(refused.contains("user or password") && !refused.contains(secret), "{refused}");
    if server.kind() == Kind::Mariadb {
        let rights = opened(&server.url_with("mysql", server.password()));
        assert!(rights.contains("GRANT"), "{rights}");
    }
    // Bound without listening: no other test gets the port.
    let bound = engine::Listeners::bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
    let closed = bound.address().port();
    let away = server.url("nstar_0");
    let (scheme, _) = away.split_once("://").unwrap();
    let down = opened(&format!("{scheme}://ann:{secret}@127.0.0.1:{closed}/x"));
    assert!(
        down.contains("cannot be reached") && down.contains(&closed.to_string()) && !down.contains(secret),
        "{down}"
    );
}
