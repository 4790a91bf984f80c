//! The tables themselves.

use store::{Migration, Schema};

/// Peers, and by which terms their files are found. A file has a row for its name (kind 0), for each word of it (1) and
/// for its content (2), each with all that an answer needs, so that a search is one look into one index. A peer's time
/// is kept once, so that renewing it is one row; one whose time is over loses its address and never comes back to life:
/// what it had may be swept away at leisure. `holder` is the key that registered the address, or empty; peers from before
/// there were any are forgotten, and register again with theirs. On MySQL names are kept as bytes: collations there would
/// take some that differ for the same.
pub(crate) const SCHEMA: Schema = Schema {
    name: "share",
    // "nsts"
    application_id: 0x6e73_7473,
    migrations: &[
        Migration {
            name: "V1__share",
            sqlite: include_str!("v1/sqlite.sql"),
            mysql: include_str!("v1/mysql.sql"),
            postgres: include_str!("v1/postgres.sql"),
        },
        Migration {
            name: "V2__holders",
            sqlite: include_str!("v2/sqlite.sql"),
            mysql: include_str!("v2/mysql.sql"),
            postgres: include_str!("v2/postgres.sql"),
        },
    ],
};
