//! What the numbers mean: steady state, intervals, N*, operational laws, demands, verdict.
//!
//! Pure: no clock, no socket, no file, no randomness. Raw measurements come in ([`ticks`],
//! [`counters`]), a [`run::Run`] goes out, and every figure a report shows was computed here.

pub mod check;
pub mod comparison;
pub mod conclude;
pub mod confirmation;
pub mod contrast;
pub mod counters;
pub mod doctor;
pub mod estimate;
pub mod history;
pub mod laws;
pub mod prediction;
pub mod profile;
pub mod resources;
pub mod run;
pub mod search;
pub mod statistics;
pub mod tell_apart;
pub mod thresholds;
pub mod ticks;
pub mod verdict;
