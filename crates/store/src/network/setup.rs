//! What is done on a database server before ours starts.

use super::{
    blocking::Blocking,
    durability, mysql, postgres,
    session::{Driver, Failure},
    trouble::Trouble,
};
use crate::{
    database::{Kind, Server},
    error::OpenError,
    order::{Ask, Reply},
    schema::Schema,
    statement::{Row, Statement},
};
use refinery::error::Kind as Refused;

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
    pub(crate) fn open(server: &Server, schema: &Schema) -> Result<Self, OpenError> {
        let failed = |trouble| server_error(schema.name, server, trouble);
        let mut connection = Blocking::open(server).map_err(OpenError::Thread)?.map_err(failed)?;
        let migrated = connection.wait(async |session| match &mut session.driver {
            Driver::Mysql(session) => mysql::migrate(server, session, schema).await,
            Driver::Postgres(session) => postgres::migrate(session, schema).await,
        });
        migrated.map_err(failed)?.map_err(|error| refused(&error, server, schema))?;
        Ok(Self { connection, what: schema.name, server: server.to_string() })
    }

    /// Tells in the log of settings by which changes that were acknowledged may be lost.
    pub(crate) fn tell_of_settings(&mut self, kind: Kind) {
        // Whoever may not ask is told nothing.
        let answer = self.query(&durability::question(kind)).unwrap_or_default();
        if let Some((setting, wanted)) = answer.first().and_then(|row| durability::doubt(kind, row)) {
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

fn server_error(what: &'static str, server: &Server, trouble: Trouble) -> OpenError {
    OpenError::Server { what, server: server.to_string(), trouble }
}

fn refused(error: &refinery::Error, server: &Server, schema: &Schema) -> OpenError {
    if let Refused::Connection(_, source) = error.kind() {
        let trouble = mysql::trouble_of(&**source).or_else(|| postgres::trouble_of(&**source));
        if let Some(trouble) = trouble {
            return server_error(schema.name, server, trouble);
        }
    }
    schema.refused(error, &server.to_string())
}
