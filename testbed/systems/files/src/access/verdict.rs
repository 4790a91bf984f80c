//! What is known of someone who presents a credential.

use std::{sync::Arc, time::Duration};

use accounts::{Identity, User};

/// What is known of someone who presents a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Right. For a session: for how long still.
    Right {
        /// Whose it is.
        user: Arc<User>,
        /// How long the session lasts; `None` for a password.
        expires_in: Option<Duration>,
    },
    /// Wrong.
    Wrong,
    /// Not looked at: too many tries have failed.
    Slowed {
        /// When trying again is of use, seconds.
        retry_after_s: u32,
    },
    /// Nobody can say: the accounts server is away, busy or broken.
    Unavailable,
}

impl From<Identity> for Verdict {
    fn from(identity: Identity) -> Self {
        Self::Right { user: Arc::new(identity.user), expires_in: identity.expires_in }
    }
}
