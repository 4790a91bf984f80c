//! Work on a database server before our server starts.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use refinery::error::Kind;
use tokio::{runtime::Runtime, task::LocalSet};

use super::{
    connection::{Driver, ServerConnection, new_runtime},
    mysql, postgres,
};
use crate::{
    database::{Dialect, ServerDatabase},
    error::{OpenError, Trouble},
    queue::{Reply, StatementFailure, Wanted},
    schema::Schema,
    statement::{Row, Statement},
};

/// How long to wait for a server that is starting up. Replaying its log after a crash may take far longer.
const START_WAIT_MAX: Duration = Duration::from_secs(15);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// A connection to a database whose tables are up to date. While it is open, other programs that start wait for it.
pub(crate) struct NetworkSetup {
    connection: Blocking,
    what: &'static str,
    server: String,
    dialect: Dialect,
}

impl std::fmt::Debug for NetworkSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkSetup").field("server", &self.server).finish_non_exhaustive()
    }
}

impl NetworkSetup {
    pub(crate) fn open(server: &ServerDatabase, schema: &Schema) -> Result<Self, OpenError> {
        let failed = |trouble| server_error(schema.name, server, trouble);
        let mut connection = connect(server, schema.name, START_WAIT_MAX)?;
        let node = connection.connection.node;
        let migrated = connection.wait(async |connection| match &mut connection.driver {
            Driver::Mysql(driver) => mysql::migrate(server, node, driver, schema).await,
            Driver::Postgres(driver) => postgres::migrate(driver, schema).await,
        });
        migrated.map_err(failed)?.map_err(|error| refused(&error, server, schema))?;
        Ok(Self { connection, what: schema.name, server: server.to_string(), dialect: server.dialect })
    }

    /// Logs a warning if the server's settings may lose acknowledged changes.
    pub(crate) fn warn_of_settings(&mut self) {
        // Without the privilege to ask there is no warning.
        let reply = self.query(&durability_settings(self.dialect)).unwrap_or_default();
        if let Some((setting, wanted)) = reply.first().and_then(|row| unsafe_setting(self.dialect, row)) {
            let (what, server) = (self.what, &self.server);
            tracing::warn!(
                "changes that the {what} database {server} has acknowledged may be lost in a power failure: \
                 its {setting} should be {wanted}"
            );
        }
    }

    pub(crate) fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        match self.run(Wanted::Rows, statement)? {
            Reply::Rows(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        self.command("BEGIN")?;
        for statement in statements {
            self.run(Wanted::Inserted, statement)?;
        }
        self.command("COMMIT")
    }

    pub(crate) fn settle(&mut self, table: &str) -> Result<(), OpenError> {
        for sql in settling(self.dialect, table) {
            let outcome = self.connection.wait(async |connection| connection.command(&sql).await);
            match outcome {
                Err(Trouble::NoRights(said)) => {
                    let (what, server) = (self.what, &self.server);
                    tracing::warn!("the {what} database {server} refuses {sql}: {said}");
                }
                outcome => outcome.map_err(|trouble| self.failed(trouble))?,
            }
        }
        Ok(())
    }

    fn run(&mut self, wanted: Wanted, statement: &Statement) -> Result<Reply, OpenError> {
        let outcome = self.connection.wait(async |connection| connection.run(wanted, statement).await);
        outcome.map_err(|failure| {
            let trouble = match failure {
                StatementFailure::Connection(trouble) => trouble,
                StatementFailure::RolledBack(said) => Trouble::Other(said),
                StatementFailure::Statement(error) => Trouble::Other(error.to_string()),
            };
            self.failed(trouble)
        })
    }

    fn command(&mut self, sql: &str) -> Result<(), OpenError> {
        let outcome = self.connection.wait(async |connection| connection.command(sql).await);
        outcome.map_err(|trouble| self.failed(trouble))
    }

    fn failed(&self, trouble: Trouble) -> OpenError {
        OpenError::Server { what: self.what, server: self.server.clone(), trouble }
    }
}

/// A connection on the calling thread: whoever sends a statement blocks until the reply.
struct Blocking {
    connection: ServerConnection,
    // Dropped after the connection, whose tasks run here.
    tasks: LocalSet,
    runtime: Runtime,
}

impl Blocking {
    /// Connects. The outer error is this machine's, the inner one the server's.
    fn open(server: &ServerDatabase) -> io::Result<Result<Self, Trouble>> {
        let (runtime, tasks) = (new_runtime()?, LocalSet::new());
        let connection = tasks.block_on(&runtime, ServerConnection::open(server, server.node_for_setup()));
        Ok(connection.map(|connection| Self { connection, tasks, runtime }))
    }

