//! The accounts server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
mod databases;
mod durability;
#[allow(dead_code, reason = "the tests of booking use more of it")]
#[path = "../../../../crates/store/tests/servers/mod.rs"]
mod servers;
mod support;
