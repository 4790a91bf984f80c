//! Reads what on this host may spoil a measurement.

use std::path::Path;

use analysis::doctor::{Facts, HostProcess, Processor, Sockets, Subject, SubjectFacts};

use crate::clock::{monotonic_us, ticks_per_second};
use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::proc::network;
use crate::proc::{host, named, process, softnet};
use crate::sampler::quota_cores;
use crate::topology::Topology;

/// The facts of this host now. `own` is the process that asks; with a topology, the processes of the server count as well.
#[must_use]
pub fn facts(own: Pid, topology: Option<&Topology>) -> Facts {
    facts_in(&KernelPaths::default(), own, topology)
}

/// The same with files from `paths`.
#[must_use]
pub fn facts_in(paths: &KernelPaths, own: Pid, topology: Option<&Topology>) -> Facts {
    let text = |name: &str| read_or_empty(&paths.proc.join(name));
    let clock = paths.sys.join("devices/system/clocksource/clocksource0");
    let servers = servers(topology);
    Facts {
        at_us: monotonic_us(),
        debug_build: false,
        cpus: host::cpus(&text("stat"), ticks_per_second()),
        processors: processors(paths),
        clock: word(&clock.join("current_clocksource")),
        clocks: words(&read_or_empty(&clock.join("available_clocksource"))),
        huge_pages: chosen(&read_or_empty(&paths.sys.join("kernel/mm/transparent_hugepage/enabled"))),
        swapped_in_pages: named(&text("vmstat"), "pswpin "),
        processes: processes(paths, own, &servers),
        subjects: subjects(paths, own, &servers),
        sockets: sockets(paths),
        links: links(paths),
    }
}

fn servers(topology: Option<&Topology>) -> Vec<Pid> {
    topology.map(|of| of.servers.iter().chain(&of.downstream).copied().collect()).unwrap_or_default()
}

/// The text of a file that holds a word; `None` where it is missing or empty.
fn word(path: &Path) -> Option<String> {
    read(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &Path) -> Option<u64> {
    word(path)?.parse().ok()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
}

fn processors(paths: &KernelPaths) -> Vec<Processor> {
    let root = paths.sys.join("devices/system/cpu");
    let entries = std::fs::read_dir(&root).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok().filter(|number| *number < 1 << 16)
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| processor(&root.join(format!("cpu{number}")), number)).collect()
}

fn processor(directory: &Path, number: u32) -> Processor {
    let siblings = read_or_empty(&directory.join("topology/thread_siblings_list"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let node =
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).next();
    Processor {
        number,
        governor: word(&directory.join("cpufreq/scaling_governor")),
        wake_us: wake_us(&directory.join("cpuidle")),
        siblings: process::numbers(&siblings),
        node,
    }
}

/// The longest time to wake from an idle state that is not disabled.
fn wake_us(directory: &Path) -> Option<u64> {
    let states = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let enabled = states.filter(|state| number(&state.join("disable")) != Some(1));
    enabled.filter_map(|state| number(&state.join("latency"))).max()
}

/// Every process but the kernel's own.
fn processes(paths: &KernelPaths, own: Pid, servers: &[Pid]) -> Vec<HostProcess> {
    /// The parent of the kernel's threads.
    const KERNEL: u32 = 2;
    let of = |pid: Pid| {
        let stat = process::stat(&read(&paths.process(pid).join("stat")).ok()?)?;
        let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
        let is_kernel = pid == KERNEL || stat.parent == KERNEL;
        (!is_kernel).then(|| HostProcess {
            pid,
            name: stat.name,
            cpu_us: ticks.saturating_mul(1_000_000) / ticks_per_second(),
            is_ours: pid == own || servers.contains(&pid),
        })
    };
    paths.processes().unwrap_or_default().into_iter().filter_map(of).collect()
}

fn subjects(paths: &KernelPaths, own: Pid, servers: &[Pid]) -> Vec<(Subject, SubjectFacts)> {
    let limits = |pid: Pid| read_or_empty(&paths.process(pid).join("limits"));
    let facts = |pid: Pid, open_files| SubjectFacts {
        open_files,
        allowed: process::allowed_cpus(&read_or_empty(&paths.process(pid).join("status"))),
        quota_cores: quota_cores(paths, pid),
    };
    let generator = (Subject::Generator, facts(own, process::most_open_files(&limits(own))));
    let server = |pid: &Pid| {
        let name = read_or_empty(&paths.process(*pid).join("comm")).trim().to_owned();
        let subject = Subject::Server { name, pid: *pid };
        (subject, facts(*pid, process::open_files_limit(&limits(*pid))))
    };
    std::iter::once(generator).chain(servers.iter().map(server)).collect()
}

fn sockets(paths: &KernelPaths) -> Sockets {
    let setting = |name: &str| number(&paths.proc.join("sys/net").join(name));
    let text = |name: &str| read_or_empty(&paths.proc.join(name));
    let ports = network::local_ports(&text("sys/net/ipv4/ip_local_port_range"));
    let most = setting("netfilter/nf_conntrack_max").unwrap_or(0);
    let tracked = network::tracked(&text("net/stat/nf_conntrack"));
    let mut cpus = host::cpus(&text("stat"), ticks_per_second());
    softnet::add_to(&mut cpus, &softnet::softnet(&text("net/softnet_stat")));
    Sockets {
        listen_queue: setting("core/somaxconn"),
        syn_queue: setting("ipv4/tcp_max_syn_backlog"),
        packet_queue: setting("core/netdev_max_backlog"),
        packets_dropped: cpus.iter().map(|cpu| cpu.packets_dropped).fold(0, u64::saturating_add),
        ports: ports.map(|(first, last)| u64::from(last - first) + 1),
        time_wait: network::time_wait(&text("net/sockstat")),
        reuse: setting("ipv4/tcp_tw_reuse"),
        tracked: tracked.map(|tracked| analysis::counters::Tracked { most, ..tracked }),
    }
}

/// Links that are up and say how fast they are: virtual ones do not.
fn links(paths: &KernelPaths) -> Vec<(String, f64, bool)> {
    let entries = std::fs::read_dir(paths.sys.join("class/net")).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| {
        let (directory, name) = (entry.path(), entry.file_name().to_str()?.to_owned());
        let is_up = word(&directory.join("operstate")).is_some_and(|state| state == "up");
        // A device behind it tells a link from a bridge, a tunnel or one end of a pair.
        let is_real = directory.join("device").exists();
        let speed = number(&directory.join("speed")).filter(|speed| *speed > 0 && is_up && is_real)?;
        let full_duplex = word(&directory.join("duplex")).is_none_or(|duplex| duplex != "half");
        Some((name, speed as f64 * 1e6, full_duplex))
    };
    let mut links: Vec<(String, f64, bool)> = entries.filter_map(of).collect();
    links.sort_by(|a, b| a.0.cmp(&b.0));
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_files_are_read() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise".to_owned()));
        assert_eq!(chosen("never"), None);
    }

    #[test]
    fn this_host_has_facts() {
        let facts = facts(std::process::id(), None);
        assert!(!facts.cpus.is_empty() && facts.at_us > 0);
        assert!(facts.processes.iter().any(|process| process.is_ours));
    }
}
