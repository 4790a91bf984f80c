//! Ports for programs that are told theirs before they listen.

use std::{collections::BTreeMap, io, net::TcpListener, ops::Range, process};

use crate::{
    definition::Experiment,
    resolve::{Places, TrialSetup},
};

/// Ports below those that Linux gives to outgoing connections (ip(7), `ip_local_port_range`: 32768 to 60999): none of
/// these takes one away while the program that it is for has not started.
const PORTS: Range<u16> = 10_000..32_000;

/// A port on which nothing listens, for every name and instance.
///
/// # Errors
/// If there are too few.
pub(super) fn all(experiment: &Experiment) -> io::Result<BTreeMap<(String, u32), u16>> {
    // Two experiments at once begin at different places.
    let first = process::id() as usize * 61;
    let candidates = PORTS.cycle().skip(first % PORTS.len()).take(PORTS.len());
    let mut free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let none = || io::Error::new(io::ErrorKind::AddrInUse, "all ports are in use");
    let mut ports = BTreeMap::new();
    for key in names(experiment) {
        ports.insert(key, free.next().ok_or_else(none)?);
    }
    Ok(ports)
}

/// Every name of a port with every number of its process, over all measurements.
fn names(experiment: &Experiment) -> Vec<(String, u32)> {
    let places = Places::example(experiment);
    let mut all = Vec::new();
    for variant in &experiment.variants {
        for work in &experiment.works {
            // Whatever is wrong with it was told when it was read.
            let instances = TrialSetup { experiment, variant, work }.instances(&places).unwrap_or_default();
            let ports = |number| move |name: &String| (name.clone(), number);
            all.extend(instances.iter().flat_map(|one| one.process.ports.iter().map(ports(one.number))));
        }
    }
    // The first of each is known by name even where its process does not run.
    all.extend(experiment.processes.iter().flat_map(|process| &process.ports).map(|name| (name.clone(), 0)));
    all.sort_unstable();
    all.dedup();
    all
}
