//! Shows a comparison: one table per workload, one page, one file.

use analysis::comparison::{Comparison, SCHEMA};

use crate::beside;
use crate::html::RenderError;
use crate::json::ReadError;
use crate::terminal::TerminalOptions;

/// The comparison as the JSON of its file, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Comparison`] gives cause for.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let mut comparison = comparison.clone();
    beside::put_in_comparison(&mut comparison);
    serde_json::to_string_pretty(&comparison).map(|text| text + "\n")
}

/// Reads a comparison file.
///
/// # Errors
/// [`ReadError`], which says what is wrong, where, and what to do.
pub fn parse(text: &str) -> Result<Comparison, ReadError> {
    crate::json::parse_comparison(text)
}

/// The JSON Schema of a comparison file, as shipped in `docs/comparison.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<Comparison>(SCHEMA)
}

/// The comparison as text for a terminal, ending in a newline.
#[must_use]
pub fn terminal(comparison: &Comparison, options: &TerminalOptions) -> String {
    crate::terminal::comparison::text(comparison, options)
}

/// How far publications agree with what was measured, and which claims are met, as text for a terminal.
#[must_use]
pub fn held_terminal(comparison: &Comparison, options: &TerminalOptions) -> String {
    crate::terminal::comparison::held_text(comparison, options)
}

/// The comparison as a page that opens offline.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(comparison: &Comparison) -> Result<String, RenderError> {
    crate::html::comparison::page(comparison)
}

/// The comparison's entries as comma-separated values.
#[must_use]
pub fn csv(comparison: &Comparison) -> String {
    crate::csv::comparison(comparison)
}
