//! A database behind the server: does the verdict tell a queue for one row from a busy processor?

use database_server::{DatabaseServer, Kind, Settings};
use serde_json::Value;

use crate::{
    common::support::{Place, Server, has_two_cores_or_skip},
    common::verdict::{HTTP, is_said, named, verdict},
};

/// Each request is a transaction in one of twelve sessions, each of which is the database's own client reading from a pipe.
/// Its end is the only line with `done`: MariaDB's client would print the text of an unnamed column in the header too.
const TRANSACTIONS: &str = r#"
import subprocess
def session():
    return subprocess.Popen(CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
sessions = queue.Queue()
for _ in range(12): sessions.put(session())
def transact():
    client = sessions.get()
    try:
        client.stdin.write(STATEMENTS)
        client.stdin.flush()
        for line in client.stdout:
            if b"done" in line: return
        raise OSError("the client ended")
    finally: sessions.put(client)
serve(keep, transact)
"#;

/// Locks a row for 10 ms: at most 100 requests per second, on an idle machine.
fn hot_row(kind: Kind) -> String {
    let wait = match kind {
        Kind::Mariadb => "SLEEP(0.01)",
        Kind::Postgres => "pg_sleep(0.01)",
    };
    format!(
        "BEGIN; SELECT n FROM rooms WHERE id = 1 FOR UPDATE; SELECT {wait}; COMMIT; SELECT 'done' AS ended;"
    )
}

/// Reads the row, which waits for no lock, after milliseconds of work on a processor.
fn work(kind: Kind) -> String {
    let work = match kind {
        Kind::Mariadb => "SELECT BENCHMARK(40000, MD5('room'))",
        Kind::Postgres => "SELECT count(*) FROM generate_series(1, 40000)",
    };
    format!("{work}; SELECT n FROM rooms WHERE id = 1; SELECT 'done' AS ended;")
}

/// A new database with one room. `None`, with a message, if it is not installed and this is not CI.
pub(crate) fn database(kind: Kind, processors: Option<Vec<usize>>) -> Option<DatabaseServer> {
    if let Err(missing) = kind.program() {
        assert!(std::env::var_os("CI").is_none(), "{missing}; or run scripts/setup-tests");
        eprintln!("SKIPPED: {missing}; or run scripts/setup-tests");
        return None;
    }
    let server = DatabaseServer::start(kind, Settings { memory_mib: 32, processors, ..Settings::default() });
    let server = server.expect("a database server");
    server.create("nstar_rooms").expect("a database");
    let table = "CREATE TABLE rooms (id INT PRIMARY KEY, n INT); INSERT INTO rooms VALUES (1, 0)";
    let made = server.run(table, Some("nstar_rooms")).expect("a client");
    assert!(made.status.success(), "{made:?}");
    Some(server)
}

/// Sweeps while the database is asked which of its sessions wait for locks, until a cause is named.
fn watched(place: &Place, server: &Server, database: &DatabaseServer, args: &[&str]) -> Option<Value> {
    let file = place.path("password");
    std::fs::write(&file, database.password()).expect("a file");
    let (url, file) = (database.url("nstar_rooms"), file.display().to_string());
    let asked = ["--watch-database", &url, "--database-password-file", &file];
    named(place, &server.url("/"), &[&asked, args].concat())
}

/// A server in front of the database whose requests execute these statements.
pub(crate) fn before(database: &DatabaseServer, statements: &str) -> Server {
    let client = database.session(Some("nstar_rooms"));
    let words = std::iter::once(client.get_program()).chain(client.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().expect("text")).collect();
    let program = format!("CLIENT = {words:?}\nSTATEMENTS = b\"{statements}\\n\"\n{HTTP}{TRANSACTIONS}");
    Server::python_with(&program, &[(database.password_variable(), database.password())])
}

pub(crate) fn holder(run: &Value) -> &str {
    verdict(run)["bottleneck"]["holder"].as_str().expect("a holder")
}

pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Mariadb => "mariadbd",
        Kind::Postgres => "postgres",
    }
}

