//! Why something was refused.

use engine::offload;
use store::StoreError;

/// Why [`Accounts`] refused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The name is taken.
    #[error("this name is taken")]
    Taken,
    /// No open account has this name and password. Does not say which of the two is wrong.
    #[error("the name or the password is wrong")]
    Unknown,
    /// No current session has this token.
    #[error("the token is wrong, or its session has ended; log in again")]
    NoSession,
    /// The request has no credential.
    #[error("a name and password, or a token, are needed")]
    Nameless,
    /// The caller is not an administrator.
    #[error("only an administrator may do this")]
    Forbidden,
    /// There is no account with that name. Only administrators learn this.
    #[error("there is no account of this name")]
    NoAccount,
    /// Too many attempts have failed. Does not say whether the account exists.
    #[error("too many logins have failed; try again in {retry_after_s} s")]
    Slowed {
        /// When to try again, seconds.
        retry_after_s: u32,
    },
    /// Only administrators may create accounts.
    #[error("only an administrator may create accounts; ask one")]
    Closed,
    /// Too many accounts were created from one address.
    #[error("too many accounts were created from this address; try again in {retry_after_s} s")]
    Crowded {
        /// When to try again, seconds.
        retry_after_s: u32,
    },
    /// Too much is waiting; try again in a second.
    #[error("the accounts server is busy")]
    Busy,
    /// The disk is full; nothing was changed.
    #[error("the disk of the accounts server is full")]
    DiskFull,
    /// The database, the hashing or the randomness failed; the server's log has the reason.
    #[error("the accounts server has failed; its log has the reason")]
    Failed,
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::DiskFull => Self::DiskFull,
            _ => Self::Failed,
        }
    }
}

impl From<offload::Error> for Refused {
    fn from(error: offload::Error) -> Self {
        match error {
            offload::Error::Full | offload::Error::NoThread => Self::Busy,
            offload::Error::Panicked => Self::Failed,
        }
    }
}

pub(crate) fn fail(doing: &str, error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "{doing} failed");
    Refused::Failed
}
