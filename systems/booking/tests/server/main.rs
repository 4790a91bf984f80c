//! The booking server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
mod bad_input;
mod browser;
mod durability;
mod faults;
mod page;
mod race;
mod servers;
mod suite;
mod support;
