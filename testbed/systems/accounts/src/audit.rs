//! Who did what to which account, when and from where.

use std::net::IpAddr;

/// Who acts, as the audit has it.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// The name of the account that acts, or what stands for somebody without one.
    pub actor: &'a str,
    /// From where.
    pub address: IpAddr,
}

impl By<'_> {
    /// Whoever presents the administrator's token. No account can have this name.
    pub const TOKEN: &'static str = "(admin token)";
    /// Nobody who is known.
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
    /// Failed logins with an account, or from an address, are slowed down from now on.
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

/// An entry to be made.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) by: By<'a>,
    pub(crate) action: Action,
    /// The account; empty where none is meant.
    pub(crate) account: &'a str,
    /// What was changed to what. Holds no secret.
    pub(crate) detail: String,
}

/// An entry that was made.
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
