//! The generator against scripted servers on real sockets.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod closed_loop;
mod common;
mod faults;
mod open_loop;
mod probing;
mod tls;
