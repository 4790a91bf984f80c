//! Who may: who somebody is, how that is found out and remembered, and what they may read and write.
//!
//! `gate` lets a request in or not. It asks what is remembered (`verified`, until `revocations` take it back), and else
//! the `authority`, which may be an accounts server (`remote`, over a `link`).

pub(crate) mod authority;
pub(crate) mod caller;
pub(crate) mod fingerprint;
pub(crate) mod flights;
pub(crate) mod gate;
pub(crate) mod link;
pub(crate) mod permissions;
pub(crate) mod remote;
pub(crate) mod revocations;
pub(crate) mod session;
pub(crate) mod verdict;
pub(crate) mod verified;
