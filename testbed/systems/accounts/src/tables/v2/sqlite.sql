
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
