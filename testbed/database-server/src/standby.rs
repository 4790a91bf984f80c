//! PostgreSQL with a synchronous standby.

use std::{
    fs,
    io::{self, Write},
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
};

use crate::{
    kind::{DATA, Kind},
    server::DatabaseServer,
    settings::{DatabaseError, Host, Settings},
};

/// The user as which the standby gets the log.
const REPLICA: &str = "nstar_replica";

/// A PostgreSQL server and its synchronous standby, as ordinary processes on 127.0.0.1 or on hosts of their own. A commit is
/// acknowledged once the standby has it on disk, too. The standby refuses changes until it is [promoted](Self::promote).
#[derive(Debug)]
pub struct StandbyPair {
    primary: DatabaseServer,
    standby: DatabaseServer,
}

impl StandbyPair {
    /// Starts both and waits until the standby follows. `settings` are those of each.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start. The error holds the last line that it printed.
    pub fn start(settings: Settings) -> Result<Self, DatabaseError> {
        Self::start_both([None, None], settings)
    }

    /// The same on hosts of their own, that of the primary first.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(hosts: [Host; 2], settings: Settings) -> Result<Self, DatabaseError> {
        Self::start_both(hosts.map(Some), Settings { network: true, ..settings })
    }

    fn start_both(hosts: [Option<Host>; 2], mut settings: Settings) -> Result<Self, DatabaseError> {
        let password = settings.password_or_random().map_err(|source| io("make a password", source))?;
        settings.password = Some(password.clone());
        let replica = format!("CREATE ROLE {REPLICA} LOGIN REPLICATION PASSWORD '{}'\n", password.text());
        settings.first_statements.push_str(&replica);
        let [primary, standby] = hosts.map(|host| Settings { host, port: None, ..settings.clone() });
        let primary = DatabaseServer::prepare(Kind::Postgres, primary)?;
        primary.make_database()?;
        let_replica_in(&primary, standby.among_servers())
            .map_err(|source| io("let the standby in", source))?;
        wait_for(&primary, "*")?;
        primary.restart()?;
        let standby = DatabaseServer::prepare(Kind::Postgres, standby)?;
        copy(&primary, &standby)?;
        // Its settings are copies of the primary's. Once it is promoted, it waits for nobody.
        standby.replicate(vec!["-c".into(), "synchronous_standby_names=".into()]);
        standby.restart()?;
        Ok(Self { primary, standby })
    }

    /// The server that takes changes.
    pub fn primary(&self) -> &DatabaseServer {
        &self.primary
    }

    /// Its standby.
    pub fn standby(&self) -> &DatabaseServer {
        &self.standby
    }

    /// The URL of a database, with both hosts and without the password.
    pub fn url(&self, name: &str) -> String {
        let both = [&self.primary, &self.standby];
        let [primary, standby] = both.map(|of| format!("{}:{}", of.settings().for_clients(), of.port()));
        format!("postgres://nstar@{primary},{standby}/{name}")
    }

    /// Makes commits wait for no standby, also those that wait already.
    ///
    /// # Errors
    /// When PostgreSQL refuses. The error holds the last line that it printed.
    pub fn forgo_standby(&self) -> Result<(), DatabaseError> {
        wait_for(&self.primary, "")?;
        let data = self.primary.folder().join(DATA).display().to_string();
        let arguments = ["reload", "-D", &data].map(str::to_owned);
        self.primary.run_program("read its settings again", &self.primary.sibling("pg_ctl"), &arguments)
    }

    /// Makes the standby take changes. The primary must have ended.
    ///
    /// # Errors
    /// When PostgreSQL refuses. The error holds the last line that it printed.
    pub fn promote(&self) -> Result<(), DatabaseError> {
        let data = self.standby.folder().join(DATA).display().to_string();
        let arguments = ["promote", "-w", "-D", &data].map(str::to_owned);
        self.standby.run_program("promote the standby", &self.standby.sibling("pg_ctl"), &arguments)
    }
}

fn io(what: &'static str, source: io::Error) -> DatabaseError {
    DatabaseError::Io { kind: "PostgreSQL", what, source }
}

fn let_replica_in(primary: &DatabaseServer, address: Ipv4Addr) -> io::Result<()> {
    append(primary, "pg_hba.conf", &format!("host replication {REPLICA} {address}/32 scram-sha-256"))
}

/// Names the standbys that commits wait for, once the server reads its settings: `*` means any.
fn wait_for(primary: &DatabaseServer, standbys: &str) -> Result<(), DatabaseError> {
    let line = format!("synchronous_standby_names = '{standbys}'");
    append(primary, "postgresql.conf", &line).map_err(|source| io("name its standby", source))
}

/// Adds a line to one of a server's settings. The last one of a name counts.
fn append(server: &DatabaseServer, name: &str, line: &str) -> io::Result<()> {
    let path = server.folder().join(DATA).join(name);
    writeln!(fs::File::options().append(true).open(path)?, "{line}")
}

/// Copies a running primary's data, with the settings to follow it from there on.
fn copy(primary: &DatabaseServer, standby: &DatabaseServer) -> Result<(), DatabaseError> {
    let data = standby.folder().join(DATA);
    // What PostgreSQL demands.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700))
        .map_err(|source| io("prepare a folder", source))?;
    let address = primary.settings().among_servers().to_string();
    let (data, port) = (data.display().to_string(), primary.port().to_string());
    let words = ["-h", &address, "-p", &port, "-U", REPLICA, "-w", "-D", &data];
    let more = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"];
    let arguments: Vec<String> = words.into_iter().chain(more).map(str::to_owned).collect();
    standby.run_program("copy the primary", &standby.sibling("pg_basebackup"), &arguments)
}
