//! A network namespace at the end of a link, with a network of its own, and links between several.

use std::{
    fs,
    net::Ipv4Addr,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    thread::LinkNameSpaceType,
};

use super::namespace;
use crate::{
    Trouble, place,
    process::{output, run},
};

/// Numbers of the networks that this process has made.
static NETWORKS: AtomicU32 = AtomicU32::new(0);

/// Networks that one process makes before they can meet those of the next one.
const NETWORKS_PER_PROCESS: u32 = 64;
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
    outside: Ipv4Addr,
    address: Ipv4Addr,
}

impl Network {
    pub(super) fn make() -> Result<Self, Trouble> {
        let (process, number) = (process::id(), NETWORKS.fetch_add(1, Relaxed));
        let [outside, address] = ends(process, number);
        // Dropped where a step fails, it takes back those before.
        let network = Self { name: name(process, number), outside, address };
        run_all(&steps(&network.name, [outside, address]))?;
        Ok(network)
    }

    /// The address of its end of the link.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The address of the other end, outside.
    pub(super) fn outside(&self) -> Ipv4Addr {
        self.outside
    }

    /// Does something in it. Programs that are started in it stay in it.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let other = format!("{NAMESPACES}/{}", self.name);
        namespace::within(LinkNameSpaceType::Network, [OWN_NAMESPACE, &other], work)
    }

    /// Adds a route from it to an address, through one that it has a link to.
    pub(super) fn add_route(&self, to: Ipv4Addr, via: Ipv4Addr) -> Result<(), Trouble> {
        run_all(&[format!("ip -n {} route add {to}/32 via {via}", self.name)])
    }

    /// Adds a route from outside to an address with a port, where that is in a namespace behind this one.
    pub(super) fn lead_to(&self, address: &str) -> Result<(), Trouble> {
        let (behind, own) = (address.split(':').next().unwrap_or(address), self.address.to_string());
        if behind == own {
            return Ok(());
        }
        self.within(|| fs::write(FORWARDING, "1").map_err(Trouble::io("have a host pass packets on")))?;
        run(&["ip", "route", "add", behind, "via", &own])
    }

    /// Kills what runs in it: a session of ssh whose other end was killed may hear of that late.
    pub(super) fn clear(&self) {
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

/// A link over which a network is called. Dropping it removes both ends.
#[derive(Debug)]
pub(super) struct Link {
    /// The network that is called.
    called: String,
    /// Its interface.
    interface: String,
    address: Ipv4Addr,
}

impl Link {
    /// Links a network to who calls it: another one, or what is outside of all. The interface of the called one has this name.
    pub(super) fn make(caller: Option<&Network>, called: &Network, interface: &str) -> Result<Self, Trouble> {
        let (process, number) = (process::id(), NETWORKS.fetch_add(1, Relaxed));
        let (outside, ends) = (near_end(&name(process, number)), ends(process, number));
        let caller = caller.map(|caller| caller.name.as_str());
        // Dropped where a step fails, it takes back those before.
        let link = Self { called: called.name.clone(), interface: interface.to_owned(), address: ends[1] };
        run_all(&Joined { outside: &outside, within: &called.name, interface }.steps(caller, ends))?;
        Ok(link)
    }

    /// The address of the network that is called.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Lets through so many bits a second of what the called one answers.
    pub(super) fn shape(&self, bits_per_s: f64) -> Result<(), Trouble> {
        place::shape(&self.called, &self.interface, bits_per_s)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Fails only where it has gone with its namespace.
        drop(run(&["ip", "-n", &self.called, "link", "del", "dev", &self.interface]));
    }
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
    let network = process.wrapping_mul(NETWORKS_PER_PROCESS).wrapping_add(number) % COUNT;
    let first = u32::from(Ipv4Addr::new(198, 19, 0, 0)) + 4 * network;
    [Ipv4Addr::from(first + 1), Ipv4Addr::from(first + 2)]
}

/// Carries out commands whose words hold no blanks.
fn run_all(steps: &[String]) -> Result<(), Trouble> {
    steps.iter().try_for_each(|step| run(&step.split(' ').collect::<Vec<_>>()))
}

/// The commands that make a namespace and its link.
fn steps(name: &str, ends: [Ipv4Addr; 2]) -> Vec<String> {
    let (outside, inside) = (near_end(name), format!("{name}b"));
    let mut steps = vec![format!("ip netns add {name}")];
    steps.extend(Joined { outside: &outside, within: name, interface: &inside }.steps(None, ends));
    steps.push(format!("ip -n {name} link set lo up"));
    steps
}

/// The interfaces of a link, and the namespace of the second.
struct Joined<'a> {
    outside: &'a str,
    within: &'a str,
    interface: &'a str,
}

impl Joined<'_> {
    /// The commands that make the link. The first interface is in the caller's namespace, or else in that of this process.
    fn steps(&self, caller: Option<&str>, [near, far]: [Ipv4Addr; 2]) -> [String; 5] {
        let Self { outside, within, interface } = self;
        let at = caller.map_or(String::new(), |caller| format!("-n {caller} "));
        let of = caller.map_or(String::new(), |caller| format!("netns {caller} "));
        [
            format!("ip link add {outside} {of}type veth peer name {interface} netns {within}"),
            format!("ip {at}addr add {near}/30 dev {outside}"),
            format!("ip {at}link set {outside} up"),
            format!("ip -n {within} addr add {far}/30 dev {interface}"),
            format!("ip -n {within} link set {interface} up"),
        ]
    }
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
        let of = |process| (0..NETWORKS_PER_PROCESS).map(move |number| ends(process, number));
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
    fn a_link_has_one_end_where_the_caller_is_and_the_other_where_the_called_one_is() {
        let steps = |caller| {
            let joined = Joined { outside: "tf1x2a", within: "tf1x1", interface: "eth0" };
            joined.steps(caller, ends(1, 2))
        };
        let [made, addressed, ..] = steps(Some("tf1x0"));
        assert_eq!(made, "ip link add tf1x2a netns tf1x0 type veth peer name eth0 netns tf1x1");
        assert_eq!(addressed, "ip -n tf1x0 addr add 198.19.1.9/30 dev tf1x2a");
        let [made, addressed, ..] = steps(None);
        assert_eq!(made, "ip link add tf1x2a type veth peer name eth0 netns tf1x1");
        assert_eq!(addressed, "ip addr add 198.19.1.9/30 dev tf1x2a");
    }

    #[test]
    fn only_numbers_of_processes_are_killed() {
        let is_one = ["12", "0", "-1", "x", "4294967295"].map(|word| pid(word).is_some());
        assert_eq!(is_one, [true, false, false, false, false]);
    }
}
