//! Clients that book too often, and a disk that is almost full.

use engine::Model;
use http_io::server::Network;
use store::Database;

use crate::support::{booking_body, day, delete, options, post, serve};

#[test]
fn a_client_that_books_too_often_has_to_wait_and_another_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(&Database::Sqlite(folder.path().join("b.db")), folder.path());
    options.bookings_per_client = Some(2);
    options.server.proxies = ["127.0.0.1".parse::<Network>().unwrap()].into_iter().collect();
    let server = serve(Model::Epoll, options);
    let book = |guest: u64, from: &str| {
        let body = booking_body(None, &day(3 + i32::try_from(guest).unwrap()), guest);
        post(server.local_addr(), &body, &format!("X-Forwarded-For: {from}\r\n")).unwrap()
    };
    assert_eq!([book(1, "192.0.2.1"), book(2, "192.0.2.1")].map(|made| made.status), [201, 201]);
    let refused = book(3, "192.0.2.1");
    assert_eq!((refused.status, refused.field("retry-after")), (429, Some("1")), "{}", refused.body);
    assert_eq!(book(4, "192.0.2.2").status, 201);
}

#[test]
fn nothing_is_booked_once_the_disk_is_almost_full_and_bookings_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("b.db"));
    let options = |keep_free| {
        let mut options = options(&database, folder.path());
        options.keep_free = Some(keep_free);
        options
    };
    let server = serve(Model::Epoll, options(0));
    let made = post(server.local_addr(), &booking_body(Some(1), &day(3), 1), "").unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    drop(server);
    let server = serve(Model::Epoll, options(u64::MAX));
    let refused = post(server.local_addr(), &booking_body(Some(2), &day(3), 2), "").unwrap();
    assert!(refused.status == 507 && refused.body.contains("almost full"), "{}", refused.body);
    assert_eq!(delete(server.local_addr(), &made.id(), "").status, 204);
}
