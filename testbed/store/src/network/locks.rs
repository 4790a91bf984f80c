//! Who waits for whom in a database server, as it tells itself.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    blocking::Blocking,
    session::{Failure, Session},
    trouble::Trouble,
};
use crate::{
    database::{Dialect, ServerDatabase},
    error::StoreError,
    order::{Ask, Reply},
    statement::{Row, Statement},
};

/// How long an answer may take. Past it, the looks would no longer be of the moment.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// What MariaDB and MySQL tell everybody: row locks of the whole server, and who runs a statement.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                      ('Innodb_row_lock_current_waits', 'Innodb_row_lock_time', 'Threads_connected', 'Threads_running')";

/// Transactions that are open while their session runs no statement. Needs the right `PROCESS`.
const OPEN_MEANWHILE: &str = "SELECT COUNT(*) FROM information_schema.INNODB_TRX \
                              WHERE trx_query IS NULL AND trx_state <> 'LOCK WAIT' AND trx_mysql_thread_id <> 0";

/// The sessions in this database, but for the one that asks. To extend a file is no transaction's lock.
const ACTIVITY: &str = "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND wait_event <> 'extend'), \
                               count(*) FILTER (WHERE state NOT IN ('idle', 'disabled')), \
                               count(*) FILTER (WHERE state IS NULL OR state = 'disabled') \
                        FROM pg_stat_activity \
                        WHERE datname = current_database() AND pid <> pg_backend_pid() \
                          AND (backend_type = 'client backend' OR backend_type IS NULL)";

/// A connection to a database server that asks nothing but who waits for whom. It changes nothing there.
pub struct LockWatch {
    connection: Blocking,
    dialect: Dialect,
    /// Whether this user may not see all; found out by asking.
    refused: bool,
}

/// What the sessions of a database do at one moment, but for the one that asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Those that wait for a lock which another transaction holds: with MariaDB and MySQL row locks of the whole server,
    /// with PostgreSQL locks of all kinds in this database.
    pub waiting: u64,
    /// Those that run a statement, those that wait among them, and those that hold a transaction open.
    pub at_work: u64,
    /// Time that waits for row locks took so far, of those that have ended; PostgreSQL does not count it.
    pub waited: Option<Duration>,
    /// What this user may not see, and what to do about it.
    pub unseen: Option<&'static str>,
}

impl std::fmt::Debug for LockWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWatch").field("kind", &self.dialect).finish_non_exhaustive()
    }
}

impl LockWatch {
    /// Connects; blocks.
    ///
    /// # Errors
    /// Why there is no connection, and what to do.
    pub fn open(server: &ServerDatabase) -> Result<Self, Trouble> {
        let connection =
            Blocking::open(server).map_err(|error| Trouble::Other(format!("no connection: {error}")))??;
        Ok(Self { connection, dialect: server.dialect, refused: false })
    }

    /// Asks; blocks, for a few seconds at most. After an error a new connection is needed.
    ///
    /// # Errors
    /// Why there was no answer.
    pub fn look(&mut self) -> Result<Sessions, Trouble> {
        let seen = match self.dialect {
            Dialect::Mysql => {
                let status = self.ask(STATUS).map_err(trouble)?;
                status_and_transactions(&status, self.open_meanwhile()?)
            }
            Dialect::Postgres => activity(&self.ask(ACTIVITY).map_err(trouble)?),
        };
        seen.map_err(|error| Trouble::Other(error.to_string()))
    }

    /// Transactions held open by sessions that run nothing just now; `None` where this user may not know.
    fn open_meanwhile(&mut self) -> Result<Option<u64>, Trouble> {
        if self.refused {
            return Ok(None);
        }
        match self.ask(OPEN_MEANWHILE) {
            Ok(rows) => Ok(rows.first().and_then(|row| number(row, 0).ok())),
            Err(Failure::Statement(_)) => {
                self.refused = true;
                Ok(None)
            }
            Err(failure) => Err(trouble(failure)),
        }
    }

