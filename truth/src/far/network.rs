//! A network namespace at the end of a link, with a network of its own.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    os::fd::AsFd,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    Trouble,
    process::{output, run},
};

/// Numbers of the networks that this process has made.
static NETWORKS: AtomicU32 = AtomicU32::new(0);

/// Networks that one process makes before they can meet those of the next one.
const APART: u32 = 64;
/// Networks of four addresses each in 198.19.0.0/16.
const COUNT: u32 = 1 << 14;

/// The namespace of the thread that opens it.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
/// Where iproute2 keeps namespaces by name (ip-netns(8)).
const NAMESPACES: &str = "/run/netns";
/// Whether packets pass through, of the namespace of the thread that writes it.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// How long what runs in a namespace may take to end once it is killed.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// A network namespace. Dropping it kills what still runs in it, and removes it.
#[derive(Debug)]
pub(super) struct Network {
    name: String,
    address: Ipv4Addr,
}

impl Network {
    pub(super) fn make() -> Result<Self, Trouble> {
        let (process, number) = (process::id(), NETWORKS.fetch_add(1, Relaxed));
        let ends = ends(process, number);
        // Dropped where a step fails, it takes back those before.
        let network = Self { name: name(process, number), address: ends[1] };
        let take = |step: &String| run(&step.split(' ').collect::<Vec<_>>());
        steps(&network.name, ends).iter().try_for_each(take)?;
        Ok(network)
    }

    /// The address of its end of the link.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Does something in it. Programs that are started in it stay in it. They end with the thread that started them, so
    /// that it is this thread which enters, and comes back.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let open = |path: &str| File::open(path).map_err(Trouble::io(format!("open {path}")));
        let (own, other) = (open(OWN_NAMESPACE)?, open(&format!("{NAMESPACES}/{}", self.name))?);
        enter(&other)?;
        let outcome = work();
        enter(&own)?;
        outcome
    }

    /// Makes a way from outside to an address with a port, where that is in a namespace behind this one.
    pub(super) fn lead_to(&self, address: &str) -> Result<(), Trouble> {
        let (behind, own) = (address.split(':').next().unwrap_or(address), self.address.to_string());
        if behind == own {
            return Ok(());
        }
        self.within(|| fs::write(FORWARDING, "1").map_err(Trouble::io("have a host pass packets on")))?;
        run(&["ip", "route", "add", behind, "via", &own])
    }

    /// Kills what runs in it: a session of ssh whose other end was killed may hear of that late.
    fn clear(&self) {
        let deadline = Instant::now() + END_LIMIT;
        loop {
            let listed = output(&["ip", "netns", "pids", &self.name]).unwrap_or_default();
            let pids: Vec<_> = listed.split_whitespace().filter_map(pid).collect();
            if pids.is_empty() || Instant::now() > deadline {
                return;
            }
            for pid in pids {
                // Fails only where it has just ended.
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.clear();
        // What cannot be removed is left, and says so by its name.
        drop(run(&["ip", "link", "del", &near_end(&self.name)]));
        drop(run(&["ip", "netns", "del", &self.name]));
    }
}

fn enter(namespace: &File) -> Result<(), Trouble> {
    let entered = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
    entered.map_err(|errno| Trouble::io("enter a network namespace")(errno.into()))
}

fn pid(word: &str) -> Option<Pid> {
    word.parse::<u32>().ok().and_then(|number| i32::try_from(number).ok()).and_then(Pid::from_raw)
}

/// The name of a namespace, which is also the beginning of its interfaces' names: they have 15 bytes at most.
fn name(process: u32, number: u32) -> String {
    format!("tf{process}x{number}")
}

/// The interface outside.
fn near_end(name: &str) -> String {
    format!("{name}a")
}

/// The addresses of both ends of a link, the one outside first. They are of the range for tests between networks
/// (RFC 2544), of whose other half the places of tiers take theirs.
fn ends(process: u32, number: u32) -> [Ipv4Addr; 2] {
    let network = process.wrapping_mul(APART).wrapping_add(number) % COUNT;
    let first = u32::from(Ipv4Addr::new(198, 19, 0, 0)) + 4 * network;
    [Ipv4Addr::from(first + 1), Ipv4Addr::from(first + 2)]
}

/// The commands that make a namespace and its link.
fn steps(name: &str, [near, far]: [Ipv4Addr; 2]) -> [String; 7] {
    let (outside, inside) = (near_end(name), format!("{name}b"));
    [
        format!("ip netns add {name}"),
        format!("ip link add {outside} type veth peer name {inside} netns {name}"),
        format!("ip addr add {near}/30 dev {outside}"),
        format!("ip link set {outside} up"),
        format!("ip -n {name} addr add {far}/30 dev {inside}"),
        format!("ip -n {name} link set lo up"),
        format!("ip -n {name} link set {inside} up"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The network of four addresses that an address belongs to.
    fn network(address: Ipv4Addr) -> u32 {
        u32::from(address) / 4
    }

    #[test]
    fn networks_side_by_side_share_no_address() {
        let of = |process| (0..APART).map(move |number| ends(process, number));
        // Networks of the second process begin again at the first addresses.
        let all: Vec<_> = [255, 256].into_iter().flat_map(of).collect();
        for [near, far] in &all {
            assert_eq!(network(*near), network(*far));
            assert_eq!(near.octets()[..2], [198, 19]);
            assert_eq!([near, far].map(|address| u32::from(*address) % 4), [1, 2], "{near} {far}");
        }
        let networks: BTreeSet<_> = all.iter().map(|[near, _]| network(*near)).collect();
        assert_eq!(networks.len(), all.len());
    }

    #[test]
    fn interfaces_have_names_that_the_kernel_takes() {
        // The highest number of a process, and of more networks than a run makes.
        let name = name(4_194_304, 9_999);
        assert!(near_end(&name).len() <= 15, "{name}");
        let steps = steps(&name, ends(1, 0));
        assert_eq!(steps[1], format!("ip link add {name}a type veth peer name {name}b netns {name}"));
        assert_eq!(steps[2], format!("ip addr add 198.19.1.1/30 dev {name}a"));
        assert_eq!(steps[4], format!("ip -n {name} addr add 198.19.1.2/30 dev {name}b"));
    }

    #[test]
    fn only_numbers_of_processes_are_killed() {
        let is_one = ["12", "0", "-1", "x", "4294967295"].map(|word| pid(word).is_some());
        assert_eq!(is_one, [true, false, false, false, false]);
    }
}
