//! The tables of a system, and the migrations of older databases.

use refinery::error::Kind;

use crate::error::OpenError;

/// The tables of one system. Systems may share a database: each keeps its own migration history.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// What the tables store, in one word, such as `accounts`. Used in messages and the name of the history.
    pub name: &'static str,
    /// Marks an SQLite file as one of this schema (`PRAGMA application_id`).
    pub application_id: i64,
    /// The migrations from an empty database, in order. Once released, they are only added to.
    pub migrations: &'static [Migration],
}

/// A migration. It runs in one transaction if the database can do that.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its name in refinery's form, such as `V1__accounts`.
    pub name: &'static str,
    /// The SQL for SQLite.
    pub sqlite: &'static str,
    /// The SQL for MariaDB and MySQL, which create tables outside of transactions: it must be repeatable.
    pub mysql: &'static str,
    /// The SQL for PostgreSQL.
    pub postgres: &'static str,
}

impl Schema {
    /// The version this program writes.
    pub fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    /// The runner of the migrations. `text` picks the dialect.
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

    /// The error of a failed migration.
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
