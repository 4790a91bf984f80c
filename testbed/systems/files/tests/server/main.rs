//! The file server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts_away;
mod auth_cache;
mod backends;
mod behind_proxies;
mod cutting;
mod fake_accounts;
mod get;
mod logs;
mod page;
mod quotas;
mod resuming;
mod revocations;
mod sessions;
mod support;
mod traversal;
mod uploads;
