//! Where a tier runs: its address, its processors, its cgroup, its network namespace.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{Trouble, process::run, tier::Surroundings};

/// Numbers of the places that this process has made.
static PLACES: AtomicU32 = AtomicU32::new(0);

/// Bytes that a shaper lets through at once, and the longest time that a packet waits in it.
const BURST: &str = "16kb";
const PATIENCE: &str = "2s";

/// A place for one tier. Dropping it removes what was made for it.
#[derive(Debug)]
pub(crate) struct Place {
    /// The address on which the tier listens.
    pub(crate) address: String,
    /// What the tier's command begins with.
    pub(crate) wrapper: Vec<String>,
    namespace: Option<String>,
    cgroup: Option<PathBuf>,
}

impl Place {
    /// Makes a place at an address of the host that this thread is on. A tier in a namespace of its own has another one.
    pub(crate) fn make(around: &Surroundings, ip: Ipv4Addr) -> Result<Self, Trouble> {
        let port = database_server::free_port().map_err(Trouble::io("find a free port"))?;
        let number = PLACES.fetch_add(1, Relaxed);
        let name = format!("truth{}-{number}", process::id());
        let mut place =
            Self { address: format!("{ip}:{port}"), wrapper: Vec::new(), namespace: None, cgroup: None };
        if around.quota.is_some() || around.namespace {
            is_root("a cgroup or a network namespace")?;
        }
        if let Some(quota) = around.quota {
            place.limit(&name, quota)?;
        }
        if let Some(cpu) = around.cpu {
            place.wrap(&["taskset", "-c", &cpu.to_string()]);
        }
        if around.namespace {
            place.separate(&name, number, port, around.link)?;
        }
        Ok(place)
    }

    fn wrap(&mut self, words: &[&str]) {
        self.wrapper.extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// A network namespace at the end of a link of its own.
    fn separate(&mut self, name: &str, number: u32, port: u16, link: Option<f64>) -> Result<(), Trouble> {
        // Of the range for tests between networks (RFC 2544). Interface names have 15 bytes at most.
        let net = (process::id() + number) % 250;
        let (near, far) = (format!("198.18.{net}.1"), format!("198.18.{net}.2"));
        let (outside, inside) = (format!("tr{net}a"), format!("tr{net}b"));
        run(&["ip", "netns", "add", name])?;
        self.namespace = Some(name.to_owned());
        run(&["ip", "link", "add", &outside, "type", "veth", "peer", "name", &inside, "netns", name])?;
        run(&["ip", "addr", "add", &format!("{near}/30"), "dev", &outside])?;
        run(&["ip", "link", "set", &outside, "up"])?;
        run(&["ip", "-n", name, "addr", "add", &format!("{far}/30"), "dev", &inside])?;
        run(&["ip", "-n", name, "link", "set", "lo", "up"])?;
        run(&["ip", "-n", name, "link", "set", &inside, "up"])?;
        // Who calls it may be on another host.
        run(&["ip", "-n", name, "route", "add", "default", "via", &near])?;
        if let Some(rate) = link {
            shape(name, &inside, rate)?;
        }
        self.wrap(&["ip", "netns", "exec", name]);
        self.address = format!("{far}:{port}");
        Ok(())
    }

    /// A cgroup that may use this share of a processor.
    fn limit(&mut self, name: &str, quota: f64) -> Result<(), Trouble> {
        let period_us = 100_000.0;
        let quota_us = (quota * period_us) as u64;
        let failed = || Trouble::io("limit the processor time of a cgroup");
        let old = Path::new("/sys/fs/cgroup/cpu");
        let folder = if old.is_dir() { old.join(name) } else { Path::new("/sys/fs/cgroup").join(name) };
        if !old.is_dir() {
            // The processor controller may be enabled already.
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
        }
        fs::create_dir(&folder).map_err(failed())?;
        self.cgroup = Some(folder.clone());
        let (file, text) = match old.is_dir() {
            true => ("cpu.cfs_quota_us", quota_us.to_string()),
            false => ("cpu.max", format!("{quota_us} 100000")),
        };
        fs::write(folder.join(file), text).map_err(failed())?;
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", folder.display());
        self.wrap(&["sh", "-c", &enter, "sh"]);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The interfaces go with the namespace. What cannot be removed is left, and says so by its name.
        self.namespace.iter().for_each(|name| drop(run(&["ip", "netns", "del", name])));
        self.cgroup.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

/// Lets an interface of a network namespace send so many bits a second.
pub(crate) fn shape(namespace: &str, interface: &str, bits_per_s: f64) -> Result<(), Trouble> {
    let rate = format!("{bits_per_s}bit");
    let shaper = ["root", "tbf", "rate", &rate, "burst", BURST, "latency", PATIENCE];
    run(&[&["tc", "-n", namespace, "qdisc", "add", "dev", interface], &shaper[..]].concat())
}

/// Refuses what needs root to anybody else.
pub(crate) fn is_root(what: &'static str) -> Result<(), Trouble> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Trouble::NeedsRoot(what)) }
}
