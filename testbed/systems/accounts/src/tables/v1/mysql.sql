
    CREATE TABLE IF NOT EXISTS accounts (
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        password_hash VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        created_at_s BIGINT NOT NULL
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS sessions (
        token_digest BINARY(32) NOT NULL PRIMARY KEY,
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        expires_at_s BIGINT NOT NULL,
        INDEX sessions_by_expiry (expires_at_s)
    ) ENGINE = InnoDB;
