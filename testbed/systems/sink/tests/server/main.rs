//! The sink over real sockets, on each concurrency model.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod raw;
mod support;
mod uploads;