pub(crate) fn says(run: &Value, words: &str) {
    let evidence = verdict(run)["bottleneck"]["evidence"].as_array().expect("evidence");
    let said = evidence.iter().any(|said| said.as_str().is_some_and(|said| said.contains(words)));
    assert!(said, "no '{words}': {}", verdict(run));
}

fn a_hot_row_is_the_lock(kind: Kind) {
    let place = Place::beside_sleepers();
    let Some(database) = database(kind, None) else { return };
    let server = before(&database, &hot_row(kind));
    let args = ["-c", "1,2,4,8,16", "-d", "2s"];
    let Some(run) = watched(&place, &server, &database, &args) else { return };
    assert!(!run.to_string().contains(database.password()));
    if !is_said(&run, &["lock"]) {
        return;
    }
    assert!(holder(&run).starts_with(name(kind)), "{}", verdict(&run));
    says(&run, "waited for a lock that another transaction held");
    says(&run, "CPU time of a request in each tier: ");
    let max = verdict(&run)["throughput_max_per_s"].as_f64().expect("a rate");
    assert!(max < 101.0, "10 ms each, one at a time: {max}");
    let last = run["steps"].as_array().and_then(|steps| steps.last()).expect("a step");
    assert!(last["locks"]["waiting"].as_f64() > Some(5.0), "{}", last["locks"]);
    assert_eq!(run["steps"][0]["locks"]["waiting"].as_f64(), Some(0.0), "one user waits for nobody");
}

#[test]
fn a_hot_row_is_a_lock_of_mariadb() {
    a_hot_row_is_the_lock(Kind::Mariadb);
}

#[test]
fn a_hot_row_is_a_lock_of_postgres() {
    a_hot_row_is_the_lock(Kind::Postgres);
}

fn work_is_not_the_lock(kind: Kind) {
    let test = "a database that computes is told from one whose rows are waited for";
    let place = Place::new();
    let Some(database) = database(kind, Some(vec![0])).filter(|_| has_two_cores_or_skip(test)) else {
        return;
    };
    let server = before(&database, &work(kind));
    // A database that is kept busy answers about twice a second, and fewer than ten answers exclude nothing.
    let args = ["-c", "1,2,4,8", "-d", "3s", "--cpus", "1"];
    let Some(run) = watched(&place, &server, &database, &args) else { return };
    if !is_said(&run, &["cpu", "single-thread"]) {
        return;
    }
    assert!(holder(&run).starts_with(name(kind)), "{}", verdict(&run));
    says(&run, "Locks of the database are not what stops it");
}

#[test]
fn a_busy_mariadb_is_no_lock() {
    work_is_not_the_lock(Kind::Mariadb);
}

#[test]
fn a_busy_postgres_is_no_lock() {
    work_is_not_the_lock(Kind::Postgres);
}

/// Mistakes in the database's name or password, and a missing database, are reported; only the first ends the run.
#[test]
fn a_database_that_cannot_be_asked_is_told_and_the_sweep_goes_on() {
    let place = Place::beside_others();
    let server = Server::nginx("0");
    let sweep = |flags: &[&str]| {
        let words = ["-c", "1,2", "-d", "500ms"].into_iter().chain(flags.iter().copied());
        place.sweep(&server, words)
    };
    let nobody = format!("postgres://ann:hush@127.0.0.1:{}/rooms", crate::common::support::free_port());
    let outcome = sweep(&["--watch-database", &nobody]);
    assert!(matches!(outcome.status.code(), Some(0 | 4)), "{outcome}");
    assert!(!outcome.stdout.contains("hush") && !outcome.stderr.contains("hush"), "{outcome}");
    outcome.complains("cannot be seen in full: psql says: ").complains("refused").says("refused");
    assert!(!place.run_file().to_string().contains("hush"));
    sweep(&["--watch-database", "rooms.db"]).exits(2).complains("SQLite");
    sweep(&["--watch-database", "oracle://x/y"]).exits(2).complains("not a known kind of database");
    sweep(&["--database-password-file", "x"]).exits(2).complains("--watch-database");
}
