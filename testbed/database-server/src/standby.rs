//! PostgreSQL with a synchronous standby.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
};

use crate::{
    kind::{DATA, Kind},
    server::DatabaseServer,
    settings::{DatabaseError, Password, Settings},
};

/// The user as which the standby gets the log.
const REPLICA: &str = "nstar_replica";

/// A PostgreSQL server and its synchronous standby, as ordinary processes on 127.0.0.1. A commit is acknowledged once the
/// standby has it on disk, too. The standby refuses changes until it is [promoted](Self::promote).
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
    pub fn start(mut settings: Settings) -> Result<Self, DatabaseError> {
        let io = |what| move |source| DatabaseError::Io { kind: "PostgreSQL", what, source };
        let password = settings.password.take();
        let password = password.map_or_else(Password::random, Ok).map_err(io("make a password"))?;
        settings.password = Some(password.clone());
        let replica = format!("CREATE ROLE {REPLICA} LOGIN REPLICATION PASSWORD '{}'\n", password.text());
        settings.first_statements.push_str(&replica);
        let primary = DatabaseServer::prepare(Kind::Postgres, Settings { port: None, ..settings.clone() })?;
        primary.make_database()?;
        let_replica_in(&primary).map_err(io("let the standby in"))?;
        primary.replicate(vec!["-c".into(), "synchronous_standby_names=*".into()]);
        primary.restart()?;
        let standby = DatabaseServer::prepare(Kind::Postgres, Settings { port: None, ..settings })?;
        copy(&primary, &standby)?;
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
        let (primary, standby) = (self.primary.port(), self.standby.port());
        format!("postgres://nstar@127.0.0.1:{primary},127.0.0.1:{standby}/{name}")
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

fn let_replica_in(primary: &DatabaseServer) -> io::Result<()> {
    let rules = primary.folder().join(DATA).join("pg_hba.conf");
    let mut rules = fs::File::options().append(true).open(rules)?;
    writeln!(rules, "host replication {REPLICA} 127.0.0.1/32 scram-sha-256")
}

/// Copies a running primary's data, with the settings to follow it from there on.
fn copy(primary: &DatabaseServer, standby: &DatabaseServer) -> Result<(), DatabaseError> {
    let data = standby.folder().join(DATA);
    // What PostgreSQL demands.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).map_err(|source| DatabaseError::Io {
        kind: "PostgreSQL",
        what: "prepare a folder",
        source,
    })?;
    let (data, port) = (data.display().to_string(), primary.port().to_string());
    let words = ["-h", "127.0.0.1", "-p", &port, "-U", REPLICA, "-w", "-D", &data];
    let more = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"];
    let arguments: Vec<String> = words.into_iter().chain(more).map(str::to_owned).collect();
    standby.run_program("copy the primary", &standby.sibling("pg_basebackup"), &arguments)
}
