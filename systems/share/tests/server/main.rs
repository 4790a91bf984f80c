//! The index server and peers over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod index;
mod lying;
mod peers;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../../crates/store/tests/servers/mod.rs"]
mod servers;
mod support;
