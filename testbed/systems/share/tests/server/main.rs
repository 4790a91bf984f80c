//! The index server and peers over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../../http-io/tests/asked/mod.rs"]
mod asked;
mod away;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../../http-io/tests/browser/mod.rs"]
mod browser;
mod cancelling;
mod index;
mod keys;
mod lying;
mod migration;
mod page;
mod peers;
mod rotten;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../../store/tests/servers/mod.rs"]
mod servers;
mod support;
