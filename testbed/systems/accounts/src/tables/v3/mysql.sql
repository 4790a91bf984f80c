
    CREATE TABLE IF NOT EXISTS deleted_names (
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
    ) ENGINE = InnoDB;
    INSERT IGNORE INTO deleted_names (name) SELECT DISTINCT account FROM audit WHERE action = 'deleted';
