//! Cancelled bookings stay in the tables but cost nothing, as the databases' own counts of rows read show.

use std::{thread, time::Duration};

use engine::Model;
use serde_json::json;
use store::Database;

use test_support::database_servers::{DatabaseServer, Kind};

use crate::{
    race,
    suite::Fixture,
    support::{booking_body, day, delete, get, options, post, serve},
};

/// Number of cancelled bookings of one room and day.
const CANCELLED: u64 = 900;
/// Number of requests for that room.
const ASKED: u64 = 10;
/// Multiplies the cancelled booking.
const MULTIPLY: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, \
                        booked_from, cancelled_at_us, cancelled_from) \
                        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                        SELECT room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, \
                        booked_from, cancelled_at_us, cancelled_from FROM bookings, n WHERE cancelled_at_us IS NOT NULL";

pub(crate) fn not_read_again(server: &DatabaseServer, fixture: &Fixture) {
    let booking = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = booking.local_addr();
    let first = post(to, &booking_body(Some(1), &day(1), 1), "").unwrap();
    assert_eq!(delete(to, &first.id(), "").status, 204);
    assert_eq!(post(to, &booking_body(Some(1), &day(1), 2), "").unwrap().status, 201);
    drop(booking);
    ask(server, fixture, MULTIPLY);
    ask(
        server,
        fixture,
        if server.kind() == Kind::Mariadb { "ANALYZE TABLE bookings" } else { "VACUUM ANALYZE bookings" },
    );

    let before = rows_read(server, fixture);
    let booking = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = booking.local_addr();
    let month = format!("from={}&to={}", day(0), day(30));
    for guest in 0..ASKED {
        let refused = post(to, &booking_body(Some(1), &day(1), guest), "").unwrap();
        assert_eq!((refused.status, &refused.json()["free_next"]["date"]), (409, &json!(day(2))));
        assert_eq!(get(to, &format!("/rooms/1?{month}")).json()["booked"], json!([{"date": day(1)}]));
        assert_eq!(
            get(to, &format!("/rooms?{month}")).json()["rooms"][0]["booked"],
            json!([{"date": day(1)}])
        );
    }
    drop(booking);
    let read = rows_read(server, fixture) - before;
    // Some rows belong to other tables and to this query.
    assert!(read > 0 && read < ASKED * CANCELLED / 2, "{read} rows were read");
}

/// Rows of bookings read so far, from tables and indexes, by sessions that have ended.
fn rows_read(server: &DatabaseServer, fixture: &Fixture) -> u64 {
    let others = match server.kind() {
        Kind::Mariadb => {
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        }
        Kind::Postgres => {
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        }
    };
    while ask(server, fixture, others) > 0 {
        thread::sleep(Duration::from_millis(20));
    }
    ask(
        server,
        fixture,
        match server.kind() {
            Kind::Mariadb => {
                "SELECT CAST(SUM(variable_value) AS INT) FROM information_schema.global_status \
             WHERE variable_name LIKE 'HANDLER_READ%'"
            }
            Kind::Postgres => {
                "SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'bookings') \
                  + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'bookings')"
            }
        },
    )
}

pub(crate) fn no_deadlocks(server: &DatabaseServer, fixture: &Fixture) {
    let deadlocks = match server.kind() {
        Kind::Mariadb => "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'",
        Kind::Postgres => "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    };
    let before = ask(server, fixture, deadlocks);
    race::one_hot_room(fixture);
    let found = ask(server, fixture, deadlocks) - before;
    let bookings = ask(server, fixture, "SELECT COUNT(*) FROM bookings");
    assert!(found < bookings, "{found} deadlocks for {bookings} bookings");
}

/// Runs a statement and returns the number it printed, or 0.
fn ask(server: &DatabaseServer, fixture: &Fixture, sql: &str) -> u64 {
    let url = fixture.database.url();
    let (_, name) = url.rsplit_once('/').unwrap();
    let answer = server.run(sql, Some(name)).unwrap();
    assert!(answer.status.success(), "{answer:?}");
    let said = String::from_utf8(answer.stdout).unwrap();
    said.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

/// SQLite does not count rows, but it shows its plan.
#[test]
fn what_was_cancelled_is_not_read_again_on_sqlite() {
    let fixture = Fixture::new(|folder| Database::Sqlite(folder.path().join("booking.db")));
    drop(serve(Model::Epoll, options(&fixture.database, fixture.folder())));
    let file = rusqlite::Connection::open(fixture.database.path().unwrap()).unwrap();
    let plan = "EXPLAIN QUERY PLAN SELECT day, slot FROM standing WHERE room = 1 AND day >= ? AND day <= ? \
                ORDER BY day, slot LIMIT 9";
    let plan: String = file.query_row(plan, ["", ""], |row| row.get(3)).unwrap();
    assert!(plan.contains("INDEX bookings_that_stand (room=? AND day>? AND day<?)"), "{plan}");
}
