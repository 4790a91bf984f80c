//! Looks for what would spoil a measurement: on this host, and on those where somebody observes.

use std::{net::SocketAddr, sync::atomic::AtomicBool, thread, time::Duration};

use agent::Patience;
use analysis::{
    doctor::{Certainty, Examined, Facts, Fault, worth_a_word},
    run::{AgentTrouble, HostName},
};
use observe::{ObserveError, Topology};
pub use observe::{SettingError, Settings};

use crate::{
    elsewhere::{Elsewhere, FoundElsewhere, Observe},
    sweep::SweepError,
};

/// How long strangers, the hypervisor and swap are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// How long a sweep waits for what observers tell of their hosts: most answer within milliseconds, and load is to begin.
const GLANCE: Duration = Duration::from_secs(1);

/// The most faults that a sweep tells of before it begins.
const TOLD_MAX: usize = 2;

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
    // A signal ends the process: nobody listens for it.
    let mut elsewhere = observe.start(&AtomicBool::new(false))?;
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
        here: as_called(Examined::by(None, &first, second), server),
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

/// The faults that matter most before a sweep, of all that settings alone show: on this host, if it serves or makes load, and
/// where somebody observes. What goes on meanwhile is not watched, and whoever does not answer soon tells nothing.
pub(crate) fn glance(
    (topology, makes_load): (Topology, bool),
    elsewhere: &Elsewhere,
    interrupt: &AtomicBool,
) -> Vec<(HostName, Fault)> {
    let topology = if makes_load { topology } else { topology.with_far_load() };
    let serves = !topology.servers.is_empty();
    let patience = Patience::begin(GLANCE, interrupt);
    let (here, told) = elsewhere.facts_within(&patience, || look(Some(&topology)));
    let here = [here.clone(), here];
    let found = elsewhere.examined((&here, serves), [told.clone(), told]);
    let [first, second] = here;
    let target = [topology.target];
    let called: &[SocketAddr] = if makes_load { &target } else { &[] };
    let here = (makes_load || serves).then(|| as_called(Examined::by(None, &first, second), called));
    matter_most(&here.into_iter().chain(found.hosts).collect::<Vec<_>>())
}

/// What was found on this host, if the load calls these addresses from here.
fn as_called(found: Examined, addresses: &[SocketAddr]) -> Examined {
    let is_over_loopback = !addresses.is_empty() && addresses.iter().all(|of| of.ip().is_loopback());
    if is_over_loopback { found.over_loopback() } else { found }
}

/// The faults of hosts that are worth a word before a sweep and matter most: the surest first, and of those that are as sure the
/// first of each host before the second of any.
fn matter_most(hosts: &[Examined]) -> Vec<(HostName, Fault)> {
    let mut all: Vec<((Certainty, usize), &HostName, &Fault)> = Vec::new();
    for host in hosts {
        let ranked = worth_a_word(&host.faults).enumerate();
        all.extend(ranked.map(|(rank, fault)| ((fault.certainty(), rank), &host.on, fault)));
    }
    all.sort_by_key(|(weight, ..)| *weight);
    all.into_iter().take(TOLD_MAX).map(|(_, on, fault)| (on.clone(), fault.clone())).collect()
}

fn look(topology: Option<&Topology>) -> Facts {
    let facts = observe::facts(std::process::id(), topology);
    Facts { debug_build: cfg!(debug_assertions), ..facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(on: Option<&str>, faults: &[Fault]) -> Examined {
        Examined { on: on.map(str::to_owned), faults: faults.to_vec(), ..Examined::default() }
    }

    fn on(host: &str) -> HostName {
        Some(host.to_owned())
    }

    const QUEUE: Fault = Fault::ListenQueue { limit: 64 };
    const HANDSHAKES: Fault = Fault::SynQueue { limit: 64 };
    const PORTS: Fault = Fault::FewPorts { ports: 100 };
    const STOLEN: Fault = Fault::Steal { share: 0.2 };

    #[test]
    fn the_surest_faults_of_all_hosts_matter_most() {
        let hosts = [host(None, &[QUEUE, HANDSHAKES]), host(Some("web"), &[STOLEN, PORTS])];
        assert_eq!(matter_most(&hosts), [(on("web"), STOLEN), (None, QUEUE)]);
    }

    #[test]
    fn ports_that_are_given_again_on_loopback_are_held_for_servers_elsewhere_alone() {
        let found = |addresses: &[&str]| {
            let addresses: Vec<SocketAddr> =
                addresses.iter().map(|address| address.parse().expect("an address")).collect();
            let held = Fault::TimeWait { held: 90, ports: 100, reuse: Some(2) };
            as_called(host(None, &[held, QUEUE]), &addresses).faults.len()
        };
        assert_eq!(found(&["127.0.0.1:80", "[::1]:80"]), 1);
        assert_eq!(found(&["127.0.0.1:80", "10.0.0.7:80"]), 2);
        assert_eq!(found(&[]), 2, "no server is known");
    }

    #[test]
    fn no_host_takes_the_room_of_another() {
        let hosts =
            [host(None, &[QUEUE, HANDSHAKES]), host(Some("web"), &[PORTS]), host(Some("db"), &[PORTS])];
        assert_eq!(matter_most(&hosts), [(None, QUEUE), (on("web"), PORTS)]);
        assert_eq!(matter_most(&hosts[..1]), [(None, QUEUE), (None, HANDSHAKES)], "there is no other");
        assert_eq!(matter_most(&[host(None, &[]), host(Some("web"), &[QUEUE])]), [(on("web"), QUEUE)]);
    }

    #[test]
    fn what_may_matter_and_what_the_run_tells_is_left_out_on_every_host() {
        let told = [Fault::SharedProcessors { shared: 1, servers: 2 }, Fault::HugePages];
        assert!(matter_most(&[host(None, &told), host(Some("web"), &told)]).is_empty());
    }
}
