//! The tables themselves.

use store::{Migration, Schema};

/// Accounts, the sessions of their owners, which of them were revoked, and who did what.
pub(crate) const SCHEMA: Schema = Schema {
    name: "accounts",
    // "nsta"
    application_id: 0x6e73_7461,
    migrations: &[
        Migration { name: "V1__accounts", sqlite: V1_SQLITE, mysql: V1_MYSQL, postgres: V1_POSTGRES },
        Migration { name: "V2__administration", sqlite: V2_SQLITE, mysql: V2_MYSQL, postgres: V2_POSTGRES },
    ],
};

const V1_SQLITE: &str = "
    CREATE TABLE IF NOT EXISTS accounts (
        name TEXT PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS sessions (
        token_digest BLOB PRIMARY KEY,
        name TEXT NOT NULL,
        expires_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS sessions_by_expiry ON sessions (expires_at_s);
";

const V1_MYSQL: &str = "
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
";

const V1_POSTGRES: &str = "
    CREATE TABLE accounts (
        name TEXT COLLATE \"C\" PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s BIGINT NOT NULL
    );
    CREATE TABLE sessions (
        token_digest BYTEA PRIMARY KEY,
        name TEXT COLLATE \"C\" NOT NULL,
        expires_at_s BIGINT NOT NULL
    );
    CREATE INDEX sessions_by_expiry ON sessions (expires_at_s);
";

/// A session holds the version of its account's credential, and ends when that rises. `revocations` says at which
/// revision something was last revoked of the accounts in a bucket (see [`crate::revocations`]): it never holds more
/// rows than there are buckets.
const V2_SQLITE: &str = "
    ALTER TABLE accounts ADD COLUMN role TEXT NOT NULL DEFAULT 'user';
    ALTER TABLE accounts ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE accounts ADD COLUMN expires_at_s INTEGER;
    ALTER TABLE accounts ADD COLUMN quota_bytes INTEGER;
    ALTER TABLE accounts ADD COLUMN credential_version INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE sessions ADD COLUMN credential_version INTEGER NOT NULL DEFAULT 1;
    CREATE TABLE revision (
        id INTEGER PRIMARY KEY,
        value INTEGER NOT NULL
    ) STRICT;
    INSERT INTO revision (id, value) VALUES (1, 1);
    CREATE TABLE revocations (
        bucket INTEGER PRIMARY KEY,
        revision INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX revocations_by_revision ON revocations (revision);
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at_s INTEGER NOT NULL,
        actor TEXT NOT NULL,
        address TEXT NOT NULL,
        action TEXT NOT NULL,
        account TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
";

/// Columns are added by a statement that is put together here, as MySQL knows no `ADD COLUMN IF NOT EXISTS`: done
/// again after it was cut off, each does nothing.
const V2_MYSQL: &str = "
    SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns WHERE table_schema = DATABASE()
        AND table_name = 'accounts' AND column_name = 'credential_version');
    SET @change = IF(@missing, 'ALTER TABLE accounts
        ADD COLUMN role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''user'',
        ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN expires_at_s BIGINT,
        ADD COLUMN quota_bytes BIGINT,
        ADD COLUMN credential_version BIGINT NOT NULL DEFAULT 1', 'DO 0');
    PREPARE change_table FROM @change;
    EXECUTE change_table;
    DEALLOCATE PREPARE change_table;
    SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns WHERE table_schema = DATABASE()
        AND table_name = 'sessions' AND column_name = 'credential_version');
    SET @change = IF(@missing, 'ALTER TABLE sessions
        ADD COLUMN credential_version BIGINT NOT NULL DEFAULT 1', 'DO 0');
    PREPARE change_table FROM @change;
    EXECUTE change_table;
    DEALLOCATE PREPARE change_table;
    CREATE TABLE IF NOT EXISTS revision (
        id BIGINT NOT NULL PRIMARY KEY,
        value BIGINT NOT NULL
    ) ENGINE = InnoDB;
    INSERT IGNORE INTO revision (id, value) VALUES (1, 1);
    CREATE TABLE IF NOT EXISTS revocations (
        bucket BIGINT NOT NULL PRIMARY KEY,
        revision BIGINT NOT NULL,
        INDEX revocations_by_revision (revision)
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS audit (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        at_s BIGINT NOT NULL,
        actor VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        address VARCHAR(45) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        action VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        account VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        detail VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    ) ENGINE = InnoDB;
";

const V2_POSTGRES: &str = "
    ALTER TABLE accounts
        ADD COLUMN role TEXT NOT NULL DEFAULT 'user',
        ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN expires_at_s BIGINT,
        ADD COLUMN quota_bytes BIGINT,
        ADD COLUMN credential_version BIGINT NOT NULL DEFAULT 1;
    ALTER TABLE sessions ADD COLUMN credential_version BIGINT NOT NULL DEFAULT 1;
    CREATE TABLE revision (
        id BIGINT PRIMARY KEY,
        value BIGINT NOT NULL
    );
    INSERT INTO revision (id, value) VALUES (1, 1);
    CREATE TABLE revocations (
        bucket BIGINT PRIMARY KEY,
        revision BIGINT NOT NULL
    );
    CREATE INDEX revocations_by_revision ON revocations (revision);
    CREATE TABLE audit (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at_s BIGINT NOT NULL,
        actor TEXT COLLATE \"C\" NOT NULL,
        address TEXT COLLATE \"C\" NOT NULL,
        action TEXT COLLATE \"C\" NOT NULL,
        account TEXT COLLATE \"C\" NOT NULL,
        detail TEXT COLLATE \"C\" NOT NULL
    );
";
