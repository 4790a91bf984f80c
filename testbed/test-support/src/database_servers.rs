//! Database servers for tests, which can be killed, restarted and run out of connections.

use std::{
    cell::Cell,
    ops::Deref,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

pub use database_server::Kind;
use database_server::{Identity, Settings};
use store::Database;

/// A generous bound: only something that never happens takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many connections a server allows.
pub const CONNECTIONS: usize = 25;
/// The password of the user `locked`.
pub const PASSWORD: &str = "hush: hush@home/";

/// A running server; stopped when dropped.
pub struct DatabaseServer {
    server: database_server::DatabaseServer,
    made: Cell<u32>,
}

impl Deref for DatabaseServer {
    type Target = database_server::DatabaseServer;

    fn deref(&self) -> &Self::Target {
        &self.server
    }
}

impl DatabaseServer {
    /// Creates the data folder and starts the server. If it is not installed, prints that the test is skipped and returns
    /// `None`; in CI it panics.
    pub fn start(kind: Kind) -> Option<Self> {
        Self::start_as(kind, None)
    }

    /// As [`start`](Self::start), offering TLS with `identity`.
    pub fn start_as(kind: Kind, identity: Option<Identity>) -> Option<Self> {
        if let Err(missing) = kind.program() {
            assert!(std::env::var_os("CI").is_none(), "{missing}; or run scripts/setup-tests");
            eprintln!("SKIPPED: {missing}; or run scripts/setup-tests");
            return None;
        }
        let locked = match kind {
            Kind::Mariadb => format!(
                "CREATE USER IF NOT EXISTS locked@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n\
                 GRANT ALL ON `nstar%`.* TO locked@'127.0.0.1';\n"
            ),
            Kind::Postgres => format!("CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'\n"),
        };
        let settings = Settings {
            connections: CONNECTIONS,
            memory_mib: 32,
            identity,
            first_statements: locked,
            ..Settings::default()
        };
        let server = database_server::DatabaseServer::start(kind, settings).unwrap();
        Some(Self { server, made: Cell::new(0) })
    }

    /// Restarts the server and waits until it accepts connections.
    pub fn restart(&self) {
        self.server.restart().unwrap();
    }

    /// Drops all databases but the last and checkpoints that one: after a kill PostgreSQL syncs every file it has.
    pub fn settle(&self) {
        if self.kind() != Kind::Postgres {
            return;
        }
        let mut command = self.client("CHECKPOINT", None);
        for number in 0..self.made.get().saturating_sub(1) {
            command.args(["-c", &format!("DROP DATABASE IF EXISTS nstar_{number} WITH (FORCE)")]);
        }
        let settled = command.args(["-c", "CHECKPOINT"]).output().unwrap();
        assert!(settled.status.success(), "{settled:?}");
    }

    /// A new, empty database.
    pub fn database(&self) -> Database {
        let name = format!("nstar_{}", self.made.get());
        self.made.set(self.made.get() + 1);
        self.create(&name).unwrap();
        self.url_with(&name, self.password()).parse().unwrap()
    }

    /// The URL of a database with a password in it.
    pub fn url_with(&self, name: &str, password: &str) -> String {
        self.url(name).replacen('@', &format!(":{password}@"), 1)
    }

    /// The URL of a database for the user `locked`, without the password.
    pub fn url_of_locked(&self, name: &str) -> String {
        self.url(name).replacen("nstar@", "locked@", 1)
    }

    /// Opens connections until the server allows no more.
    pub fn take_all_connections(&self) -> Vec<Sleeper> {
        let sleep = match self.kind() {
            Kind::Mariadb => "SELECT SLEEP(300)",
            Kind::Postgres => "SELECT pg_sleep(300)",
        };
        let mut sleepers = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while self.run("SELECT 1", None).unwrap().status.success() {
            assert!(Instant::now() < deadline && sleepers.len() < 2 * CONNECTIONS, "there is no limit");
            let quiet = || Stdio::null();
            sleepers.push(Sleeper(self.client(sleep, None).stdout(quiet()).stderr(quiet()).spawn().unwrap()));
        }
        sleepers
    }
}

/// A client that holds a connection; killed when dropped.
pub struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
