//! The accounts server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod administration;
mod api;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../../http-io/tests/asked/mod.rs"]
mod asked;
mod durability;
mod migration;
#[allow(dead_code, reason = "the tests of booking use more of it")]
#[path = "../../../../store/tests/servers/mod.rs"]
mod servers;
mod slowdown;
mod suite;
mod support;
