//! What the tests of the testbed share: an HTTP client, a browser, database servers.
//!
//! A dev-dependency only. Failures panic, as assertions do.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../../tool/nstar/tests/common/browser.rs"]
pub mod browser;
pub mod database_servers;
pub mod http;
pub mod replicated;
