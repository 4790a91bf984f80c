//! The accounts server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod administration;
mod api;
mod durability;
mod migration;
mod slowdown;
mod suite;
mod support;
