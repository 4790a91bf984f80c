//! The booking server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
mod bad_input;
mod cancelled;
mod counting;
mod durability;
mod faults;
mod limits;
mod migration;
mod page;
mod race;
mod suite;
mod support;
