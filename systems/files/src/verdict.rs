//! What is known of someone who presents a credential.

use std::time::Duration;

/// What is known of someone who presents a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Right. For a session: for how long still.
    Right {
        /// How long the session lasts; `None` for a password.
        expires_in: Option<Duration>,
    },
    /// Wrong.
    Wrong,
    /// Nobody can say: the accounts server is away, busy or broken.
    Unavailable,
}
