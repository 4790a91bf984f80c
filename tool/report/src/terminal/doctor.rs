//! What on a host would spoil a measurement, on a terminal.

use analysis::doctor::{Examined, Fault};
use analysis::run::HostName;

use super::style::{Style, wrap};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined};
use crate::sentences::doctor::{self, Told};
use crate::{number, words};

/// What was found on hosts as text for a terminal, ending in a newline: each with its host, unless that is this one, what it is,
/// what it does to the figures, and what mends it; then what could not be looked at. `server` says whose processes were looked
/// at, if any were.
pub(crate) fn text(hosts: &[&Examined], server: Option<&str>, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = (options.width.max(WIDTH_MIN) - MARGIN.len()).min(TEXT_WIDTH_MAX - MARGIN.len());
    let mut faults: Vec<(&HostName, &Fault)> =
        hosts.iter().flat_map(|host| host.faults.iter().map(move |fault| (&host.on, fault))).collect();
    faults.sort_by_key(|(_, fault)| fault.certainty());
    let headline = headline(faults.len(), &places(hosts, server));
    let mut blocks = vec![wrap(&style.text(&headline), width, |line| style.strong(line))];
    blocks.extend(faults.into_iter().map(|(on, fault)| block(on, fault, (style, width))));
    let unmade = hosts.iter().flat_map(|host| doctor::unmade(&host.on, &host.facts.unmade));
    blocks.extend(unmade.map(|text| wrap(&style.text(&text), width, |line| style.warn(line))));
    joined(&blocks)
}

fn block(on: &HostName, fault: &Fault, (style, width): (Style, usize)) -> Vec<String> {
    let Told { is, does, mend } = doctor::fault(fault);
    let label = words::capitalised(doctor::certainty(fault.certainty()));
    let host = on.as_ref().map_or_else(String::new, |host| format!("{host}: "));
    let there = on.as_ref().map_or_else(String::new, |host| format!("on {host}: "));
    let mut block = wrap(&style.text(&format!("{label}. {host}{is} {does}")), width, str::to_owned);
    block.extend(wrap(&style.text(&format!("  {there}{mend}")), width, |line| {
        style.accent(&format!("  {line}"))
    }));
    block
}

/// What was looked at: `this host, web and http://10.0.0.7:8080`.
fn places(hosts: &[&Examined], server: Option<&str>) -> String {
    let name = |host: &&Examined| host.on.clone().unwrap_or_else(|| "this host".to_owned());
    let mut places: Vec<String> = hosts.iter().map(name).chain(server.map(str::to_owned)).collect();
    let last = places.pop().unwrap_or_default();
    if places.is_empty() { last } else { format!("{} and {last}", places.join(", ")) }
}

fn headline(found: usize, places: &str) -> String {
    match found {
        0 => format!("Nothing that would spoil a measurement was found on {places}."),
        1 => format!("One thing on {places} would spoil a measurement, or may."),
        some => {
            format!("{} things on {places} would spoil a measurement, or may.", number::count(some as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::doctor::{Check, Facts, Unmade};

    use super::*;

    fn host(on: Option<&str>, faults: Vec<Fault>) -> Examined {
        Examined { on: on.map(str::to_owned), faults, facts: Facts::default() }
    }

    fn shown(hosts: &[&Examined], server: Option<&str>) -> String {
        text(hosts, server, &TerminalOptions::default())
    }

    #[test]
    fn what_is_found_elsewhere_has_its_host_before_it_and_the_command_to_run_there() {
        let here = host(None, vec![Fault::HugePages]);
        let web = host(Some("web"), vec![Fault::Steal { share: 0.2 }, Fault::ListenQueue { limit: 64 }]);
        let said = shown(&[&here, &web], Some("http://10.0.0.7:80"));
        let [steal, queue, pages] =
            ["Spoils. web: The hypervisor", "Depends. web: Listen queues hold 64", "May. The kernel gives"]
                .map(|words| said.find(words).unwrap_or_else(|| panic!("no {words} in {said}")));
        assert!(steal < queue && queue < pages, "the surest first, wherever it is: {said}");
        assert!(said.contains("on web: sysctl -w net.core.somaxconn=4096"), "{said}");
        assert!(said.contains("3 things on this host, web and http://10.0.0.7:80 would"), "{said}");
    }

    #[test]
    fn this_host_alone_is_told_as_ever() {
        let here = host(None, vec![Fault::ListenQueue { limit: 64 }]);
        let said = shown(&[&here], None);
        assert!(said.starts_with("  One thing on this host would"), "{said}");
        assert!(said.contains("Depends. Listen queues") && !said.contains("on this host:"), "{said}");
        assert!(shown(&[&host(None, Vec::new())], None).contains("was found on this host."));
    }

    #[test]
    fn what_could_not_be_looked_at_is_told_by_check_and_reason() {
        let unmade = |check, os_error| Unmade { check, os_error: Some(os_error) };
        let checks = vec![unmade(Check::Ports, 1), unmade(Check::Neighbours, 13), unmade(Check::Backlog, 1)];
        let facts = Facts { unmade: checks, ..Facts::default() };
        let web = Examined { facts, ..host(Some("web"), Vec::new()) };
        let said =
            shown(&[&host(None, Vec::new()), &web], None).split_whitespace().collect::<Vec<_>>().join(" ");
        let ports =
            "Not looked at on web: local ports, the server's own listen queue (Operation not permitted";
        assert!(said.contains(ports), "{said}");
        assert!(said.contains("Not looked at on web: other processes (Permission denied"), "{said}");
        assert!(said.contains("Run the agent on web as root (--sudo with ssh://)"), "{said}");
    }
}
