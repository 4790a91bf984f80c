//! The tables themselves.

use store::{Migration, Schema};

/// Rooms, and who booked them when. No row of bookings is ever deleted: what was booked and cancelled, when and from
/// where, stays to be looked up. That a room is not promised twice is a unique index over the bookings that stand.
pub(crate) const SCHEMA: Schema = Schema {
    name: "booking",
    // "nstb"
    application_id: 0x6e73_7462,
    migrations: &[Migration { name: "V1__booking", sqlite: V1_SQLITE }],
};

const V1_SQLITE: &str = "
    CREATE TABLE settings (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE rooms (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        slots TEXT NOT NULL
    ) STRICT;
    CREATE TABLE bookings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        room INTEGER NOT NULL REFERENCES rooms (id),
        day TEXT NOT NULL,
        slot TEXT NOT NULL,
        name TEXT NOT NULL,
        aadhaar_hash BLOB NOT NULL,
        aadhaar_last4 TEXT NOT NULL,
        request BLOB,
        version INTEGER NOT NULL,
        booked_at_us INTEGER NOT NULL,
        booked_from TEXT NOT NULL,
        cancelled_at_us INTEGER,
        cancelled_from TEXT
    ) STRICT;
    CREATE UNIQUE INDEX bookings_that_stand ON bookings (room, day, slot) WHERE cancelled_at_us IS NULL;
    CREATE UNIQUE INDEX bookings_by_request ON bookings (request) WHERE request IS NOT NULL;
";
