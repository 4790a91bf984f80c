//! The booking server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../../http-io/tests/asked/mod.rs"]
mod asked;
mod bad_input;
#[path = "../../../../http-io/tests/browser/mod.rs"]
mod browser;
mod cancelled;
mod counting;
mod durability;
mod faults;
mod migration;
mod page;
mod race;
#[path = "../../../../store/tests/servers/mod.rs"]
mod servers;
mod suite;
mod support;
