//! The accounts server over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod api;
mod durability;
mod support;
