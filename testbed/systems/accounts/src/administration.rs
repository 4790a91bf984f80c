//! Changes to accounts by their owners and by administrators.

use std::{net::IpAddr, sync::Arc};

use crate::{
    account::Account,
    accounts::{Accounts, Refused},
    audit::{Action, By, Entry, Record},
    credentials::{Name, Password},
    revocations::Revocations,
    tables::Change,
    time,
};

/// Maximum number of accounts or entries in one response.
pub(crate) const PAGE_MAX: i64 = 1000;

impl Accounts {
    /// Whether this is the administrator's token.
    pub fn is_admin_token(&self, token: &[u8]) -> bool {
        self.common.is_admin(token)
    }

    /// Changes the password of an owner. Ends their sessions. Caches forget the old password with the next request for
    /// [`revocations`](Self::revocations).
    ///
    /// # Errors
    /// [`Refused::Unknown`] if the old password is wrong, and the errors of [`check`](Self::check).
    pub async fn change_password(
        &self,
        name: &str,
        old: &str,
        new: Password,
        from: IpAddr,
    ) -> Result<(), Refused> {
        let account = self.account(name, old, from).await?;
        let by = By { actor: &account.user.name, address: from };
        let entry = entry(by, Action::PasswordChanged, &account.user.name);
        let changed = self.store_password(new, Some(account.credential_version), &entry).await?;
        // It was changed meanwhile, so the old password is no longer right.
        changed.then_some(()).ok_or(Refused::Unknown)
    }

    /// Sets a password for an administrator.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn set_password(&self, name: &Name, new: Password, by: By<'_>) -> Result<(), Refused> {
        let entry = entry(by, Action::PasswordChanged, name.as_str());
        let changed = self.store_password(new, None, &entry).await?;
        changed.then_some(()).ok_or(Refused::NoAccount)
    }

    async fn store_password(
        &self,
        new: Password,
        version: Option<i64>,
        entry: &Entry<'_>,
    ) -> Result<bool, Refused> {
        let common = Arc::clone(&self.common);
        let hash = self.hashing.run(move || common.hash(&new)).await??;
        Ok(self.tables.change_password(&hash, version, entry).await?)
    }

    /// The account with this name.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn get(&self, name: &Name) -> Result<Account, Refused> {
        let found = self.tables.account(name.as_str()).await?;
        found.map(|(account, _)| account).ok_or(Refused::NoAccount)
    }

    /// At most `limit` accounts with names after `after`, in order; 1 000 at most.
    pub async fn list(&self, after: &str, limit: i64) -> Result<Vec<Account>, Refused> {
        Ok(self.tables.list(after, limit.clamp(1, PAGE_MAX)).await?)
    }

    /// Changes an account and returns it.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn change(&self, name: &Name, change: &Change, by: By<'_>) -> Result<Account, Refused> {
        let entry = Entry { detail: detail(change), ..entry(by, Action::Changed, name.as_str()) };
        match self.tables.change(change, &entry).await? {
            true => self.get(name).await,
            false => Err(Refused::NoAccount),
        }
    }

    /// Whether an account with this name was deleted.
    pub async fn was_deleted(&self, name: &Name) -> Result<bool, Refused> {
        Ok(self.tables.was_deleted(name.as_str()).await?)
    }

    /// Creates an account for an administrator, even if one with its name was deleted.
    ///
    /// # Errors
    /// [`Refused::Taken`].
    pub async fn create_anew(&self, name: &Name, password: Password, by: By<'_>) -> Result<(), Refused> {
        self.make(name, password, by).await
    }

    /// Deletes an account and its sessions. Its name stays reserved.
    ///
    /// # Errors
    /// [`Refused::NoAccount`].
    pub async fn delete(&self, name: &Name, by: By<'_>) -> Result<(), Refused> {
        let entry = entry(by, Action::Deleted, name.as_str());
        self.tables.delete(&entry).await?.then_some(()).ok_or(Refused::NoAccount)
    }

    /// What was revoked since a revision, or nothing if none is given.
    pub async fn revocations(&self, after: Option<u64>) -> Result<Revocations, Refused> {
        Ok(self.tables.revocations(after).await?)
    }

    /// At most `limit` audit entries after `after`, in order; 1 000 at most.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<Vec<Record>, Refused> {
        Ok(self.tables.audit(after, limit.clamp(1, PAGE_MAX)).await?)
    }
}

pub(crate) fn entry<'a>(by: By<'a>, action: Action, account: &'a str) -> Entry<'a> {
    Entry { by, action, account, detail: String::new() }
}

/// Describes a change, as in `disabled=true quota=none`.
fn detail(change: &Change) -> String {
    let none = || "none".to_owned();
    let parts = [
        change.role.map(|role| format!("role={role}")),
        change.disabled.map(|disabled| format!("disabled={disabled}")),
        change.expires_at_s.map(|at_s| format!("expires={}", at_s.map_or_else(none, time::show))),
        change
            .quota_bytes
            .map(|bytes| format!("quota={}", bytes.map_or_else(none, |bytes| bytes.to_string()))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
