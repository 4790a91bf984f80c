//! What on a host would spoil a measurement, on a terminal.

use analysis::doctor::Fault;

use super::style::{Style, wrap};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined};
use crate::sentences::doctor::{self, Told};
use crate::{number, words};

/// The faults as text for a terminal, ending in a newline: each with what it is, what it does to the figures, and what mends
/// it. `server` says whose processes were looked at, if any were.
pub(crate) fn text(faults: &[Fault], server: Option<&str>, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = (options.width.max(WIDTH_MIN) - MARGIN.len()).min(TEXT_WIDTH_MAX - MARGIN.len());
    let mut blocks = vec![wrap(&style.text(&headline(faults, server)), width, |line| style.strong(line))];
    for fault in faults {
        let Told { is, does, mend } = doctor::fault(fault);
        let label = doctor::certainty(fault.certainty());
        let mut block =
            wrap(&style.text(&format!("{}. {is} {does}", words::capitalised(label))), width, str::to_owned);
        block.extend(wrap(&style.text(&format!("  {mend}")), width, |line| {
            style.accent(&format!("  {line}"))
        }));
        blocks.push(block);
    }
    joined(&blocks)
}

fn headline(faults: &[Fault], server: Option<&str>) -> String {
    let of = server.map_or_else(|| "this host".to_owned(), |server| format!("this host and {server}"));
    match faults.len() {
        0 => format!("Nothing that would spoil a measurement was found on {of}."),
        1 => format!("One thing on {of} would spoil a measurement, or may."),
        some => format!("{} things on {of} would spoil a measurement, or may.", number::count(some as u64)),
    }
}
