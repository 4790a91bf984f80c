//! Who gets into a database server of the testbed, and what its user may do there.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    fs,
    process::{Command, Output},
};

use database_server::{DatabaseServer, Kind, Settings};

/// The administrators that the programs of each kind create.
const ADMINISTRATORS: [(Kind, &[&str]); 2] =
    [(Kind::Mariadb, &["root", "", "mysql", "nstar"]), (Kind::Postgres, &["postgres", "nstar", "root"])];

/// If it is not installed, prints that the test is skipped and returns `None`; in CI it panics.
fn start(kind: Kind) -> Option<DatabaseServer> {
    start_with(kind, false)
}

/// The same for a server that others on its network may call, or not.
fn start_with(kind: Kind, network: bool) -> Option<DatabaseServer> {
    if let Err(missing) = kind.program() {
        assert!(std::env::var_os("CI").is_none(), "{missing}; or run scripts/setup-tests");
        eprintln!("SKIPPED: {missing}; or run scripts/setup-tests");
        return None;
    }
    Some(DatabaseServer::start(kind, Settings { memory_mib: 32, network, ..Settings::default() }).unwrap())
}

/// Executes a statement as somebody who only knows the port.
fn stranger(server: &DatabaseServer, user: &str) -> Output {
    let port = server.port().to_string();
    match server.kind() {
        Kind::Mariadb => Command::new("mariadb")
            .args(["--no-defaults", "-h127.0.0.1", "-P", &port, &format!("-u{user}"), "-e", "SELECT 1"])
            .env_remove("MYSQL_PWD")
            .output(),
        Kind::Postgres => Command::new("psql")
            .args([
                "-X",
                "-w",
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                user,
                "-d",
                "postgres",
                "-c",
                "SELECT 1",
            ])
            .env_remove("PGPASSWORD")
            .output(),
    }
    .unwrap()
}

fn nobody_gets_in_without_the_password(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let users = ADMINISTRATORS.into_iter().find(|(of, _)| *of == kind).unwrap().1;
    for user in users {
        let answer = stranger(&server, user);
        assert!(!answer.status.success(), "{user}: {answer:?}");
    }
    assert!(server.run("SELECT 1", None).unwrap().status.success(), "its own client knows the password");
}

#[test]
fn nobody_gets_into_mariadb_without_the_password() {
    nobody_gets_in_without_the_password(Kind::Mariadb);
}

#[test]
fn nobody_gets_into_postgres_without_the_password() {
    nobody_gets_in_without_the_password(Kind::Postgres);
}

/// Whether its user gets in at another address than 127.0.0.1.
fn is_called_at_another_address(server: &DatabaseServer) -> bool {
    let port = server.port().to_string();
    let (program, words) = match server.kind() {
        Kind::Mariadb => ("mariadb", ["--no-defaults", "-h127.0.0.2", "-unstar", "-P", &port, "-e"]),
        Kind::Postgres => ("psql", ["-wX", "-h127.0.0.2", "-Unstar", "-dpostgres", "-p", &port]),
    };
    let statement = if server.kind() == Kind::Mariadb { "SELECT 1" } else { "-cSELECT 1" };
    let mut client = Command::new(program);
    client.args(words).arg(statement).env(server.password_variable(), server.password());
    client.output().unwrap().status.success()
}

#[test]
fn only_a_server_of_a_network_lets_its_user_in_at_another_address() {
    for kind in [Kind::Mariadb, Kind::Postgres] {
        for network in [false, true] {
            let Some(server) = start_with(kind, network) else { continue };
            assert_eq!(is_called_at_another_address(&server), network, "{kind}");
        }
    }
}

/// A superuser of PostgreSQL may run any program, as the user that runs the server.
#[test]
fn the_user_of_postgres_runs_no_program_and_reads_no_file() {
    let Some(server) = start(Kind::Postgres) else { return };
    server.create("nstar_x").unwrap();
    for statement in [
        "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null'",
        "CREATE TABLE t (x TEXT); COPY t FROM '/etc/passwd'",
        "ALTER ROLE nstar SUPERUSER",
        "CREATE ROLE another LOGIN SUPERUSER",
    ] {
        let answer = server.run(statement, Some("nstar_x")).unwrap();
        let said = String::from_utf8_lossy(&answer.stderr);
        assert!(said.contains("permission denied") || said.contains("must be"), "{statement}: {said}");
    }
}

#[test]
fn the_user_of_mariadb_reads_and_writes_no_file() {
    let Some(server) = start(Kind::Mariadb) else { return };
    server.create("nstar_x").unwrap();
    for statement in ["SELECT 1 INTO OUTFILE '/tmp/nstar-written'", "SELECT User FROM mysql.global_priv"] {
        let answer = server.run(statement, Some("nstar_x")).unwrap();
        assert!(!answer.status.success(), "{statement}: {answer:?}");
    }
}

/// Everybody on a machine may read the arguments of all processes.
fn the_password_is_in_no_argument_and_in_no_log(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let password = server.password();
    assert!(password.len() >= 32 && !server.url("nstar_x").contains(password), "{}", server.url("nstar_x"));
    assert!(!format!("{server:?}").contains(password) && !server.log().contains(password));
    for process in fs::read_dir("/proc").unwrap() {
        let arguments = fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&arguments).contains(password));
    }
    let client = server.client("SELECT 1", None);
    assert!(client.get_args().all(|word| !word.to_string_lossy().contains(password)));
}

#[test]
fn the_password_of_mariadb_is_in_no_argument_and_in_no_log() {
    the_password_is_in_no_argument_and_in_no_log(Kind::Mariadb);
}

#[test]
fn the_password_of_postgres_is_in_no_argument_and_in_no_log() {
    the_password_is_in_no_argument_and_in_no_log(Kind::Postgres);
}
