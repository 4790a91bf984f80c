
    CREATE TABLE IF NOT EXISTS peers (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        address VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin UNIQUE,
        expires_at_ms BIGINT NOT NULL
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS terms (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        kind BIGINT NOT NULL,
        term VARBINARY(255) NOT NULL,
        name VARBINARY(255) NOT NULL,
        hash BINARY(32) NOT NULL,
        peer BIGINT NOT NULL,
        size BIGINT NOT NULL,
        UNIQUE INDEX terms_found (kind, term, name, hash, peer),
        INDEX terms_of_peer (peer, kind)
    ) ENGINE = InnoDB;
