//! The file server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts_away;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../../http-io/tests/asked/mod.rs"]
mod asked;
mod auth_cache;
mod backends;
mod behind_proxies;
#[path = "../../../../http-io/tests/browser/mod.rs"]
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
