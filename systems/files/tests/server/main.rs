//! The file server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts_away;
mod auth_cache;
mod backends;
#[path = "../../../booking/tests/server/browser.rs"]
mod browser;
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
