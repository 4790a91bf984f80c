//! Shows what came of sending each request of a scenario once.

use analysis::check::Checked;

use crate::terminal::TerminalOptions;

/// The requests as a table for a terminal, ending in a newline. Bodies are not shown, nor values whose names say that they
/// are secrets.
#[must_use]
pub fn terminal(checked: &[Checked], options: &TerminalOptions) -> String {
    crate::terminal::check::text(checked, options)
}
