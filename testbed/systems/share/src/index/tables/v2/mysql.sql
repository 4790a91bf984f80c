
    SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns WHERE table_schema = DATABASE()
        AND table_name = 'peers' AND column_name = 'holder');
    SET @change = IF(@missing, 'ALTER TABLE peers
        ADD COLUMN holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''''', 'DO 0');
    PREPARE change_table FROM @change;
    EXECUTE change_table;
    DEALLOCATE PREPARE change_table;
    UPDATE peers SET address = NULL, expires_at_ms = 0;
