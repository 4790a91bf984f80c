//! The schema.

use store::{Migration, Schema};

/// Accounts, sessions, revocations, the audit, and the names of deleted accounts.
///
/// A session has the version of its account's credential and ends when that increases. `revocations` has one row for each
/// marked bucket of accounts (see [`crate::revocations`]), with the revision of its last mark. MySQL has no `ADD COLUMN IF NOT
/// EXISTS`, so its columns are added by prepared statements that do nothing when they are repeated after an interruption.
pub(crate) const SCHEMA: Schema = Schema {
    name: "accounts",
    // "nsta"
    application_id: 0x6e73_7461,
    migrations: &[
        Migration {
            name: "V1__accounts",
            sqlite: include_str!("v1/sqlite.sql"),
            mysql: include_str!("v1/mysql.sql"),
            postgres: include_str!("v1/postgres.sql"),
        },
        Migration {
            name: "V2__administration",
            sqlite: include_str!("v2/sqlite.sql"),
            mysql: include_str!("v2/mysql.sql"),
            postgres: include_str!("v2/postgres.sql"),
        },
        Migration {
            name: "V3__deleted_names",
            sqlite: include_str!("v3/sqlite.sql"),
            mysql: include_str!("v3/mysql.sql"),
            postgres: include_str!("v3/postgres.sql"),
        },
    ],
};
