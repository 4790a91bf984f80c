//! Lists of processors.

use crate::{exit::Failure, values};

/// A list of processor numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processors(pub Vec<usize>);

impl Processors {
    /// Reads a list as `taskset -c` has it.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        values::processors(text).map(Self)
    }

    /// Keeps the calling thread, and every thread it starts from now on, on these processors; on any where none are
    /// given.
    ///
    /// # Errors
    /// Where the host has none of them.
    pub fn confine(processors: Option<&Self>) -> Result<(), Failure> {
        let Some(Processors(numbers)) = processors else { return Ok(()) };
        sweep::cores::confine(numbers).map_err(|error| {
            Failure::usage(format!("--cpus {numbers:?}: {error}; `nproc --all` tells how many there are"))
        })
    }
}
