//! The tables themselves.

use store::{Migration, Schema};

/// Rooms, and who booked them when. No row of bookings is ever deleted: what was booked and cancelled, when and from
/// where, stays to be looked up. That a room is not promised twice is a unique index over the bookings that stand; the
/// view `standing` shows these as each database finds them by that index. MariaDB's takes in every row, so a generated
/// column says which stand: NULL equals nothing.
pub(crate) const SCHEMA: Schema = Schema {
    name: "booking",
    // "nstb"
    application_id: 0x6e73_7462,
    migrations: &[
        Migration {
            name: "V1__booking",
            sqlite: include_str!("v1/sqlite.sql"),
            mysql: include_str!("v1/mysql.sql"),
            postgres: include_str!("v1/postgres.sql"),
        },
        Migration {
            name: "V2__standing",
            sqlite: include_str!("v2/sqlite.sql"),
            mysql: include_str!("v2/mysql.sql"),
            postgres: include_str!("v2/postgres.sql"),
        },
    ],
};
