
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
