//! The census: what a database holds, and a broken promise found.

use booking::{Census, census};
use database_server::Kind;
use engine::Model;
use store::Database;
use test_support::database_servers::DatabaseServer;

use crate::{
    suite::Bed,
    support::{day, delete, options, post, serve, wish},
};

/// Books a room twice, once the index that forbids it is gone.
const AGAIN: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) \
                     SELECT room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from \
                     FROM bookings WHERE cancelled_at_us IS NULL ORDER BY id LIMIT 1";

/// Three rooms on one day, one on the next and cancelled.
fn book_some(bed: &Bed) -> Census {
    let server = serve(Model::Epoll, options(&bed.database, bed.folder()));
    let to = server.local_addr();
    for guest in 0..3 {
        assert_eq!(post(to, &wish(None, &day(1), guest), "").unwrap().status, 201);
    }
    assert_eq!(post(to, &wish(None, &day(1), 3), "").unwrap().status, 409);
    let other = post(to, &wish(Some(1), &day(2), 4), "").unwrap();
    assert_eq!(delete(to, &other.id(), "").status, 204);
    Census { booked: 4, cancelled: 1, twice: 0, full_days: 1 }
}

pub(crate) fn what_a_database_holds(bed: &Bed) {
    let expected = book_some(bed);
    assert_eq!(census(&bed.database).unwrap(), expected);
}

/// The same row once more, put in behind the server's back.
pub(crate) fn a_broken_promise(server: &DatabaseServer, bed: &Bed) {
    let expected = book_some(bed);
    let url = bed.database.url();
    let (_, name) = url.rsplit_once('/').unwrap();
    let drop_index = match server.kind() {
        Kind::Mariadb => "ALTER TABLE bookings DROP INDEX bookings_that_stand",
        Kind::Postgres => "DROP INDEX bookings_that_stand",
    };
    for sql in [drop_index, AGAIN] {
        let done = server.run(sql, Some(name)).unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    assert_eq!(census(&bed.database).unwrap(), Census { booked: 5, twice: 1, ..expected });
}

#[test]
fn a_broken_promise_is_found_on_sqlite() {
    let bed = Bed::new(|folder| Database::Sqlite(folder.path().join("booking.db")));
    let expected = book_some(&bed);
    let file = rusqlite::Connection::open(bed.database.path().unwrap()).unwrap();
    file.execute_batch(&format!("DROP INDEX bookings_that_stand; {AGAIN}")).unwrap();
    drop(file);
    assert_eq!(census(&bed.database).unwrap(), Census { booked: 5, twice: 1, ..expected });
}
