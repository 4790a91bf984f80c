//! Predictions against what becomes of simulated servers when they are changed, in virtual time.
//!
//! Every seed is fixed: what agrees once agrees always.

mod changes;
mod falling;
mod measured;
mod mix;
mod plateau;
mod simulated;