    /// Runs `what` with the connection to its end.
    fn wait<T>(&mut self, what: impl AsyncFnOnce(&mut ServerConnection) -> T) -> T {
        self.tasks.block_on(&self.runtime, what(&mut self.connection))
    }
}

/// Connects. Waits up to `patience` for a server that is starting up.
fn connect(server: &ServerDatabase, what: &'static str, patience: Duration) -> Result<Blocking, OpenError> {
    let end = Instant::now() + patience;
    let mut waiting = false;
    loop {
        match Blocking::open(server).map_err(OpenError::Thread)? {
            Err(Trouble::NotReady(said)) if Instant::now() < end => {
                if !std::mem::replace(&mut waiting, true) {
                    tracing::warn!(
                        "the {what} database {server} accepts no connections yet ({said}); waiting"
                    );
                }
                thread::sleep(BETWEEN_TRIES);
            }
            outcome => return outcome.map_err(|trouble| server_error(what, server, trouble)),
        }
    }
}

fn server_error(what: &'static str, server: &ServerDatabase, trouble: Trouble) -> OpenError {
    OpenError::Server { what, server: server.to_string(), trouble }
}

fn refused(error: &refinery::Error, server: &ServerDatabase, schema: &Schema) -> OpenError {
    if let Kind::Connection(_, source) = error.kind() {
        let trouble = mysql::trouble_of(&**source).or_else(|| postgres::trouble_of(&**source));
        if let Some(trouble) = trouble {
            return server_error(schema.name, server, trouble);
        }
    }
    schema.refused(error, &server.to_string())
}

/// What gathers statistics of a table and writes it from the log to its place. InnoDB has no command for a checkpoint, but
/// it writes all pages of a table that is to be exported.
fn settling(dialect: Dialect, table: &str) -> Vec<String> {
    match dialect {
        Dialect::Mysql => vec![
            format!("ANALYZE TABLE {table}"),
            format!("FLUSH TABLES {table} FOR EXPORT"),
            "UNLOCK TABLES".into(),
        ],
        Dialect::Postgres => vec![format!("VACUUM (ANALYZE) {table}"), "CHECKPOINT".into()],
    }
}

/// The statement that reads the relevant settings, each as text.
fn durability_settings(dialect: Dialect) -> Statement {
    Statement::new(match dialect {
        Dialect::Mysql => {
            "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@innodb_doublewrite AS CHAR)"
        }
        Dialect::Postgres => "SELECT current_setting('fsync'), current_setting('full_page_writes')",
    })
}

/// The first setting that may lose acknowledged changes, as `name=value`, and what it should be. PostgreSQL's
/// `synchronous_commit` is not checked: every connection turns it on.
fn unsafe_setting(dialect: Dialect, settings: &Row) -> Option<(String, &'static str)> {
    let wanted: [(&str, &[&str]); 2] = match dialect {
        // 3 exists on MariaDB only: like 1, with more flushes per group commit.
        Dialect::Mysql => [
            ("innodb_flush_log_at_trx_commit", &["1", "3"]),
            // MySQL 8 uses names.
            ("innodb_doublewrite", &["1", "ON", "DETECT_AND_RECOVER"]),
        ],
        Dialect::Postgres => [("fsync", &["on"]), ("full_page_writes", &["on"])],
    };
    wanted.into_iter().enumerate().find_map(|(column, (name, good))| {
        let value = settings.text(column).ok()?;
        let is_good = good.iter().any(|good| good.eq_ignore_ascii_case(value));
        (!is_good).then(|| (format!("{name}={value}"), good[0]))
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
    };

    use super::*;
    use crate::database::Database;

    const STARTING: (&str, &str) = ("57P03", "the database system is starting up");

    /// The message with which PostgreSQL refuses a connection.
    fn refusal((code, message): (&str, &str)) -> Vec<u8> {
        let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
        let length = u32::try_from(4 + fields.len()).unwrap().to_be_bytes();
        [b"E", &length[..], fields.as_bytes()].concat()
    }

    /// Connects to a server that refuses one connection after the other with these messages. Returns the error.
    fn refused_by(answers: &'static [(&str, &str)], patience: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://nstar@{}/nstar", listener.local_addr().unwrap());
        let Ok(Database::Server(server)) = url.parse() else { panic!("{url} is a server's") };
        thread::spawn(move || {
            for answer in answers {
                let mut connection = listener.accept().unwrap().0;
                assert_ne!(connection.read(&mut [0; 1024]).unwrap(), 0);
                connection.write_all(&refusal(*answer)).unwrap();
            }
        });
        connect(&server, "things", patience).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_server_that_is_starting_is_waited_for_and_then_reported_as_starting() {
        let forever = Duration::from_secs(3600);
        let ready = refused_by(&[STARTING, STARTING, ("3D000", "no database \"nstar\"")], forever);
        assert!(ready.contains("CREATE DATABASE"), "tried until it was ready: {ready}");
        let late = refused_by(&[STARTING], Duration::ZERO);
        assert!(late.contains("starting up; try again") && !late.contains("check that it runs"), "{late}");
    }

    fn found(dialect: Dialect, values: [&str; 2]) -> Option<(String, &'static str)> {
        unsafe_setting(dialect, &Row(values.map(Into::into).to_vec()))
    }

    #[test]
    fn settings_that_lose_acknowledged_changes_are_found() {
        assert_eq!(found(Dialect::Mysql, ["1", "1"]), None);
        assert_eq!(found(Dialect::Mysql, ["3", "ON"]), None);
        for lossy in ["0", "2"] {
            let setting = format!("innodb_flush_log_at_trx_commit={lossy}");
            assert_eq!(found(Dialect::Mysql, [lossy, "1"]), Some((setting, "1")));
        }
        assert_eq!(found(Dialect::Mysql, ["1", "OFF"]), Some(("innodb_doublewrite=OFF".into(), "1")));
        assert_eq!(found(Dialect::Postgres, ["on", "on"]), None);
        assert_eq!(found(Dialect::Postgres, ["off", "on"]), Some(("fsync=off".into(), "on")));
        assert_eq!(found(Dialect::Postgres, ["on", "off"]), Some(("full_page_writes=off".into(), "on")));
    }

    #[test]
    fn an_unexpected_reply_raises_no_doubt() {
        assert_eq!(unsafe_setting(Dialect::Postgres, &Row(Vec::new())), None);
    }
}
