//! One store on every database: what goes in comes out, and what is unique stays so.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{thread, time::Duration};

use engine::block_on;
use store::{Database, Migration, Options, Schema, Statement, Store, StoreError, Value};
use test_support::database_servers::{DatabaseServer, Kind, PASSWORD};

const SCHEMA: Schema = Schema {
    name: "things",
    application_id: 0x7468_6e67,
    migrations: &[Migration {
        name: "V1__things",
        sqlite: "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, data BLOB, size INTEGER)",
        mysql: "CREATE TABLE IF NOT EXISTS things (id BIGINT AUTO_INCREMENT PRIMARY KEY, \
                name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin UNIQUE NOT NULL, data BLOB, size BIGINT)",
        postgres: "CREATE TABLE things (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                   name TEXT UNIQUE NOT NULL, data BYTEA, size BIGINT)",
    }],
};

#[test]
fn a_store_holds_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    hold(&Database::Sqlite(folder.path().join("things.db")));
}

#[test]
fn a_store_holds_on_mariadb() {
    let Some(server) = DatabaseServer::start(Kind::Mariadb) else { return };
    hold(&server.database());
    server.create("nstar_locked").unwrap();
    a_password_need_not_be_in_the_url(&server.url_of_locked("nstar_locked"), PASSWORD);
    another_kind_is_told(&server.database().url(), ("mysql", "postgres"));
    however_many_connections_broke_the_next_statement_is_answered(
        &server,
        "SELECT SLEEP(2)",
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = DATABASE()",
        |id| format!("KILL CONNECTION {id}"),
    );
}

fn a_password_need_not_be_in_the_url(url: &str, right: &str) {
    let database = |password: Option<&str>| {
        let database: Database = url.parse().unwrap();
        password.into_iter().fold(database, |database, password| database.with_password(password.into()))
    };
    drop(Store::prepare(&database(Some(right)), &SCHEMA).unwrap());
    for wrong in [None, Some("hush")] {
        let refused = Store::prepare(&database(wrong), &SCHEMA).unwrap_err().to_string();
        assert!(refused.contains("user or password") && !refused.contains("hush"), "{refused}");
    }
}

#[test]
fn a_store_holds_on_postgres() {
    let Some(server) = DatabaseServer::start(Kind::Postgres) else { return };
    hold(&server.database());
    server.create("nstar_own").unwrap();
    a_password_need_not_be_in_the_url(&server.url("nstar_own"), server.password());
    who_may_make_no_tables_is_told_what_to_grant(&server);
    another_kind_is_told(&server.database().url(), ("postgres", "mysql"));
    however_many_connections_broke_the_next_statement_is_answered(
        &server,
        "SELECT pg_sleep(2)::text",
        "SELECT pid::bigint FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()",
        |id| format!("SELECT pg_terminate_backend({id})"),
    );
}

/// All connections are idle when the server closes them: as many as a pool opens, more than a statement has tries.
/// `sleep` takes long enough for all of them to be under way at once on a slow machine too.
fn however_many_connections_broke_the_next_statement_is_answered(
    server: &DatabaseServer,
    sleep: &'static str,
    others: &'static str,
    kill: impl Fn(i64) -> String,
) {
    const CONNECTIONS: usize = 8;
    let database = server.database();
    drop(Store::prepare(&database, &SCHEMA).unwrap());
    let open = || Store::open(&database, &SCHEMA, &Options::default()).unwrap();
    let (store, watcher) = (open(), open());
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| block_on(store.query(Statement::new(sleep))).unwrap());
        }
    });
    let rows = block_on(watcher.query(Statement::new(others))).unwrap();
    assert!(rows.len() >= CONNECTIONS, "{}", rows.len());
    for row in rows {
        server.run(&kill(row.int(0).unwrap()), None).unwrap();
    }
    let answer = block_on(store.query(Statement::new("SELECT id FROM things WHERE id = -1")));
    assert_eq!(answer, Ok(Vec::new()));
}

/// Filling a large database takes longer than a statement waits for a lock.
#[test]
fn a_program_that_starts_waits_for_one_that_fills_the_database() {
    let Some(server) = DatabaseServer::start(Kind::Postgres) else { return };
    let database = server.database();
    let filling = Store::prepare(&database, &SCHEMA).unwrap();
    let starting = thread::spawn(move || Store::prepare(&database, &SCHEMA).map(drop));
    thread::sleep(Duration::from_secs(11));
    drop(filling);
    starting.join().unwrap().unwrap();
}

/// It is another kind of server than the URL says.
fn another_kind_is_told(url: &str, (kind, instead): (&str, &str)) {
    let url = url.replacen(kind, instead, 1);
    let refused = Store::prepare(&url.parse().unwrap(), &SCHEMA).unwrap_err().to_string();
    assert!(refused.contains(&format!("write {kind}:// for {instead}://")), "{refused}");
}

