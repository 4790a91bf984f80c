//! Who may do what: identifies callers, caches their credentials, and applies permissions.
//!
//! `admission` admits a request or refuses it. It looks up the credential in `credential_cache`, whose entries
//! `revocations` invalidates, and otherwise asks the `authority`, which may be an `accounts_server`.

pub(crate) mod accounts_server;
pub(crate) mod admission;
pub(crate) mod authority;
pub(crate) mod credential_cache;
pub(crate) mod fingerprint;
pub(crate) mod identity;
pub(crate) mod permissions;
pub(crate) mod revocations;
pub(crate) mod session;
