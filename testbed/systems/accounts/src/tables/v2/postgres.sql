
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
        actor TEXT COLLATE "C" NOT NULL,
        address TEXT COLLATE "C" NOT NULL,
        action TEXT COLLATE "C" NOT NULL,
        account TEXT COLLATE "C" NOT NULL,
        detail TEXT COLLATE "C" NOT NULL
    );
