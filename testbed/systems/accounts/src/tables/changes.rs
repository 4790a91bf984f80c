//! Administration: listing, changing and deleting accounts. Each change has its revocation and its audit entry.

use store::{Row, Statement, StoreError};

use super::{Tables, account};
use crate::{
    account::{Account, Role, now_s},
    audit::{Action, Entry, Record},
    revocations::{self, BUCKETS, Revocations},
};

/// A change of an account. What is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The new role.
    pub role: Option<Role>,
    /// Whether it is disabled. Disabling it ends its sessions.
    pub disabled: Option<bool>,
    /// When it expires, Unix seconds, or `Some(None)` for never.
    pub expires_at_s: Option<Option<i64>>,
    /// Its quota, bytes, or `Some(None)` for the default of the file server.
    pub quota_bytes: Option<Option<u64>>,
}

impl Change {
    /// One statement for each column.
    fn statements(&self, name: &str) -> impl Iterator<Item = Statement> {
        let set = |sql| Statement::new(sql);
        let role = self.role.map(|role| set("UPDATE accounts SET role = ? WHERE name = ?").with(role.name()));
        let disabled = self.disabled.map(|disabled| match disabled {
            true => set("UPDATE accounts SET disabled = 1, credential_version = credential_version + 1 \
                         WHERE name = ?"),
            false => set("UPDATE accounts SET disabled = 0 WHERE name = ?"),
        });
        let expires = self
            .expires_at_s
            .map(|at_s| set("UPDATE accounts SET expires_at_s = ? WHERE name = ?").with(at_s));
        let quota = self.quota_bytes.map(|bytes| {
            let bytes = bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
            set("UPDATE accounts SET quota_bytes = ? WHERE name = ?").with(bytes)
        });
        let all = [role, disabled, expires, quota];
        let name = name.to_owned();
        all.into_iter().flatten().map(move |statement| statement.with(name.as_str()))
    }
}

impl Tables {
    /// Changes a password. Returns `false` if there is no such account, or its credential no longer has this version.
    pub(crate) async fn change_password(
        &self,
        password_hash: &str,
        version: Option<i64>,
        entry: &Entry<'_>,
    ) -> Result<bool, StoreError> {
        let any = "UPDATE accounts SET password_hash = ?, credential_version = credential_version + 1 \
                   WHERE name = ?";
        let this = "UPDATE accounts SET password_hash = ?, credential_version = credential_version + 1 \
                    WHERE name = ? AND credential_version = ?";
        let update = Statement::new(if version.is_some() { this } else { any });
        let update = update.with(password_hash).with(entry.account);
        self.revoke(version.into_iter().fold(update, Statement::with), entry).await
    }

    /// Changes an account. Returns `false` if there is none.
    pub(crate) async fn change(&self, change: &Change, entry: &Entry<'_>) -> Result<bool, StoreError> {
        let mut statements = change.statements(entry.account);
        let Some(first) = statements.next() else { return Ok(false) };
        self.revoke(statements.fold(first, Statement::then), entry).await
    }

    /// Deletes an account and reserves its name. Returns `false` if there is none.
    pub(crate) async fn delete(&self, entry: &Entry<'_>) -> Result<bool, StoreError> {
        let of_the_name = |sql| Statement::new(sql).with(entry.account);
        let delete = self
            .revoking(of_the_name("DELETE FROM accounts WHERE name = ?"), entry)
            .then(of_the_name("DELETE FROM deleted_names WHERE name = ?"))
            .then(of_the_name("INSERT INTO deleted_names (name) VALUES (?)"));
        Ok(self.store.execute(delete).await? > 0)
    }

    /// Whether an account with this name was deleted.
    pub(crate) async fn was_deleted(&self, name: &str) -> Result<bool, StoreError> {
        let select = Statement::new("SELECT name FROM deleted_names WHERE name = ?").with(name);
        Ok(!self.store.query(select).await?.is_empty())
    }

    /// Ends a session. Returns `false` if there is none.
    pub(crate) async fn end_session(&self, digest: &[u8; 32], entry: &Entry<'_>) -> Result<bool, StoreError> {
        let delete = Statement::new("DELETE FROM sessions WHERE token_digest = ?").with(&digest[..]);
        self.revoke(delete, entry).await
    }

