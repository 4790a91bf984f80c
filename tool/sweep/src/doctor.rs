//! Looks for what on this host would spoil a measurement.

use std::{net::SocketAddr, thread, time::Duration};

use analysis::doctor::{Facts, Fault, faults};
use observe::{ObserveError, Topology};
pub use observe::{SettingError, Settings};

/// How long strangers, the hypervisor and swap are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug)]
pub struct Diagnosis {
    /// The faults, surest first.
    pub faults: Vec<Fault>,
    /// The facts that show them, as they are now.
    pub facts: Facts,
    /// Why the server's processes were not looked at, if there is a server and they were not.
    pub unseen: Option<ObserveError>,
}

/// Looks at this host and, given its addresses, at the server's processes here: those behind the first address that has
/// some. Takes a second.
#[must_use]
pub fn diagnose(server: &[SocketAddr]) -> Diagnosis {
    let (mut topology, mut unseen) = (None, None);
    for address in server {
        match observe::find(*address) {
            Ok(found) => {
                (topology, unseen) = (Some(found), None);
                break;
            }
            Err(error) => unseen = unseen.or(Some(error)),
        }
    }
    let first = look(topology.as_ref());
    thread::sleep(WATCHED);
    let second = look(topology.as_ref());
    Diagnosis { faults: faults(&first, &second), facts: second, unseen }
}

/// The faults that settings alone show, at once: what goes on meanwhile is not watched.
#[must_use]
pub fn glance(server: &[SocketAddr]) -> Vec<Fault> {
    let topology = server.iter().find_map(|address| observe::find(*address).ok());
    let look = look(topology.as_ref());
    faults(&look, &look)
}

fn look(topology: Option<&Topology>) -> Facts {
    let facts = observe::facts(std::process::id(), topology);
    Facts { debug_build: cfg!(debug_assertions), ..facts }
}
