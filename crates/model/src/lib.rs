//! What the numbers mean: steady state, intervals, N*, operational laws, demands, verdict.
//!
//! Pure: no clock, no socket, no file, no randomness. Raw measurements come in ([`sample`],
//! [`counters`]), a [`run::Run`] goes out, and every figure a report shows was computed here.

pub mod counters;
pub mod run;
pub mod sample;
