//! The tables of the accounts server, and everything that is asked of them.

use store::{Migration, Row, Schema, Statement, Store, StoreError};

/// Accounts, and the sessions of their owners.
pub(crate) const SCHEMA: Schema = Schema {
    name: "accounts",
    // "nsta"
    application_id: 0x6e73_7461,
    migrations: &[Migration {
        name: "V1__accounts",
        sqlite: V1_SQLITE,
        mysql: V1_MYSQL,
        postgres: V1_POSTGRES,
    }],
};

const V1_SQLITE: &str = "
    CREATE TABLE IF NOT EXISTS accounts (
        name TEXT PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS sessions (
        token_digest BLOB PRIMARY KEY,
        name TEXT NOT NULL,
        expires_at_s INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS sessions_by_expiry ON sessions (expires_at_s);
";

const V1_MYSQL: &str = "
    CREATE TABLE IF NOT EXISTS accounts (
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        password_hash VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        created_at_s BIGINT NOT NULL
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS sessions (
        token_digest BINARY(32) NOT NULL PRIMARY KEY,
        name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        expires_at_s BIGINT NOT NULL,
        INDEX sessions_by_expiry (expires_at_s)
    ) ENGINE = InnoDB;
";

const V1_POSTGRES: &str = "
    CREATE TABLE accounts (
        name TEXT COLLATE \"C\" PRIMARY KEY,
        password_hash TEXT NOT NULL,
        created_at_s BIGINT NOT NULL
    );
    CREATE TABLE sessions (
        token_digest BYTEA PRIMARY KEY,
        name TEXT COLLATE \"C\" NOT NULL,
        expires_at_s BIGINT NOT NULL
    );
    CREATE INDEX sessions_by_expiry ON sessions (expires_at_s);
";

/// The tables, in words of the accounts server.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
}

impl Tables {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// A new account; `false` when the name is taken.
    pub(crate) async fn add_account(&self, name: &str, password_hash: &str) -> Result<bool, StoreError> {
        let insert = "INSERT INTO accounts (name, password_hash, created_at_s) VALUES (?, ?, ?)";
        let insert = Statement::new(insert).with(name).with(password_hash).with(crate::now_s());
        self.store.insert(insert).await
    }

    /// The stored hash of a name's password.
    pub(crate) async fn password_hash(&self, name: &str) -> Result<Option<String>, StoreError> {
        let select = Statement::new("SELECT password_hash FROM accounts WHERE name = ?").with(name);
        let rows = self.store.query(select).await?;
        rows.first().map(|row| row.text(0).map(str::to_owned)).transpose()
    }

    /// A new session. Those that have ended make room for it.
    pub(crate) async fn add_session(
        &self,
        digest: &[u8; 32],
        name: &str,
        expires_at_s: i64,
    ) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM sessions WHERE expires_at_s <= ?").with(crate::now_s());
        self.store.execute(delete).await?;
        let insert = "INSERT INTO sessions (token_digest, name, expires_at_s) VALUES (?, ?, ?)";
        let insert = Statement::new(insert).with(&digest[..]).with(name).with(expires_at_s);
        self.store.execute(insert).await.map(drop)
    }

    /// The name and the expiry (Unix seconds) of a session that is still good. A session ends with its time, and with
    /// its account.
    pub(crate) async fn session(
        &self,
        digest: &[u8; 32],
        now_s: i64,
    ) -> Result<Option<(String, i64)>, StoreError> {
        let select = "SELECT sessions.name, expires_at_s FROM sessions \
                      JOIN accounts ON accounts.name = sessions.name \
                      WHERE token_digest = ? AND expires_at_s > ?";
        let rows = self.store.query(Statement::new(select).with(&digest[..]).with(now_s)).await?;
        let session = |row: &Row| Ok((row.text(0)?.to_owned(), row.int(1)?));
        rows.first().map(session).transpose()
    }
}

#[cfg(test)]
mod tests {
    use engine::block_on;

    use super::*;

    fn tables() -> (tempfile::TempDir, Tables) {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("accounts.db").into();
        let store = Store::open(&database, &SCHEMA, &store::Options::default()).unwrap();
        (folder, Tables::new(store))
    }

    #[test]
    fn names_and_sessions_are_found_until_they_end() {
        let (_folder, tables) = tables();
        let far = crate::now_s() + 1000;
        block_on(async {
            assert_eq!(tables.add_account("ann", "hash").await, Ok(true));
            assert_eq!(tables.add_account("ann", "other").await, Ok(false));
            assert_eq!(tables.password_hash("ann").await, Ok(Some("hash".into())));
            assert_eq!(tables.password_hash("Ann").await, Ok(None));
            tables.add_session(&[7; 32], "ann", far).await.unwrap();
            assert_eq!(tables.session(&[7; 32], far - 1).await, Ok(Some(("ann".into(), far))));
            assert_eq!(tables.session(&[7; 32], far).await, Ok(None));
            assert_eq!(tables.session(&[8; 32], far - 1).await, Ok(None));
            tables.store.execute(Statement::new("DELETE FROM accounts")).await.unwrap();
            assert_eq!(tables.session(&[7; 32], far - 1).await, Ok(None), "a session ends with its account");
        });
    }

    #[test]
    fn ended_sessions_go_when_new_ones_come() {
        let (_folder, tables) = tables();
        block_on(async {
            tables.add_session(&[1; 32], "ann", 5).await.unwrap();
            tables.add_session(&[2; 32], "ann", i64::MAX).await.unwrap();
            let rows = tables.store.query(Statement::new("SELECT token_digest FROM sessions")).await.unwrap();
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].bytes(0), Ok(&[2; 32][..]));
        });
    }
}