    fn ask(&mut self, question: &'static str) -> Result<Vec<Row>, Failure> {
        let question = Statement::new(question);
        let asking =
            async |session: &mut Session| timeout(LOOK_LIMIT, session.run(Ask::Rows, &question)).await;
        match self.connection.wait(asking) {
            Ok(Ok(Reply::Rows(rows))) => Ok(rows),
            Ok(Ok(_)) => Ok(Vec::new()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Connection(Trouble::Lost(format!(
                "no answer within {} s",
                LOOK_LIMIT.as_secs()
            )))),
        }
    }
}

fn trouble(failure: Failure) -> Trouble {
    match failure {
        Failure::Connection(trouble) => trouble,
        Failure::Undone(said) => Trouble::Other(said),
        Failure::Statement(error) => Trouble::Other(error.to_string()),
    }
}

/// Where nobody says who holds a transaction open, every connection may.
fn status_and_transactions(status: &[Row], open_meanwhile: Option<u64>) -> Result<Sessions, StoreError> {
    let variable = |name: &str| {
        let found = status.iter().find(|row| row.text(0).is_ok_and(|found| found.eq_ignore_ascii_case(name)));
        found.and_then(|row| row.text(1).ok()?.parse::<u64>().ok()).ok_or(StoreError::Failed)
    };
    // The one that asks is connected, and runs.
    let at_work = match open_meanwhile {
        Some(open) => variable("Threads_running")?.saturating_sub(1).saturating_add(open),
        None => variable("Threads_connected")?.saturating_sub(1),
    };
    Ok(Sessions {
        waiting: variable("Innodb_row_lock_current_waits")?,
        at_work,
        waited: Some(Duration::from_millis(variable("Innodb_row_lock_time")?)),
        unseen: open_meanwhile.is_none().then_some(
            "who holds a transaction open is hidden from this user, so that every connection counts as at work; \
             `GRANT PROCESS ON *.* TO` it",
        ),
    })
}

fn activity(rows: &[Row]) -> Result<Sessions, StoreError> {
    let row = rows.first().ok_or(StoreError::Failed)?;
    Ok(Sessions {
        waiting: number(row, 0)?,
        at_work: number(row, 1)?,
        waited: None,
        unseen: (number(row, 2)? > 0).then_some(
            "what sessions of others do is hidden from this user; `GRANT pg_read_all_stats TO` it, or ask as the user of \
             the server",
        ),
    })
}

fn number(row: &Row, column: usize) -> Result<u64, StoreError> {
    row.int(column).map(|number| u64::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_variables_are_found_by_name() {
        let row = |name: &str, value: &str| Row(vec![name.into(), value.into()]);
        let rows = [
            row("Threads_running", "4"),
            row("Threads_connected", "9"),
            row("INNODB_ROW_LOCK_CURRENT_WAITS", "2"),
            row("Innodb_row_lock_time", "1500"),
        ];
        let seen = status_and_transactions(&rows, Some(2)).unwrap();
        let waited = Some(Duration::from_millis(1500));
        assert_eq!(seen, Sessions { waiting: 2, at_work: 5, waited, unseen: None });
        let seen = status_and_transactions(&rows, None).unwrap();
        assert!(seen.at_work == 8 && seen.unseen.is_some_and(|said| said.contains("PROCESS")));
        assert_eq!(status_and_transactions(&rows[..3], None), Err(StoreError::Failed));
    }

    #[test]
    fn sessions_that_are_hidden_are_told() {
        let row = |hidden: i64| [Row(vec![1.into(), 3.into(), hidden.into()])];
        assert_eq!(activity(&row(0)), Ok(Sessions { waiting: 1, at_work: 3, ..Sessions::default() }));
        assert!(activity(&row(2)).unwrap().unseen.is_some());
        assert_eq!(activity(&[]), Err(StoreError::Failed));
    }
}
