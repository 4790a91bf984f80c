//! The tables themselves.

use store::{Migration, Schema};

/// Accounts, the sessions of their owners, which of them were revoked, who did what, and the names of deleted accounts.
///
/// A session holds the version of its account's credential, and ends when that rises. `revocations` says at which
/// revision something was last revoked of the accounts in a bucket (see [`crate::revocations`]): it never holds more
/// rows than there are buckets. On MySQL columns are added by statements that are put together there, as it knows no
/// `ADD COLUMN IF NOT EXISTS`: done again after it was cut off, each does nothing.
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
