
    CREATE TABLE accounts (
        name TEXT COLLATE "C" PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s BIGINT NOT NULL
    );
    CREATE TABLE sessions (
        token_digest BYTEA PRIMARY KEY,
        name TEXT COLLATE "C" NOT NULL,
        expires_at_s BIGINT NOT NULL
    );
    CREATE INDEX sessions_by_expiry ON sessions (expires_at_s);
