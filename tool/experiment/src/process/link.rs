//! A slow link to a server: its network namespace, joined to ours by a pair of virtual interfaces, shaped by a token
//! bucket (tc-tbf(8)) at both ends.
//!
//! The namespace has no name: it belongs to the server's process and disappears when that ends, and the interfaces with
//! it. So nothing is left behind, even if this process is killed.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr},
    process::{Command, Stdio},
};

use analysis::comparison::LeftOutCause;

/// A token bucket this deep holds two of the largest segments that the kernel hands down in one piece: at 100 Mb/s,
/// about 10 ms.
const BURST_BYTES: u32 = 128 << 10;
/// How long a packet may wait in the bucket's queue before it is dropped.
const LATENCY: &str = "200ms";

/// A link to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkPlan {
    /// Its rate, Mb/s.
    pub mbit: u32,
    /// Number of its network, different for each link at a time.
    pub network: u32,
}

/// How many networks there are for links.
const NETWORKS: u32 = 2 * NETWORKS_OF_HALF;
/// How many there are in one half of 198.18.0.0/15.
const NETWORKS_OF_HALF: u32 = 251;

/// Numbers of networks for links, each once, from this one on, without those that are in use here, as by another experiment: two
/// links with one network would send each other's load.
pub(crate) fn free_networks(from: u32) -> impl Iterator<Item = u32> {
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let taken: Vec<u32> = in_use(&routes).collect();
    let all = (0..NETWORKS).map(move |more| (from % NETWORKS + more) % NETWORKS);
    all.filter(move |network| !taken.contains(network))
}

/// The networks for links that these routes (/proc/net/route) lead to.
fn in_use(routes: &str) -> impl Iterator<Item = u32> {
    let destinations = routes.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    destinations.filter_map(|hex| {
        // The kernel prints the four bytes, which stand in the order of the network, as one number of this machine.
        match u32::from_str_radix(hex, 16).ok()?.to_ne_bytes() {
            [198, half @ (18 | 19), third, _] if u32::from(third) < NETWORKS_OF_HALF => {
                Some(u32::from(half - 18) * NETWORKS_OF_HALF + u32::from(third))
            }
            _ => None,
        }
    })
}

impl LinkPlan {
    /// 198.18.0.0/15 is for benchmarks (RFC 2544).
    fn address(self, host: u8) -> Ipv4Addr {
        let half = self.network / NETWORKS_OF_HALF % 2;
        Ipv4Addr::new(198, 18 + half as u8, (self.network % NETWORKS_OF_HALF) as u8, host)
    }

    /// Where the server is reached over the link.
    pub fn server_address(self) -> IpAddr {
        self.address(2).into()
    }
}

/// The interface at our end. Removed, and its peer with it, when dropped.
#[derive(Debug)]
pub struct Link {
    ours: String,
    server: Ipv4Addr,
}

/// A link that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Only root may make network namespaces and interfaces.
    #[error("a link needs root")]
    NotRoot,
    /// A tool is missing.
    #[error("{tool}: {source}")]
    Tool {
        /// Which.
        tool: String,
        /// Why.
        source: io::Error,
    },
    /// A tool failed.
    #[error("{command}: {said}")]
    Refused {
        /// What was run.
        command: String,
        /// The last line it printed; empty where it printed nothing.
        said: String,
    },
}

impl From<LinkError> for LeftOutCause {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::NotRoot => Self::LinkNeedsRoot,
            LinkError::Tool { tool, source } => {
                Self::LinkToolFailed { tool, os_error: source.raw_os_error() }
            }
            LinkError::Refused { command, said } => Self::LinkRefused { command, said },
        }
    }
}

/// Whether this process may make a link.
pub fn check() -> Result<(), LinkError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LinkError::NotRoot) }
}

impl Link {
    /// Joins the network namespace of a process, which must be its own, to ours.
    ///
    /// # Errors
    /// Without root, and if a tool fails.
    pub fn to_process(pid: u32, plan: LinkPlan) -> Result<Self, LinkError> {
        check()?;
        let LinkPlan { mbit, .. } = plan;
        let address = |host: u8| plan.address(host);
        // Alone in its namespace, it can have the same name in every trial, so that all of them name the same bottleneck.
        let (ours, theirs) = (format!("nst{pid}a"), "eth0");
        let link = Link { ours: ours.clone(), server: address(2) };
        let shape = format!("root tbf rate {mbit}mbit burst {BURST_BYTES} latency {LATENCY}");
        let inside = format!("nsenter --net --target {pid}");
        for command in [
            format!("ip link add {ours} type veth peer name {theirs} netns {pid}"),
            format!("ip addr add {}/24 dev {ours}", address(1)),
            format!("ip link set {ours} up"),
            format!("tc qdisc add dev {ours} {shape}"),
            format!("{inside} ip addr add {}/24 dev {theirs}", link.server),
            format!("{inside} ip link set {theirs} up"),
            format!("{inside} ip link set lo up"),
            format!("{inside} tc qdisc add dev {theirs} {shape}"),
        ] {
            run(&command)?;
        }
        Ok(link)
    }

    /// Where the server is reached over the link.
    pub fn server_address(&self) -> IpAddr {
        self.server.into()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // If the server ended first, the kernel removes the interface itself, perhaps a moment later.
        let _ = run(&format!("ip link del {}", self.ours));
    }
}

/// Runs a command of plain words.
fn run(command: &str) -> Result<(), LinkError> {
    let mut words = command.split(' ');
    let tool = words.next().unwrap_or_default();
    let output = Command::new(tool)
        .args(words)
        // Administrators' tools may not be on the user's PATH.
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdin(Stdio::null())
        .output()
        .map_err(|source| LinkError::Tool { tool: tool.into(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().last().unwrap_or_default().trim().to_owned();
    Err(LinkError::Refused { command: command.into(), said })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn networks_of_other_links_are_not_taken() {
        let number = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
        let [first, second, other] = [[198, 18, 7, 0], [198, 19, 250, 0], [10, 0, 0, 0]].map(number);
        let routes =
            format!("Iface Destination Gateway\neth0 {other} 0\nnst1a {first} 0\nnst2a {second} 0\n");
        assert_eq!(in_use(&routes).collect::<Vec<_>>(), [7, 501]);
        for network in [7, 501] {
            let plan = LinkPlan { mbit: 1, network };
            let IpAddr::V4(address) = plan.server_address() else { panic!("{plan:?}") };
            let [one, two, three, _] = address.octets();
            assert!(routes.contains(&number([one, two, three, 0])), "{address}");
        }
        let free: BTreeSet<u32> = free_networks(1_000).take(9).collect();
        assert_eq!(free.len(), 9);
    }
}
