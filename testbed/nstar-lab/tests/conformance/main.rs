//! Whole servers, run as a user runs them, on every concurrency model, against the same expectations.
//!
//! Each test is one behaviour on all of `engine::Model::ALL`; [`models`] lists what a model cannot do, with the reason.
//! `NSTAR_MODEL=select cargo test -p nstar-lab --test conformance` tests one model only, `NSTAR_TLS=1 .. -- keeping
//! downloads uploads stopping` tests over TLS. What the engine alone promises is tested in `testbed/engine/tests/suite`.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts;
mod bookings;
mod client;
mod content;
mod crowds;
mod descriptors;
mod downloads;
mod hostile;
mod keeping;
mod loads;
mod models;
mod overload;
mod ports;
#[path = "../../../../tool/nstar/tests/common/program.rs"]
mod program;
mod puts;
mod server;
mod stopping;
mod stream;
mod tls;
mod uploads;
