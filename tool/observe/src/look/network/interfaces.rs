//! The interfaces of a network namespace.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use analysis::counters::Interface;

use crate::netlink::qdisc::{self, Shaping};
use crate::netlink::{View, route};
use crate::proc::net_dev;
use crate::reread::Reread;
use crate::roots::{Roots, read_or_empty};
use crate::topology::Namespace;

/// Link speed, route and names change rarely: they are read at every so many looks.
const LOOKS_PER_SLOW_READ: u32 = 8;

/// Which end of the load's path a namespace is.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Packets leave here for the target.
    Generator,
    /// The target's address is one of these interfaces'.
    Server,
}

/// What is kept of a namespace's interfaces between looks.
#[derive(Debug)]
pub(super) struct Interfaces {
    dev: Reread,
    view: Option<View>,
    end: End,
    /// Where link speeds are told; only of our own namespace.
    class: Option<PathBuf>,
    slow: Slow,
    looks: u32,
}

#[derive(Debug, Default)]
struct Slow {
    speeds: BTreeMap<String, u64>,
    names: BTreeMap<u32, String>,
    carrier: Option<u32>,
}

impl Interfaces {
    pub(super) fn of_our_own(roots: &Roots) -> Self {
        Self::new(&Namespace::own(roots), End::Generator, Some(roots.sys.join("class/net")))
    }

    pub(super) fn of_the_server(namespace: &Namespace) -> Self {
        Self::new(namespace, End::Server, None)
    }

    fn new(namespace: &Namespace, end: End, class: Option<PathBuf>) -> Self {
        let dev = Reread::new(namespace.net.join("dev"));
        Self { dev, view: namespace.view(), end, class, slow: Slow::default(), looks: 0 }
    }

    /// All of them, with the one that carries traffic between us and `target` marked.
    pub(super) fn look(&mut self, target: IpAddr) -> Vec<Interface> {
        let mut interfaces = net_dev::parse(&self.dev.text());
        if self.looks.is_multiple_of(LOOKS_PER_SLOW_READ) {
            self.read_slowly(&interfaces, target);
        }
        self.looks = self.looks.wrapping_add(1);
        let mut shaping = self.shaping();
        for interface in &mut interfaces {
            interface.link_bits_per_s = self.slow.speeds.get(&interface.name).copied();
            interface.carries_load = self.carries_load(&interface.name);
            fill(interface, shaping.remove(&interface.name).unwrap_or_default());
            if let End::Server = self.end {
                interface.name.push_str(" (server's namespace)");
            }
        }
        interfaces
    }

    fn read_slowly(&mut self, interfaces: &[Interface], target: IpAddr) {
        let speed = |interface: &Interface| Some((interface.name.clone(), self.link_speed(&interface.name)?));
        self.slow.speeds = interfaces.iter().filter_map(speed).collect();
        let Some(view) = &mut self.view else { return };
        self.slow.names = route::names(&mut view.route).unwrap_or_default();
        let carrier = match self.end {
            End::Generator => route::interface_towards(&mut view.route, target),
            End::Server => route::interface_with(&mut view.route, target),
        };
        self.slow.carrier = carrier.unwrap_or_default();
    }

    /// Megabits in /sys; -1, or what a virtual device makes up, tells nothing.
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
        let view = self.view.as_mut();
        let by_index = view.and_then(|view| qdisc::shaping(&mut view.route).ok()).unwrap_or_default();
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
        let found = Interfaces::of_our_own(&Roots::default()).look("127.0.0.1".parse().unwrap());
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
        let roots = Roots { proc: at("proc"), sys: at("sys"), cgroup: at("cg") };
        let found = Interfaces::of_our_own(&roots).look("127.0.0.1".parse().unwrap());
        let speeds: Vec<_> = found.iter().map(|interface| interface.link_bits_per_s).collect();
        assert_eq!(speeds, [Some(1_000_000_000), None, None]);
    }
}
