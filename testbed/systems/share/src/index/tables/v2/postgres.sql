
    ALTER TABLE peers ADD COLUMN holder TEXT NOT NULL DEFAULT '';
    UPDATE peers SET address = NULL, expires_at_ms = 0;
