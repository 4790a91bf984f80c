
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
