//! The generator against scripted servers on real sockets.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod bodies;
mod capturing;
mod closed_loop;
mod common;
mod faults;
mod many;
mod null_server;
mod open_loop;
mod probing;
mod seeds;
mod tls;
mod uploads;
