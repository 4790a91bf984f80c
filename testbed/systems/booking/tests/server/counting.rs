//! The census counts what a database holds and finds double bookings.

use booking::{Census, census, fill, full_days};
use database_server::Kind;
use engine::Model;
use store::Database;

use test_support::database_servers::DatabaseServer;

use crate::{
    suite::Fixture,
    support::{booking_body, day, delete, options, post, serve},
};

/// Books a room twice. Works once the unique index is dropped.
const BOOK_AGAIN: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) \
                     SELECT room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from \
                     FROM bookings WHERE cancelled_at_us IS NULL ORDER BY id LIMIT 1";

/// Books three rooms on one day, and one on the next day that is cancelled.
fn book_some(fixture: &Fixture) -> Census {
    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    for guest in 0..3 {
        assert_eq!(post(to, &booking_body(None, &day(1), guest), "").unwrap().status, 201);
    }
    assert_eq!(post(to, &booking_body(None, &day(1), 3), "").unwrap().status, 409);
    let other = post(to, &booking_body(Some(1), &day(2), 4), "").unwrap();
    assert_eq!(delete(to, &other.id(), "").status, 204);
    Census { booked: 4, cancelled: 1, twice: 0 }
}

pub(crate) fn what_a_database_holds(fixture: &Fixture) {
    let expected = book_some(fixture);
    assert_eq!(census(&fixture.database).unwrap(), expected);
    assert_eq!(full_days(&fixture.database).unwrap(), 1);
}

/// Bookings that the database was filled with are in the way of others like any, but are nobody's.
pub(crate) fn without_what_it_was_filled_with(fixture: &Fixture) {
    drop(serve(Model::Epoll, options(&fixture.database, fixture.folder())));
    let too_many = fill(&fixture.database, 3 * 1800).unwrap_err().to_string();
    assert!(too_many.contains("has 3 rooms") && too_many.contains("need 6"), "{too_many}");
    for rows in [0, 3 * 900] {
        fill(&fixture.database, rows).unwrap();
    }
    assert_eq!(census(&fixture.database).unwrap(), Census::default());
    let again = fill(&fixture.database, 1).unwrap_err().to_string();
    assert!(again.contains("already holds bookings"), "{again}");

    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    let (mut booked, mut taken) = (0, 0);
    for room in 1..=3 {
        for ahead in 1..=4 {
            match post(to, &booking_body(Some(room), &day(ahead), ahead as u64), "").unwrap().status {
                201 => booked += 1,
                409 => taken += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert!(booked > 0 && taken > 0, "{booked} booked, {taken} taken");
    assert_eq!(census(&fixture.database).unwrap(), Census { booked, ..Census::default() });
}

/// Inserts the same row once more without the server.
pub(crate) fn a_broken_promise(server: &DatabaseServer, fixture: &Fixture) {
    let expected = book_some(fixture);
    let url = fixture.database.url();
    let (_, name) = url.rsplit_once('/').unwrap();
    let drop_index = match server.kind() {
        // The foreign key needs an index.
        Kind::Mariadb => "ALTER TABLE bookings DROP INDEX bookings_that_stand, ADD INDEX (room)",
        Kind::Postgres => "DROP INDEX bookings_that_stand",
    };
    for sql in [drop_index, BOOK_AGAIN] {
        let done = server.run(sql, Some(name)).unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    assert_eq!(census(&fixture.database).unwrap(), Census { booked: 5, twice: 1, ..expected });
}

#[test]
fn a_broken_promise_is_found_on_sqlite() {
    let fixture = Fixture::new(|folder| Database::Sqlite(folder.path().join("booking.db")));
    let expected = book_some(&fixture);
    let file = rusqlite::Connection::open(fixture.database.path().unwrap()).unwrap();
    file.execute_batch(&format!("DROP INDEX bookings_that_stand; {BOOK_AGAIN}")).unwrap();
    drop(file);
    assert_eq!(census(&fixture.database).unwrap(), Census { booked: 5, twice: 1, ..expected });
}
