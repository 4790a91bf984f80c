//! The tables themselves.

use store::{Migration, Schema};

/// Peers, and by which terms their files are found. A file has a row for its name (kind 0), for each word of it (1) and
/// for its content (2), each with all that an answer needs, so that a search is one look into one index. A peer's time
/// is kept once, so that renewing it is one row; one whose time is over loses its address and never comes back to life:
/// what it had may be swept away at leisure.
pub(crate) const SCHEMA: Schema = Schema {
    name: "share",
    // "nsts"
    application_id: 0x6e73_7473,
    migrations: &[Migration { name: "V1__share", sqlite: V1_SQLITE, mysql: V1_MYSQL, postgres: V1_POSTGRES }],
};

const V1_SQLITE: &str = "
    CREATE TABLE peers (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        address TEXT UNIQUE,
        expires_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE terms (
        id INTEGER PRIMARY KEY,
        kind INTEGER NOT NULL,
        term TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        peer INTEGER NOT NULL,
        size INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX terms_found ON terms (kind, term, name, hash, peer);
    CREATE INDEX terms_of_peer ON terms (peer, kind);
";

/// Names are kept as bytes: collations here would take some that differ for the same.
const V1_MYSQL: &str = "
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
";

const V1_POSTGRES: &str = "
    CREATE TABLE peers (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        address TEXT UNIQUE,
        expires_at_ms BIGINT NOT NULL
    );
    CREATE TABLE terms (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind BIGINT NOT NULL,
        term TEXT COLLATE \"C\" NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL,
        hash BYTEA NOT NULL,
        peer BIGINT NOT NULL,
        size BIGINT NOT NULL
    );
    CREATE UNIQUE INDEX terms_found ON terms (kind, term, name, hash, peer);
    CREATE INDEX terms_of_peer ON terms (peer, kind);
";
