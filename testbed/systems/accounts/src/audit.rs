//! Audit entries: who did what to which account, when and from where.

use std::net::IpAddr;

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// The name of the account that acts, or a placeholder for callers without one.
    pub actor: &'a str,
    /// The address of the client.
    pub address: IpAddr,
}

impl By<'_> {
    /// A caller with the administrator's token. No account can have this name.
    pub const TOKEN: &'static str = "(admin token)";
    /// An unknown caller.
    pub(crate) const NOBODY: &'static str = "(unknown)";
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Created,
    PasswordChanged,
    Changed,
    Deleted,
    LoggedOut,
    /// Failed logins to an account, or from an address, are slowed down from now on.
    Slowed,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::PasswordChanged => "password changed",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::LoggedOut => "logged out",
            Self::Slowed => "failed logins slowed",
        }
    }
}

/// An entry to insert.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) by: By<'a>,
    pub(crate) action: Action,
    /// The account, or empty.
    pub(crate) account: &'a str,
    /// What was changed. Contains no secret.
    pub(crate) detail: String,
}

/// An entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: i64,
    pub(crate) at_s: i64,
    pub(crate) actor: String,
    pub(crate) address: String,
    pub(crate) action: String,
    pub(crate) account: String,
    pub(crate) detail: String,
}