fn who_may_make_no_tables_is_told_what_to_grant(server: &DatabaseServer) {
    let name = "nstar_of_another";
    server.create(name).unwrap();
    // Since PostgreSQL 15 it is so from the start.
    server.run("REVOKE ALL ON SCHEMA public FROM PUBLIC", Some(name)).unwrap();
    let guest = server.url_of_locked(name).parse::<Database>().unwrap().with_password(PASSWORD.into());
    let refused = Store::prepare(&guest, &SCHEMA).unwrap_err().to_string();
    assert!(refused.contains("GRANT CREATE, USAGE ON SCHEMA public"), "{refused}");
    server.run("GRANT CREATE, USAGE ON SCHEMA public TO locked", Some(name)).unwrap();
    drop(Store::prepare(&guest, &SCHEMA).unwrap());
}

fn hold(database: &Database) {
    thread::scope(|scope| {
        let starting: Vec<_> =
            (0..3).map(|_| scope.spawn(|| Store::prepare(database, &SCHEMA).map(drop))).collect();
        starting.into_iter().for_each(|started| started.join().unwrap().unwrap());
    });
    let mut setup = Store::prepare(database, &SCHEMA).unwrap();
    setup.insert_all(&[insert("first", &[], None), insert("first", &[], None)]).unwrap();
    assert_eq!(setup.query(&Statement::new("SELECT name FROM things")).unwrap().len(), 1);
    drop(setup);
    let store = Store::open(database, &SCHEMA, &Options::default()).unwrap();
    block_on(values_come_back(&store));
    block_on(what_is_unique_is_refused(&store));
    block_on(what_fails_alone_leaves_the_rest(&store));
    block_on(what_belongs_together_is_done_together(&store));
}

fn insert(name: &str, data: &[u8], size: Option<i64>) -> Statement {
    Statement::new("INSERT INTO things (name, data, size) VALUES (?, ?, ?)").with(name).with(data).with(size)
}

async fn values_come_back(store: &Store) {
    let names = ["plain", "it's; --", "अनन्या 🙂", "?$1:x"];
    let data: Vec<u8> = (0..=255).collect();
    for name in names {
        assert!(store.insert(insert(name, &data, Some(i64::MIN))).await.unwrap());
        let select = Statement::new("SELECT name, data, size FROM things WHERE name = ?").with(name);
        let rows = store.query(select).await.unwrap();
        assert_eq!((rows.len(), rows[0].text(0), rows[0].int(2)), (1, Ok(name), Ok(i64::MIN)));
        assert_eq!(rows[0].bytes(1), Ok(&data[..]));
    }
    let update = Statement::new("UPDATE things SET size = ? WHERE name = ?").with(Value::Null).with("plain");
    assert_eq!(store.execute(update).await, Ok(1));
    let rows = store.query(Statement::new("SELECT size FROM things WHERE name = ?").with("plain")).await;
    assert_eq!(rows.unwrap()[0].maybe_int(0), Ok(None));
    assert_eq!(store.query(Statement::new("SELECT id FROM things WHERE id = -1")).await, Ok(Vec::new()));
}

async fn what_is_unique_is_refused(store: &Store) {
    let first = store.insert_id(insert("one", &[], None)).await.unwrap().unwrap();
    assert_eq!(store.insert_id(insert("one", &[], None)).await, Ok(None));
    assert_eq!(store.insert(insert("one", &[], None)).await, Ok(false));
    assert!(store.insert_id(insert("two", &[], None)).await.unwrap().is_some_and(|id| id > first));
}

async fn what_fails_alone_leaves_the_rest(store: &Store) {
    let wrong = Statement::new("SELECT nothing FROM nowhere");
    assert_eq!(store.query(wrong).await, Err(StoreError::Failed));
    let nameless = Statement::new("INSERT INTO things (name) VALUES (?)").with(None::<&str>);
    assert_eq!(store.execute(nameless).await, Err(StoreError::Failed));
    assert_eq!(store.insert(insert("after", &[], None)).await, Ok(true));
}

async fn what_belongs_together_is_done_together(store: &Store) {
    let size = |of: &'static str| async move {
        let select = Statement::new("SELECT size FROM things WHERE name = ?").with(of);
        let rows = store.query(select).await.unwrap();
        rows.first().map(|row| row.int(0).unwrap())
    };
    let set =
        |to: i64, of: &str| Statement::new("UPDATE things SET size = ? WHERE name = ?").with(to).with(of);
    assert_eq!(
        store.insert(insert("whole", &[], Some(1)).then(insert("part", &[], Some(1)))).await,
        Ok(true)
    );
    assert_eq!((size("whole").await, size("part").await), (Some(1), Some(1)));
    assert_eq!(store.insert(insert("whole", &[], None).then(set(2, "part"))).await, Ok(false));
    assert_eq!(store.execute(set(2, "nobody").then(set(2, "part"))).await, Ok(0));
    assert_eq!(size("part").await, Some(1), "what changed nothing brings nothing along");
    assert_eq!(store.execute(set(1, "whole").then(set(3, "part"))).await, Ok(1), "found, if as it was");
    assert_eq!(size("part").await, Some(3));
    let nameless = Statement::new("INSERT INTO things (name) VALUES (?)").with(None::<&str>);
    let failing = set(9, "whole").then(set(9, "part")).then(nameless);
    assert_eq!(store.execute(failing).await, Err(StoreError::Failed));
    assert_eq!((size("whole").await, size("part").await), (Some(1), Some(3)), "nothing is half done");
    assert_eq!(store.execute(set(4, "part")).await, Ok(1), "and the connection is good");
}
