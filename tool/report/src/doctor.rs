//! Shows what on a host would spoil a measurement.

use analysis::doctor::{Examined, Fault};
use analysis::run::{AgentTrouble, HostName};

use crate::sentences::doctor;
use crate::terminal::{TerminalOptions, plain};

/// A fault before a sweep, with its host unless that is this one, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn in_short(on: &HostName, fault: &Fault) -> String {
    let told = doctor::fault(fault);
    let (host, there) = match on {
        Some(host) => (format!("{host}: "), format!(" on {host}")),
        None => (String::new(), String::new()),
    };
    plain(&format!("{host}{} {} Mend{there}: {}", told.is, told.does, told.mend))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_another_host_is_told_with_its_name_and_where_to_mend_it() {
        let fault = Fault::ListenQueue { limit: 64 };
        let said = in_short(&Some("web".to_owned()), &fault);
        assert!(said.starts_with("web: Listen queues hold 64 "), "{said}");
        assert!(said.contains(" Mend on web: sysctl -w net.core.somaxconn=4096"), "{said}");
        let here = in_short(&None, &fault);
        assert!(here.starts_with("Listen queues hold 64 ") && here.contains(" Mend: sysctl"), "{here}");
    }
}
