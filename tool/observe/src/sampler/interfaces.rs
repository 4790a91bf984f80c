//! Samples of the interfaces of a network namespace.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use analysis::counters::Interface;

use crate::interface::IN_SERVERS_NAMESPACE;
use crate::kernel_files::{KernelPaths, SampledFile, read_or_empty};
use crate::netlink::qdisc::{self, Shaping};
use crate::netlink::{NetlinkSockets, route};
use crate::proc::network;
use crate::topology::namespaces::Namespace;

/// Link speed, route and names change rarely, so they are read once in this many samples.
const SAMPLES_PER_SLOW_READ: u32 = 8;

/// Samples the interfaces of one namespace.
#[derive(Debug)]
pub(super) struct InterfaceSampler {
    dev: SampledFile,
    netlink: Option<NetlinkSockets>,
    /// Whether the namespace is another than our own.
    is_other: bool,
    /// Where link speeds are found; only for our own namespace.
    class: Option<PathBuf>,
    slow: SlowlyChanging,
    samples: u32,
}

#[derive(Debug, Default)]
struct SlowlyChanging {
    speeds: BTreeMap<String, u64>,
    names: BTreeMap<u32, String>,
    carrier: Option<u32>,
}

impl InterfaceSampler {
    pub(super) fn of_own_namespace(paths: &KernelPaths) -> Self {
        Self::new(&Namespace::own(paths), false, Some(paths.sys.join("class/net")))
    }

    pub(super) fn of_server_namespace(namespace: &Namespace) -> Self {
        Self::new(namespace, true, None)
    }

    fn new(namespace: &Namespace, is_other: bool, class: Option<PathBuf>) -> Self {
        let dev = SampledFile::new(namespace.net.join("dev"));
        Self {
            dev,
            netlink: namespace.netlink(),
            is_other,
            class,
            slow: SlowlyChanging::default(),
            samples: 0,
        }
    }

    /// Takes a sample of all interfaces, and marks the one that carries the load: where packets leave for `target`, or,
    /// at the server's end, the one that has its address.
    pub(super) fn sample(&mut self, target: IpAddr, is_servers_end: bool) -> Vec<Interface> {
        let mut interfaces = network::interfaces(&self.dev.text());
        if self.samples.is_multiple_of(SAMPLES_PER_SLOW_READ) {
            self.read_slowly_changing(&interfaces, target, is_servers_end);
        }
        self.samples = self.samples.wrapping_add(1);
        let mut shaping = self.shaping();
        for interface in &mut interfaces {
            interface.link_bits_per_s = self.slow.speeds.get(&interface.name).copied();
            interface.carries_load = self.carries_load(&interface.name);
            fill(interface, shaping.remove(&interface.name).unwrap_or_default());
            if self.is_other {
                interface.name.push_str(IN_SERVERS_NAMESPACE);
            }
        }
        interfaces
    }

    fn read_slowly_changing(&mut self, interfaces: &[Interface], target: IpAddr, is_servers_end: bool) {
        let speed = |interface: &Interface| Some((interface.name.clone(), self.link_speed(&interface.name)?));
        self.slow.speeds = interfaces.iter().filter_map(speed).collect();
        let Some(netlink) = &mut self.netlink else { return };
        self.slow.names = route::names(&mut netlink.route).unwrap_or_default();
        let carrier = match is_servers_end {
            false => route::interface_towards(&mut netlink.route, target),
            true => route::interface_with(&mut netlink.route, target),
        };
        self.slow.carrier = carrier.unwrap_or_default();
    }

    /// The speed in /sys, which is in megabits. A value of -1 tells nothing, nor does what a virtual device makes up.
    fn link_speed(&self, name: &str) -> Option<u64> {
        let directory = self.class.as_ref()?.join(name);
        if !directory.join("device").exists() {
            return None;
        }
        let megabits: u64 = read_or_empty(&directory.join("speed")).trim().parse().ok()?;
        (megabits > 0).then(|| megabits.saturating_mul(1_000_000))
    }

    fn carries_load(&self, name: &str) -> bool {
        self.slow.carrier.and_then(|index| self.slow.names.get(&index)).is_some_and(|carrier| carrier == name)
    }

    fn shaping(&mut self) -> BTreeMap<String, Shaping> {
        let netlink = self.netlink.as_mut();
        let by_index =
            netlink.and_then(|netlink| qdisc::shaping(&mut netlink.route).ok()).unwrap_or_default();
        let named = |(index, shaping)| Some((self.slow.names.get(&index)?.clone(), shaping));
        by_index.into_iter().filter_map(named).collect()
    }
}

fn fill(interface: &mut Interface, shaping: Shaping) {
    interface.shaped_bits_per_s = shaping.bits_per_s;
    interface.shaper_overlimits = shaping.overlimits;
    interface.qdisc_dropped = shaping.dropped;
    interface.qdisc_backlog_bytes = shaping.backlog_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_a_local_target_goes_through_loopback() {
        let found = InterfaceSampler::of_own_namespace(&KernelPaths::default())
            .sample("127.0.0.1".parse().unwrap(), false);
        let carriers: Vec<_> = found.iter().filter(|interface| interface.carries_load).collect();
        assert_eq!(carriers.len(), 1);
        assert_eq!((carriers[0].name.as_str(), carriers[0].link_bits_per_s), ("lo", None));
    }

    #[test]
    fn only_a_real_devices_speed_counts() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        let lay_out = |name: &str, file: &str, text: &str| {
            std::fs::create_dir_all(at("sys/class/net").join(name)).unwrap();
            std::fs::write(at("sys/class/net").join(name).join(file), text).unwrap();
        };
        for (name, speed) in [("eth0", "1000\n"), ("eth1", "-1\n"), ("veth0", "10000\n")] {
            lay_out(name, "speed", speed);
        }
        lay_out("eth0", "device", "");
        lay_out("eth1", "device", "");
        let counts = "1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0";
        std::fs::create_dir_all(at("proc/net")).unwrap();
        std::fs::write(
            at("proc/net/dev"),
            format!("-\n-\neth0: {counts}\neth1: {counts}\nveth0: {counts}\n"),
        )
        .unwrap();
        let paths = KernelPaths { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
        let found = InterfaceSampler::of_own_namespace(&paths).sample("127.0.0.1".parse().unwrap(), false);
        let speeds: Vec<_> = found.iter().map(|interface| interface.link_bits_per_s).collect();
        assert_eq!(speeds, [Some(1_000_000_000), None, None]);
    }
}
