//! What the numbers mean: steady state, intervals, N*, operational laws, demands, verdict.
//!
//! Pure: no clock, no socket, no file, no randomness. Raw measurements come in ([`sample`],
//! [`counters`]), a [`run::Run`] goes out, and every figure a report shows was computed here.

pub mod batch_means;
pub mod bounds;
pub mod compare;
pub mod conclude;
pub mod counters;
pub mod demands;
pub mod growth;
mod isotonic;
mod ladder;
pub mod laws;
mod matrix;
pub mod mix;
pub mod mser;
pub mod mva;
mod peak;
pub mod percentiles;
mod plateau;
mod pooling;
pub mod proof;
pub mod resources;
pub mod run;
pub mod sample;
pub mod saturation;
pub mod search;
mod series;
pub mod silence;
pub mod steady;
mod student;
pub mod study;
pub mod unevenness;
pub mod usl;
pub mod verdict;
pub mod warnings;
mod words;
