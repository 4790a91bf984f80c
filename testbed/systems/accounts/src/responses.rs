//! Accounts and audit entries as JSON.

use serde::{Deserialize, Serialize};

use crate::{
    account::{Account, User, show_time},
    audit::Record,
};

/// The response to `GET /auth`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recognised {
    /// The user.
    #[serde(flatten)]
    pub user: User,
    /// How long this holds at most, seconds, if the session or the account ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct AccountMade<'a> {
    pub(crate) name: &'a str,
}

#[derive(Serialize)]
pub(crate) struct SessionMade<'a> {
    pub(crate) token: &'a str,
    pub(crate) token_type: &'a str,
    pub(crate) expires_in_s: u64,
}

#[derive(Serialize)]
pub(crate) struct ShownAccount {
    #[serde(flatten)]
    user: User,
    disabled: bool,
    expires: Option<String>,
    created: String,
}

impl From<Account> for ShownAccount {
    fn from(account: Account) -> Self {
        let (expires, created) = (account.expires_at_s.map(show_time), show_time(account.created_at_s));
        Self { user: account.user, disabled: account.disabled, expires, created }
    }
}

/// A page of the accounts, in order of their names.
#[derive(Serialize)]
pub(crate) struct AccountList {
    accounts: Vec<ShownAccount>,
    /// What to pass as `after` for the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

impl AccountList {
    pub(crate) fn new(found: Vec<Account>, limit: i64) -> Self {
        let last = found.last().filter(|_| is_full(found.len(), limit));
        let next_after = last.map(|account| account.user.name.clone());
        Self { accounts: found.into_iter().map(Into::into).collect(), next_after }
    }
}

#[derive(Serialize)]
struct ShownRecord {
    id: i64,
    at: String,
    actor: String,
    address: String,
    action: String,
    account: String,
    detail: String,
}

/// A page of the audit, in order.
#[derive(Serialize)]
pub(crate) struct AuditList {
    entries: Vec<ShownRecord>,
    /// What to pass as `after` for the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

impl AuditList {
    pub(crate) fn new(found: Vec<Record>, limit: i64) -> Self {
        let next_after = found.last().filter(|_| is_full(found.len(), limit)).map(|record| record.id);
        Self { entries: found.into_iter().map(show).collect(), next_after }
    }
}

fn show(record: Record) -> ShownRecord {
    let Record { id, at_s, actor, address, action, account, detail } = record;
    ShownRecord { id, at: show_time(at_s), actor, address, action, account, detail }
}

fn is_full(found: usize, limit: i64) -> bool {
    i64::try_from(found).is_ok_and(|found| found >= limit)
}
