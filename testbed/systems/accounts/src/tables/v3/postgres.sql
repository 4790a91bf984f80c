
    CREATE TABLE deleted_names (
        name TEXT COLLATE "C" PRIMARY KEY
    );
    INSERT INTO deleted_names (name) SELECT DISTINCT account FROM audit WHERE action = 'deleted';
