//! The tables of the accounts server, and all statements about them.

use store::{Migration, Row, Schema, Statement, Store, StoreError};

pub use self::changes::Change;
use crate::{
    account::{Account, User, now_s},
    audit::Entry,
};

/// Selects the columns of an account, in the order of [`account`], and further ones after them.
macro_rules! select {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT accounts.name, role, disabled, accounts.expires_at_s, quota_bytes, created_at_s, ",
            "accounts.credential_version",
            $columns,
            " FROM accounts ",
            $rest
        )
    };
}

mod changes;

/// Number of columns that [`account`] reads. Further ones come after them.
const ACCOUNT_COLUMNS: usize = 7;

/// All tables.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
}

impl Tables {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Adds an account. Returns `false` if the name is taken. Its credential version is above that of any deleted account with
    /// its name, so that sessions of that account are not valid for it.
    pub(crate) async fn add_account(
        &self,
        password_hash: &str,
        entry: &Entry<'_>,
    ) -> Result<bool, StoreError> {
        let insert = "INSERT INTO accounts (name, password_hash, created_at_s, credential_version) \
                      VALUES (?, ?, ?, (SELECT value FROM revision WHERE id = 1))";
        let insert = Statement::new(insert).with(entry.account).with(password_hash).with(now_s());
        self.store.insert(insert.then(self.entry(entry))).await
    }

    /// The account with this name, and the stored hash of its password.
    pub(crate) async fn account(&self, name: &str) -> Result<Option<(Account, String)>, StoreError> {
        let select = Statement::new(select!(", password_hash", "WHERE name = ?")).with(name);
        let rows = self.store.query(select).await?;
        let found = |row: &Row| Ok((account(row)?, row.text(ACCOUNT_COLUMNS)?.to_owned()));
        rows.first().map(found).transpose()
    }

    /// Adds a session, and removes sessions that have ended.
    pub(crate) async fn add_session(
        &self,
        digest: &[u8; 32],
        of: &Account,
        expires_at_s: i64,
    ) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM sessions WHERE expires_at_s <= ?").with(now_s());
        self.store.execute(delete.repeatable(true)).await?;
        let insert =
            "INSERT INTO sessions (token_digest, name, expires_at_s, credential_version) VALUES (?, ?, ?, ?)";
        let insert = Statement::new(insert).with(&digest[..]).with(of.user.name.as_str()).with(expires_at_s);
        // No two sessions have the same digest: one that is there already was inserted by a try whose reply was lost.
        self.store.insert(insert.with(of.credential_version).repeatable(true)).await.map(drop)
    }

    /// The account of a valid session, and when the session expires (Unix seconds). A session ends when it expires, when its
    /// account is deleted, and when the account's credential changes.
    pub(crate) async fn session(
        &self,
        digest: &[u8; 32],
        now_s: i64,
    ) -> Result<Option<(Account, i64)>, StoreError> {
        let select = select!(
            ", sessions.expires_at_s",
            "JOIN sessions ON accounts.name = sessions.name \
             AND accounts.credential_version = sessions.credential_version \
             WHERE token_digest = ? AND sessions.expires_at_s > ?"
        );
        let rows = self.store.query(Statement::new(select).with(&digest[..]).with(now_s)).await?;
        let session = |row: &Row| Ok((account(row)?, row.int(ACCOUNT_COLUMNS)?));
        rows.first().map(session).transpose()
    }
}

fn account(row: &Row) -> Result<Account, StoreError> {
    let role = row.text(1)?.parse().map_err(|_| StoreError::Failed)?;
    let quota_bytes = row.maybe_int(4)?.and_then(|bytes| u64::try_from(bytes).ok());
    Ok(Account {
        user: User { name: row.text(0)?.to_owned(), role, quota_bytes },
        disabled: row.int(2)? != 0,
        expires_at_s: row.maybe_int(3)?,
        created_at_s: row.int(5)?,
        credential_version: row.int(6)?,
    })
}

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

#[cfg(test)]
mod tests {
    use engine::block_on;

    use super::*;
    use crate::audit::{Action, By};

    fn tables() -> (tempfile::TempDir, Tables) {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("accounts.db").into();
        let store = Store::open(&database, &SCHEMA, &store::Options::default()).unwrap();
        (folder, Tables::new(store))
    }

    async fn add(tables: &Tables, password_hash: &str) -> Result<bool, StoreError> {
        let by = By { actor: "ann", address: std::net::IpAddr::from([127, 0, 0, 1]) };
        let entry = Entry { by, action: Action::Created, account: "ann", detail: String::new() };
        tables.add_account(password_hash, &entry).await
    }

    async fn ann(tables: &Tables) -> Account {
        assert_eq!(add(tables, "hash").await, Ok(true));
        tables.account("ann").await.unwrap().unwrap().0
    }

    #[test]
    fn accounts_and_sessions_are_found_until_they_end() {
        let (_folder, tables) = tables();
        let far = now_s() + 1000;
        block_on(async {
            let ann = ann(&tables).await;
            assert_eq!(add(&tables, "other").await, Ok(false));
            assert_eq!(tables.account("ann").await, Ok(Some((ann.clone(), "hash".into()))));
            assert_eq!(tables.account("Ann").await, Ok(None));
            tables.add_session(&[7; 32], &ann, far).await.unwrap();
            assert_eq!(tables.session(&[7; 32], far - 1).await, Ok(Some((ann, far))));
            assert_eq!(tables.session(&[7; 32], far).await, Ok(None));
            assert_eq!(tables.session(&[8; 32], far - 1).await, Ok(None));
            tables.store.execute(Statement::new("DELETE FROM accounts")).await.unwrap();
            assert_eq!(tables.session(&[7; 32], far - 1).await, Ok(None), "a session ends with its account");
        });
    }

    #[test]
    fn expired_sessions_are_removed_when_new_ones_start() {
        let (_folder, tables) = tables();
        block_on(async {
            let ann = ann(&tables).await;
            tables.add_session(&[1; 32], &ann, 5).await.unwrap();
            tables.add_session(&[2; 32], &ann, i64::MAX).await.unwrap();
            let rows = tables.store.query(Statement::new("SELECT token_digest FROM sessions")).await.unwrap();
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].bytes(0), Ok(&[2; 32][..]));
        });
    }
}