    /// Makes a change with its revocation and audit entry. Returns `false` if there was nothing to change.
    async fn revoke(&self, change: Statement, entry: &Entry<'_>) -> Result<bool, StoreError> {
        Ok(self.store.execute(self.revoking(change, entry)).await? > 0)
    }

    /// The change together with statements that mark the account's bucket and add the audit entry in the same transaction.
    /// The transaction holds the row of the revision until its end, so that revisions appear in order.
    fn revoking(&self, change: Statement, entry: &Entry<'_>) -> Statement {
        let bucket = i64::from(revocations::bucket(entry.account));
        let mark = "INSERT INTO revocations (bucket, revision) \
                    VALUES (?, (SELECT value FROM revision WHERE id = 1))";
        change
            .then(Statement::new("UPDATE revision SET value = value + 1 WHERE id = 1"))
            .then(Statement::new("DELETE FROM revocations WHERE bucket = ?").with(bucket))
            .then(Statement::new(mark).with(bucket))
            .then(self.entry(entry))
    }

    /// At most `limit` accounts with names after `after`, in order.
    pub(crate) async fn list(&self, after: &str, limit: i64) -> Result<Vec<Account>, StoreError> {
        let select = select!("", "WHERE accounts.name > ? ORDER BY accounts.name LIMIT ?");
        let rows = self.store.query(Statement::new(select).with(after).with(limit)).await?;
        rows.iter().map(account).collect()
    }

    /// What was revoked since a revision, or nothing if none is given.
    pub(crate) async fn revocations(&self, after: Option<u64>) -> Result<Revocations, StoreError> {
        // Buckets that are marked between the two queries are returned twice.
        let rows = self.store.query(Statement::new("SELECT value FROM revision WHERE id = 1")).await?;
        let revision = rows.first().ok_or(StoreError::Failed)?.int(0)?;
        let revision = u64::try_from(revision).map_err(|_| StoreError::Failed)?;
        let buckets = match after.unwrap_or(revision) {
            after if after > revision => None,
            after if after == revision => Some(Vec::new()),
            after => Some(self.buckets(after).await?),
        };
        Ok(Revocations { revision, buckets })
    }

    async fn buckets(&self, after: u64) -> Result<Vec<u16>, StoreError> {
        let select = "SELECT bucket FROM revocations WHERE revision > ? ORDER BY bucket";
        let after = i64::try_from(after).map_err(|_| StoreError::Failed)?;
        let rows = self.store.query(Statement::new(select).with(after)).await?;
        let bucket = |row: &Row| {
            let bucket = u16::try_from(row.int(0)?).map_err(|_| StoreError::Failed)?;
            Ok(bucket % BUCKETS)
        };
        rows.iter().map(bucket).collect()
    }

    /// The statement that adds an audit entry.
    pub(crate) fn entry(&self, entry: &Entry<'_>) -> Statement {
        let insert =
            "INSERT INTO audit (at_s, actor, address, action, account, detail) VALUES (?, ?, ?, ?, ?, ?)";
        Statement::new(insert)
            .with(now_s())
            .with(entry.by.actor)
            .with(entry.by.address.to_canonical().to_string())
            .with(entry.action.name())
            .with(entry.account)
            .with(entry.detail.as_str())
    }

    /// Adds an audit entry about failed logins.
    pub(crate) async fn note_failures(&self, entry: &Entry<'_>) -> Result<(), StoreError> {
        debug_assert_eq!(entry.action, Action::Slowed);
        self.store.execute(self.entry(entry)).await.map(drop)
    }

    /// At most `limit` audit entries after `after`, in order.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<Vec<Record>, StoreError> {
        let select = "SELECT id, at_s, actor, address, action, account, detail FROM audit \
                      WHERE id > ? ORDER BY id LIMIT ?";
        let rows = self.store.query(Statement::new(select).with(after).with(limit)).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<Record, StoreError> {
    let text = |column| row.text(column).map(str::to_owned);
    Ok(Record {
        id: row.int(0)?,
        at_s: row.int(1)?,
        actor: text(2)?,
        address: text(3)?,
        action: text(4)?,
        account: text(5)?,
        detail: text(6)?,
    })
}
