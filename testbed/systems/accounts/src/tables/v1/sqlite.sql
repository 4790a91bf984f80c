
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
