//! The booking server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
mod bad_input;
mod browser;
mod counting;
mod durability;
mod faults;
mod page;
mod race;
#[path = "../../../../crates/store/tests/servers/mod.rs"]
mod servers;
mod suite;
mod support;
