
    CREATE TABLE settings (
        name TEXT PRIMARY KEY,
        value BYTEA NOT NULL
    );
    CREATE TABLE rooms (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        slots TEXT COLLATE "C" NOT NULL
    );
    CREATE TABLE bookings (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        room BIGINT NOT NULL REFERENCES rooms (id),
        day TEXT COLLATE "C" NOT NULL,
        slot TEXT COLLATE "C" NOT NULL,
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
