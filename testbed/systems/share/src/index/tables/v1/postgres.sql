
    CREATE TABLE peers (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        address TEXT UNIQUE,
        expires_at_ms BIGINT NOT NULL
    );
    CREATE TABLE terms (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind BIGINT NOT NULL,
        term TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        hash BYTEA NOT NULL,
        peer BIGINT NOT NULL,
        size BIGINT NOT NULL
    );
    CREATE UNIQUE INDEX terms_found ON terms (kind, term, name, hash, peer);
    CREATE INDEX terms_of_peer ON terms (peer, kind);
