//! The systems that are tried: how each is started and loaded, and how what it keeps is looked at.

mod accounts;
mod booking;
mod files;
mod index;
mod peer;

use std::{ffi::OsString, io, net::SocketAddr, path::Path};

use rusqlite::{Connection, OpenFlags};
use test_support::http::{Response, ask};

use crate::ledger::Ledger;

/// A system that keeps something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Accounts: created, changed and deleted.
    Accounts,
    /// Files: uploaded, whole and in pieces, replaced and deleted.
    Files,
    /// Bookings: made, repeated and cancelled.
    Booking,
    /// Index entries: registered and deregistered.
    Index,
    /// Files of a peer: obtained, taken out of sharing, and put into its folder.
    Peer,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Accounts, Self::Files, Self::Booking, Self::Index, Self::Peer];

    /// Its name on the command line of `nstar-lab serve`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Files => "files",
            Self::Booking => "booking",
            Self::Index => "index",
            Self::Peer => "peer",
        }
    }

    pub(crate) fn make(self) -> Box<dyn System> {
        match self {
            Self::Accounts => Box::<accounts::Accounts>::default(),
            Self::Files => Box::<files::Files>::default(),
            Self::Booking => Box::<booking::Booking>::default(),
            Self::Index => Box::<index::Index>::default(),
            Self::Peer => Box::<peer::Peer>::default(),
        }
    }
}

/// One of several clients at once.
pub(crate) struct Client<'l> {
    pub(crate) number: usize,
    pub(crate) to: SocketAddr,
    pub(crate) random: fastrand::Rng,
    pub(crate) ledger: &'l Ledger,
}

impl Client<'_> {
    /// Sends a request.
    fn ask(&self, line: &str, fields: &str, body: &[u8]) -> io::Result<Response> {
        ask(self.to, line, fields, body)
    }

    /// Sends JSON.
    fn send(&self, line: &str, fields: &str, body: &serde_json::Value) -> io::Result<Response> {
        self.ask(line, fields, body.to_string().as_bytes())
    }
}

/// How a system is started, loaded and looked at.
pub(crate) trait System: Send + Sync {
    /// Starts what the server needs beside it and nothing happens to, with its files in this folder. Most need nothing.
    ///
    /// # Errors
    /// When that does not start.
    fn prepare(&self, _program: &Path, _aside: &Path) -> io::Result<()> {
        Ok(())
    }

    /// What follows `nstar-lab serve`, to keep everything in this folder.
    fn words(&self, data: &Path) -> Vec<OsString>;

    /// Asks for one change, and notes in the ledger what is asked for and what is acknowledged.
    ///
    /// # Errors
    /// When there is no answer.
    fn act(&self, client: &mut Client<'_>) -> io::Result<()>;

    /// Compares the files that a crash left with the ledger, without the server.
    ///
    /// # Errors
    /// What is wrong with the files as a whole.
    fn look_at_files(&self, data: &Path, ledger: &Ledger) -> Result<(), String>;

    /// Compares what a server answers that started on them with the ledger.
    ///
    /// # Errors
    /// When there is no answer.
    fn look_at_server(&self, to: SocketAddr, ledger: &Ledger, random: &mut fastrand::Rng) -> io::Result<()>;
}

/// The arguments of a system, of which those with `/` in front lie in a folder.
fn words(system: &str, data: &Path, words: &[&str]) -> Vec<OsString> {
    let word = |word: &&str| match word.strip_prefix('/') {
        Some(name) => data.join(name).into(),
        None => OsString::from(word),
    };
    std::iter::once(system.into()).chain(words.iter().map(word)).collect()
}

/// Opens a database that a crash left, and checks all of it. `None` if it was never made, or has no tables yet.
fn database(path: &Path) -> Result<Option<Connection>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let open = || -> rusqlite::Result<(Connection, String, i64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let verdict = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((connection, verdict, tables))
    };
    let (connection, verdict, tables) =
        open().map_err(|error| format!("the database cannot be read: {error}"))?;
    if verdict != "ok" {
        return Err(format!("the database is damaged: {verdict}"));
    }
    Ok((tables > 0).then_some(connection))
}

/// The rows of a query, each as the text of its first column and that of its second.
fn rows(connection: &Connection, sql: &str) -> Result<Vec<(String, String)>, String> {
    let read = || -> rusqlite::Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(sql)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    read().or_else(|error| if is_missing(&error) { Ok(Vec::new()) } else { Err(format!("{sql}: {error}")) })
}

/// Whether the table is missing, as when the crash came before it was made.
fn is_missing(error: &rusqlite::Error) -> bool {
    error.to_string().contains("no such table")
}
