//! The tables themselves.

use store::{Migration, Schema};

/// Rooms, and who booked them when. No row of bookings is ever deleted: what was booked and cancelled, when and from
/// where, stays to be looked up. That a room is not promised twice is a unique index over the bookings that stand.
pub(crate) const SCHEMA: Schema = Schema {
    name: "booking",
    // "nstb"
    application_id: 0x6e73_7462,
    migrations: &[Migration {
        name: "V1__booking",
        sqlite: V1_SQLITE,
        mysql: V1_MYSQL,
        postgres: V1_POSTGRES,
    }],
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

/// A unique index here takes in every row, so a generated column says which stand: NULL equals nothing.
const V1_MYSQL: &str = "
    CREATE TABLE IF NOT EXISTS settings (
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        value VARBINARY(255) NOT NULL
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS rooms (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL UNIQUE,
        slots VARCHAR(1000) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS bookings (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        room BIGINT NOT NULL,
        day CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        slot VARCHAR(11) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        name VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        aadhaar_hash BINARY(32) NOT NULL,
        aadhaar_last4 CHAR(4) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        request BINARY(32),
        version BIGINT NOT NULL,
        booked_at_us BIGINT NOT NULL,
        booked_from VARCHAR(45) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        cancelled_at_us BIGINT,
        cancelled_from VARCHAR(45) CHARACTER SET ascii COLLATE ascii_bin,
        stands TINYINT GENERATED ALWAYS AS (IF(cancelled_at_us IS NULL, 1, NULL)) VIRTUAL,
        UNIQUE INDEX bookings_that_stand (room, day, slot, stands),
        UNIQUE INDEX bookings_by_request (request),
        FOREIGN KEY (room) REFERENCES rooms (id)
    ) ENGINE = InnoDB;
";

/// Text that is only compared for order is kept in the order of its bytes.
const V1_POSTGRES: &str = "
    CREATE TABLE settings (
        name TEXT PRIMARY KEY,
        value BYTEA NOT NULL
    );
    CREATE TABLE rooms (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        slots TEXT COLLATE \"C\" NOT NULL
    );
    CREATE TABLE bookings (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        room BIGINT NOT NULL REFERENCES rooms (id),
        day TEXT COLLATE \"C\" NOT NULL,
        slot TEXT COLLATE \"C\" NOT NULL,
        name TEXT NOT NULL,
        aadhaar_hash BYTEA NOT NULL,
        aadhaar_last4 TEXT NOT NULL,
        request BYTEA,
        version BIGINT NOT NULL,
        booked_at_us BIGINT NOT NULL,
        booked_from TEXT NOT NULL,
        cancelled_at_us BIGINT,
        cancelled_from TEXT
    );
    CREATE UNIQUE INDEX bookings_that_stand ON bookings (room, day, slot) WHERE cancelled_at_us IS NULL;
    CREATE UNIQUE INDEX bookings_by_request ON bookings (request) WHERE request IS NOT NULL;
";
