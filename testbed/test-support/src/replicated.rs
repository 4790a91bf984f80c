//! Databases of several servers, each of which can be killed and cut off.

use std::{
    ops::Deref,
    thread,
    time::{Duration, Instant},
};

use database_server::{
    DatabaseError, DatabaseServer, GaleraCluster, Host, Kind, Password, Settings, StandbyPair, free_port,
};
use store::Database;

/// A generous bound: only something that never happens takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
const PASSWORD: &str = "of-several";
/// A user who may cut a node off.
const BREAKER: &str = "CREATE USER IF NOT EXISTS breaker@'127.0.0.1' IDENTIFIED BY 'of-several';\n\
                       GRANT SUPER ON *.* TO breaker@'127.0.0.1';\n";

fn settings(first_statements: &str) -> Settings {
    let (password, memory_mib) = (Password::new(PASSWORD), 32);
    Settings { password, memory_mib, first_statements: first_statements.into(), ..Settings::default() }
}

/// Whether it is installed. If not, prints that the test is skipped; in CI it panics.
fn is_installed(found: Result<(), DatabaseError>) -> bool {
    if let Err(missing) = &found {
        assert!(std::env::var_os("CI").is_none(), "{missing}; or run scripts/setup-tests");
        eprintln!("SKIPPED: {missing}; or run scripts/setup-tests");
    }
    found.is_ok()
}

fn parsed(url: &str) -> Database {
    url.parse::<Database>().unwrap().with_password(PASSWORD.into())
}

/// Three nodes of Galera.
pub struct Galera(GaleraCluster);

impl Deref for Galera {
    type Target = GaleraCluster;

    fn deref(&self) -> &GaleraCluster {
        &self.0
    }
}

impl Galera {
    /// Starts the nodes. `None` if Galera is not installed.
    pub fn start() -> Option<Self> {
        let installed = is_installed(GaleraCluster::installed());
        let ports = [(); 3].map(|()| free_port().unwrap());
        installed.then(|| Self(GaleraCluster::start(&ports, settings(BREAKER)).unwrap()))
    }

    /// Starts a node on each of these hosts. `None` if Galera is not installed.
    pub fn start_on(hosts: &[Host]) -> Option<Self> {
        let installed = is_installed(GaleraCluster::installed());
        installed.then(|| Self(GaleraCluster::start_on(hosts, settings("")).unwrap()))
    }

    /// A database on all nodes, for a program that prefers node `first`.
    pub fn database(&self, name: &str, first: usize) -> Database {
        parsed(&self.url_from(first, name))
    }

    /// Cuts a node off from the others, whose clients still reach it; or puts it back. Returns when it has noticed.
    pub fn isolate(&self, node: usize, isolated: bool) {
        let node = &self.nodes()[node];
        let sql = format!("SET GLOBAL wsrep_provider_options = 'gmcast.isolate={}'", u8::from(isolated));
        let said = node.client(&sql, None).arg("-ubreaker").output().unwrap();
        assert!(said.status.success(), "{said:?}");
        wait_until("a node notices that it is cut off, or back", || node.is_ready() != isolated);
    }
}

/// A PostgreSQL server and its synchronous standby.
pub struct Pair(StandbyPair);

impl Deref for Pair {
    type Target = StandbyPair;

    fn deref(&self) -> &StandbyPair {
        &self.0
    }
}

impl Pair {
    /// Starts both. `None` if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let installed = is_installed(Kind::Postgres.program().map(drop));
        installed.then(|| Self(StandbyPair::start(settings("")).unwrap()))
    }

    /// Starts both on hosts of their own, that of the primary first. `None` if PostgreSQL is not installed.
    pub fn start_on(hosts: [Host; 2]) -> Option<Self> {
        let installed = is_installed(Kind::Postgres.program().map(drop));
        installed.then(|| Self(StandbyPair::start_on(hosts, settings("")).unwrap()))
    }

    /// Waits until the standby shows everything that is on the primary's disk.
    pub fn await_standby(&self) {
        let written = rows(self.primary(), "SELECT pg_current_wal_flush_lsn()", "postgres").concat();
        let shown = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn");
        wait_until("the standby has what the primary has", || {
            rows(self.standby(), &shown, "postgres") == ["t"]
        });
    }

    /// A database on both hosts.
    pub fn database(&self, name: &str) -> Database {
        parsed(&self.url(name))
    }
}

/// The rows of a statement, columns separated by tabs or bars. Asks the server through its own client, once it has what
/// all others have.
pub fn rows(server: &DatabaseServer, sql: &str, database: &str) -> Vec<String> {
    let (before, bare) = match server.kind() {
        Kind::Mariadb => ("SET SESSION wsrep_sync_wait = 7; ", "-N"),
        Kind::Postgres => ("", "-At"),
    };
    let mut client = server.client(&format!("{before}{sql}"), Some(database));
    client.arg(bare);
    let said = client.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Waits for a generously long time.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
