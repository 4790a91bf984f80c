//! The tables a system needs, and how an older database is brought up to date.

use refinery::error::Kind;

use crate::error::OpenError;

/// The tables of one system. Systems may share a database server: each keeps a history of its own.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// What the tables hold, in a word: `accounts`. Part of the history's name, and of messages.
    pub name: &'static str,
    /// Marks an SQLite file as one of this schema (`PRAGMA application_id`).
    pub application_id: i64,
    /// The steps from an empty database, in order. Never changed once released; only added to.
    pub migrations: &'static [Migration],
}

/// One step, in one transaction where the database can.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// As refinery names them: `V1__accounts`.
    pub name: &'static str,
    /// The step on SQLite.
    pub sqlite: &'static str,
    /// The step on MariaDB and MySQL, where tables are made outside of transactions: it must stand being done again.
    pub mysql: &'static str,
    /// The step on PostgreSQL.
    pub postgres: &'static str,
}

impl Schema {
    /// The version this program writes.
    pub fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    /// What brings a database up to date; `text` picks the dialect.
    pub(crate) fn runner(
        &self,
        text: impl Fn(&Migration) -> &'static str,
    ) -> Result<refinery::Runner, refinery::Error> {
        let steps = self.migrations.iter();
        let steps = steps.map(|step| refinery::Migration::unapplied(step.name, text(step)));
        let mut runner = refinery::Runner::new(&steps.collect::<Result<Vec<_>, _>>()?).set_grouped(true);
        runner.set_migration_table_name(format!("{}_schema_history", self.name));
        Ok(runner)
    }

    /// What to tell of steps that could not be done.
    pub(crate) fn refused(&self, error: &refinery::Error, database: &str) -> OpenError {
        let (what, database, known) = (self.name, database.to_owned(), self.version());
        match error.kind() {
            Kind::MissingVersion(step) if i64::from(step.version()) > known => {
                OpenError::TooNew { what, database, found: step.version().into(), known }
            }
            kind => OpenError::Migration { what, database, reason: kind.to_string() },
        }
    }
}
