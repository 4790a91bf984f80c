//! Who sends a request, and what a check of a credential says.

use std::{rc::Rc, sync::Arc, time::Duration};

use accounts::{Identity, User};

/// Who sends a request, once it has been admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anyone: there are no accounts.
    Anyone,
    /// A user. Each worker has its own copy, so that workers do not contend for a shared reference count.
    User(Rc<User>),
}

impl Caller {
    /// The user, if there are accounts.
    pub(crate) fn user(&self) -> Option<&User> {
        match self {
            Self::Anyone => None,
            Self::User(user) => Some(user),
        }
    }
}

impl From<Option<User>> for Caller {
    fn from(user: Option<User>) -> Self {
        user.map_or(Self::Anyone, |user| Self::User(Rc::new(user)))
    }
}

/// The result of checking a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CredentialCheck {
    /// It is valid.
    Valid {
        /// The user it belongs to.
        user: Arc<User>,
        /// How long the session lasts. `None` for a password.
        expires_in: Option<Duration>,
    },
    /// It is invalid.
    Invalid,
    /// It was not checked, as too many logins have failed.
    Throttled {
        /// When to try again, seconds.
        retry_after_s: u32,
    },
    /// It could not be checked: the accounts server is down, busy or broken.
    Unavailable,
}

impl From<Identity> for CredentialCheck {
    fn from(identity: Identity) -> Self {
        Self::Valid { user: Arc::new(identity.user), expires_in: identity.expires_in }
    }
}
