//! What is done on a database server before ours starts.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    blocking::Blocking,
    durability, mysql, postgres,
    session::{Driver, Failure},
    trouble::Trouble,
};
use crate::{
    database::{Dialect, ServerDatabase},
    error::OpenError,
    order::{Ask, Reply},
    schema::Schema,
    statement::{Row, Statement},
};
use refinery::error::Kind as Refused;

/// How long a server that is starting up is waited for. To replay its log after a crash it may take far longer.
const STARTING_UP: Duration = Duration::from_secs(15);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// One connection to a database that is up to date. While it is open, other programs that start wait for it.
pub(crate) struct Setup {
    connection: Blocking,
    what: &'static str,
    server: String,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Setup {
    pub(crate) fn open(server: &ServerDatabase, schema: &Schema) -> Result<Self, OpenError> {
        let failed = |trouble| server_error(schema.name, server, trouble);
        let mut connection = connect(server, schema.name, STARTING_UP)?;
        let migrated = connection.wait(async |session| match &mut session.driver {
            Driver::Mysql(session) => mysql::migrate(server, session, schema).await,
            Driver::Postgres(session) => postgres::migrate(session, schema).await,
        });
        migrated.map_err(failed)?.map_err(|error| refused(&error, server, schema))?;
        Ok(Self { connection, what: schema.name, server: server.to_string() })
    }

    /// Tells in the log of settings by which changes that were acknowledged may be lost.
    pub(crate) fn tell_of_settings(&mut self, dialect: Dialect) {
        // Whoever may not ask is told nothing.
        let answer = self.query(&durability::question(dialect)).unwrap_or_default();
        if let Some((setting, wanted)) = answer.first().and_then(|row| durability::doubt(dialect, row)) {
            let (what, server) = (self.what, &self.server);
            tracing::warn!(
                "what the {what} database {server} has acknowledged may be lost when the power fails: \
                 its {setting} should be {wanted}"
            );
        }
    }

    pub(crate) fn query(&mut self, statement: &Statement) -> Result<Vec<Row>, OpenError> {
        match self.run(Ask::Rows, statement)? {
            Reply::Rows(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) fn insert_all(&mut self, statements: &[Statement]) -> Result<(), OpenError> {
        self.command("BEGIN")?;
        for statement in statements {
            self.run(Ask::Inserted, statement)?;
        }
        self.command("COMMIT")
    }

    fn run(&mut self, ask: Ask, statement: &Statement) -> Result<Reply, OpenError> {
        let outcome = self.connection.wait(async |session| session.run(ask, statement).await);
        outcome.map_err(|failure| {
            let trouble = match failure {
                Failure::Connection(trouble) => trouble,
                Failure::Undone(said) => Trouble::Other(said),
                Failure::Statement(error) => Trouble::Other(error.to_string()),
            };
            self.failed(trouble)
        })
    }

    fn command(&mut self, sql: &'static str) -> Result<(), OpenError> {
        let outcome = self.connection.wait(async |session| session.command(sql).await);
        outcome.map_err(|trouble| self.failed(trouble))
    }

    fn failed(&self, trouble: Trouble) -> OpenError {
        OpenError::Server { what: self.what, server: self.server.clone(), trouble }
    }
}

/// Connects; to a server that starts up meanwhile, once it is ready.
fn connect(server: &ServerDatabase, what: &'static str, patience: Duration) -> Result<Blocking, OpenError> {
    let end = Instant::now() + patience;
    let mut waiting = false;
    loop {
        match Blocking::open(server).map_err(OpenError::Thread)? {
            Err(Trouble::NotReady(said)) if Instant::now() < end => {
                if !std::mem::replace(&mut waiting, true) {
                    tracing::warn!("the {what} database {server} takes no connections yet ({said}): waiting");
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
    if let Refused::Connection(_, source) = error.kind() {
        let trouble = mysql::trouble_of(&**source).or_else(|| postgres::trouble_of(&**source));
        if let Some(trouble) = trouble {
            return server_error(schema.name, server, trouble);
        }
    }
    schema.refused(error, &server.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use std::{
        io::{Read, Write},
        net::TcpListener,
    };

    const STARTING: (&str, &str) = ("57P03", "the database system is starting up");

    /// What PostgreSQL says in place of taking a connection, by its code and its message.
    fn refusal((code, message): (&str, &str)) -> Vec<u8> {
        let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
        let length = u32::try_from(4 + fields.len()).unwrap().to_be_bytes();
        [b"E", &length[..], fields.as_bytes()].concat()
    }

    /// Connects to a server that answers so, each connection with the next; tells what came of it.
    fn told(answers: &'static [(&str, &str)], patience: Duration) -> String {
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
    fn a_server_that_starts_up_is_waited_for_and_then_told_to_be_starting() {
        let forever = Duration::from_secs(3600);
        let ready = told(&[STARTING, STARTING, ("3D000", "no database \"nstar\"")], forever);
        assert!(ready.contains("CREATE DATABASE"), "asked until it was ready: {ready}");
        let late = told(&[STARTING], Duration::ZERO);
        assert!(late.contains("starting up; try again") && !late.contains("check that it runs"), "{late}");
    }
}
