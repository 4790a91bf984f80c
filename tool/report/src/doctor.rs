//! Shows what on a host would spoil a measurement.

use analysis::doctor::Fault;

use crate::sentences::doctor;
use crate::terminal::{TerminalOptions, plain};

/// A fault before a sweep, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn in_short(fault: &Fault) -> String {
    let told = doctor::fault(fault);
    plain(&format!("{} {} Mend: {}", told.is, told.does, told.mend))
}

/// The faults as text for a terminal, ending in a newline: each with what it is, what it does to the figures, and what mends
/// it. `server` says whose processes were looked at, if any were.
#[must_use]
pub fn terminal(faults: &[Fault], server: Option<&str>, options: &TerminalOptions) -> String {
    crate::terminal::doctor::text(faults, server, options)
}
