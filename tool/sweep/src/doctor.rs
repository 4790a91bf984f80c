//! Looks for what would spoil a measurement: on this host, and on those where somebody observes.

use std::{net::SocketAddr, thread, time::Duration};

use analysis::{
    doctor::{Examined, Facts, Fault, faults},
    run::AgentTrouble,
};
use observe::{ObserveError, Topology};
pub use observe::{SettingError, Settings};

use crate::{
    elsewhere::{FoundElsewhere, Observe},
    sweep::SweepError,
};

/// How long strangers, the hypervisor and swap are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug)]
pub struct Diagnosis {
    /// On this host.
    pub here: Examined,
    /// On the others, but for what is known from this host or from those before.
    pub elsewhere: Vec<Examined>,
    /// Why the server's processes were not looked at, if there is a server and they were not, neither here nor elsewhere.
    pub unseen: Option<ObserveError>,
    /// What those who observe elsewhere did not find of the server, with the names of their hosts.
    pub not_found: Vec<(String, AgentTrouble)>,
    /// Those who told nothing of their hosts, with the names of these.
    pub lost: Vec<(String, AgentTrouble)>,
}

impl Diagnosis {
    /// What was found on each host, this one first.
    pub fn hosts(&self) -> impl Iterator<Item = &Examined> {
        std::iter::once(&self.here).chain(&self.elsewhere)
    }
}

/// Looks at this host, at those where somebody is to observe and, given its addresses, at the server's processes: here at
/// those behind the first address that has some. Takes a second.
///
/// # Errors
/// If nobody can observe where somebody is to.
pub fn diagnose(server: &[SocketAddr], observe: &Observe) -> Result<Diagnosis, SweepError> {
    let mut elsewhere = observe.start()?;
    let (topology, unseen) = find(server);
    let is_seen_elsewhere = !server.is_empty() && elsewhere.watch(server, &[]);
    let (first, told_first) = elsewhere.facts(|| look(topology.as_ref()));
    thread::sleep(WATCHED);
    if !server.is_empty() {
        // By now it may be known what the server calls.
        elsewhere.follow(&[]);
    }
    let (second, told_second) = elsewhere.facts(|| look(topology.as_ref()));
    let ours = elsewhere.pids_beside(&agent::serve::about());
    let here = [first, second].map(|look| look.with_ours(&ours));
    let told = elsewhere.examined((&here, topology.is_some()), [told_first, told_second]);
    let FoundElsewhere { hosts, lost } = told;
    let [first, second] = here;
    Ok(Diagnosis {
        here: Examined::by(None, &first, second),
        elsewhere: hosts,
        unseen: unseen.filter(|_| !is_seen_elsewhere),
        not_found: elsewhere.not_found(),
        lost,
    })
}

/// What serves the first address that is served here; or why none is, if there are any addresses.
fn find(server: &[SocketAddr]) -> (Option<Topology>, Option<ObserveError>) {
    let mut unseen = None;
    for address in server {
        match observe::find(*address) {
            Ok(found) => return (Some(found), None),
            Err(error) => unseen = unseen.or(Some(error)),
        }
    }
    (None, unseen)
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
