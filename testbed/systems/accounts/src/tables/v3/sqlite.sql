
    CREATE TABLE deleted_names (
        name TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;
    INSERT INTO deleted_names (name) SELECT DISTINCT account FROM audit WHERE action = 'deleted';
