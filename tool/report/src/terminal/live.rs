//! The curve and the table of a sweep that goes on.

use super::style::{Style, breakable};
use super::{plot, steps};
use crate::live::Known;

/// The curve so far in at most so many lines of so many columns; nothing where there is no room for one, or no point yet.
#[must_use]
pub fn curves(known: &Known, (width, height): (usize, usize), unicode: bool) -> Vec<String> {
    complete(plot::lines_within(&known.run(), Style::new(false, unicode), width, height))
}

/// The table of the steps so far: its headings, and the steps by ascending users.
#[must_use]
pub fn table(known: &Known, width: usize, unicode: bool) -> Vec<String> {
    complete(steps::lines(&known.run(), Style::new(false, unicode), width))
}

fn complete(lines: Vec<String>) -> Vec<String> {
    lines.iter().map(|line| breakable(line)).collect()
}
