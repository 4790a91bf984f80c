//! How long to measure, and how a case ends early.

use std::error::Error;

/// An error ends its case with a sentence.
pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Turns of each program.
    pub rounds: usize,
    /// Length of a turn, seconds.
    pub seconds: u32,
}
