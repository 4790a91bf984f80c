//! A database of the previous version.

use engine::Model;
use serde_json::json;
use store::{Migration, Schema, Statement, Store};

use crate::{
    suite::Fixture,
    support::{booking_body, day, get, options, post, serve},
};

/// The first schema, in which standing bookings had no index of their own.
const BEFORE: Schema = Schema {
    name: "booking",
    application_id: 0x6e73_7462,
    migrations: &[Migration {
        name: "V1__booking",
        sqlite: include_str!("../../src/tables/v1/sqlite.sql"),
        mysql: include_str!("../../src/tables/v1/mysql.sql"),
        postgres: include_str!("../../src/tables/v1/postgres.sql"),
    }],
};

pub(crate) fn version_before(fixture: &Fixture) {
    let mut before = Store::prepare(&fixture.database, &BEFORE).unwrap();
    let booking = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, \
                   booked_from, cancelled_at_us) VALUES (1, ?, '', 'Asha Rao', ?, '1234', 1, 7, '127.0.0.1', ?)";
    let booking = |day: String, cancelled: Option<i64>| {
        Statement::new(booking).with(day).with(&[7; 32][..]).with(cancelled)
    };
    let room = Statement::new("INSERT INTO rooms (name, slots) VALUES ('Lake view', '')");
    before.insert_all(&[room, booking(day(1), None), booking(day(2), Some(8))]).unwrap();
    drop(before);

    let server = serve(Model::Epoll, options(&fixture.database, fixture.folder()));
    let to = server.local_addr();
    assert_eq!(get(to, "/rooms/1").json()["booked"], json!([{"date": day(1)}]));
    assert_eq!(post(to, &booking_body(Some(1), &day(1), 1), "").unwrap().status, 409);
    assert_eq!(post(to, &booking_body(Some(1), &day(2), 1), "").unwrap().status, 201);
    let refused = Store::prepare(&fixture.database, &BEFORE).map(drop).unwrap_err().to_string();
    assert!(refused.contains("use the newer nstar"), "{refused}");
}
