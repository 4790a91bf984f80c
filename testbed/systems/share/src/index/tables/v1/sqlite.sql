
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
