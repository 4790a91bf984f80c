//! The index server and peers over real sockets.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod away;
mod cancelling;
mod index;
mod keys;
mod lying;
mod migration;
mod page;
mod peers;
mod rotten;
mod support;
