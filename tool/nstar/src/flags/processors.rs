//! Lists of processors.

use crate::values;

/// A list of processor numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Processors(pub Vec<usize>);

/// Reads one.
pub(super) fn processors(text: &str) -> Result<Processors, String> {
    values::processors(text).map(Processors)
}
