//! Accounts: the owner's name and role, and when the account ends. Times are stored as Unix seconds and shown as in RFC 3339.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the owner of an account may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Use the service.
    #[default]
    User,
    /// Use the service and administer its accounts.
    Admin,
}

impl Role {
    /// The name that is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "user" => Ok(Self::User),
            "admin" => Ok(Self::Admin),
            _ => Err("must be \"user\" or \"admin\""),
        }
    }
}

/// A user and what they may do, as clients of the accounts server need to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name of the account.
    pub name: String,
    /// What its owner may do.
    #[serde(default)]
    pub role: Role,
    /// How many bytes they may store. `None` means the default of the file server.
    #[serde(default, rename = "quota")]
    pub quota_bytes: Option<u64>,
}

/// An account, without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its owner.
    pub user: User,
    /// Whether an administrator has disabled it.
    pub disabled: bool,
    /// When it ends, Unix seconds.
    pub expires_at_s: Option<i64>,
    /// When it was created, Unix seconds.
    pub created_at_s: i64,
    /// Increases whenever caches must forget the account. Sessions with an older version have ended.
    pub(crate) credential_version: i64,
}

impl Account {
    /// Whether its owner may log in at this time (Unix seconds).
    pub fn is_open(&self, now_s: i64) -> bool {
        !self.disabled && self.expires_at_s.is_none_or(|expires_at_s| now_s < expires_at_s)
    }
}

/// The current time, Unix seconds.
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Formats a time, as in `2027-01-31T18:00:00Z`.
pub(crate) fn show_time(at_s: i64) -> String {
    Timestamp::from_second(at_s).unwrap_or(Timestamp::MAX).to_string()
}

/// Parses a time.
pub(crate) fn parse_time(text: &str) -> Result<i64, &'static str> {
    let read = text.parse::<Timestamp>();
    read.map(Timestamp::as_second).map_err(|_| "must be a time such as 2027-01-31T18:00:00Z, or null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_open_until_it_is_disabled_or_expires() {
        let user = User { name: "ann".into(), role: Role::User, quota_bytes: None };
        let account = |disabled, expires_at_s| Account {
            user: user.clone(),
            disabled,
            expires_at_s,
            created_at_s: 0,
            credential_version: 1,
        };
        assert!(account(false, None).is_open(i64::MAX));
        assert!(account(false, Some(10)).is_open(9));
        assert!(!account(false, Some(10)).is_open(10));
        assert!(!account(true, None).is_open(0));
    }

    #[test]
    fn users_of_older_servers_can_be_read() {
        let user: User = serde_json::from_str(r#"{"name":"ann"}"#).unwrap();
        assert_eq!(user, User { name: "ann".into(), role: Role::User, quota_bytes: None });
        let shown = serde_json::to_string(&User { role: Role::Admin, quota_bytes: Some(7), ..user }).unwrap();
        assert_eq!(shown, r#"{"name":"ann","role":"admin","quota":7}"#);
    }

    #[test]
    fn times_are_in_the_format_of_rfc_3339() {
        assert_eq!(parse_time("2027-01-31T18:00:00Z"), Ok(1_801_418_400));
        assert_eq!(parse_time("2027-01-31T19:00:00+01:00"), Ok(1_801_418_400));
        assert_eq!(show_time(1_801_418_400), "2027-01-31T18:00:00Z");
        for wrong in
            ["", "tomorrow", "2027-02-30T00:00:00Z", "2027-01-31", "2027-01-31T18:00:00", "1801418400"]
        {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
