//! The file server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts_away;
mod auth_cache;
mod backends;
mod fake_accounts;
mod get;
mod logs;
mod quotas;
mod resuming;
mod support;
mod traversal;
mod uploads;
