//! Shows what on a host would spoil a measurement.

use analysis::doctor::{Examined, Fault};
use analysis::run::AgentTrouble;

use crate::sentences::doctor;
use crate::terminal::{TerminalOptions, plain};

/// A fault before a sweep, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn in_short(fault: &Fault) -> String {
    let told = doctor::fault(fault);
    plain(&format!("{} {} Mend: {}", told.is, told.does, told.mend))
}

/// Why an agent found less than it was asked for, or told nothing: a part of a sentence, in ASCII.
#[must_use]
pub fn agent(host: &str, trouble: &AgentTrouble) -> String {
    plain(&doctor::agent(host, trouble))
}

/// What was found on hosts as text for a terminal, ending in a newline: each with its host, unless that is this one, what it is,
/// what it does to the figures, and what mends it; then what could not be looked at. `server` says whose processes were looked
/// at, if any were.
#[must_use]
pub fn terminal(hosts: &[&Examined], server: Option<&str>, options: &TerminalOptions) -> String {
    crate::terminal::doctor::text(hosts, server, options)
}
