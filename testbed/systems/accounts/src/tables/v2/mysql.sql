
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
