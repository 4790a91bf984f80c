//! Reads what on this host may spoil a measurement.

mod ethtool;
mod links;
mod reader;
mod sockets;

use std::path::Path;

use analysis::counters::Role;
use analysis::doctor::{Check, Facts, HostProcess, Processor, Subject, SubjectFacts};

use self::reader::Reader;
use self::sockets::{Limits, limits};
use crate::clock::{monotonic_us, ticks_per_second};
use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::proc::{host, named, process};
use crate::sampler::{memory_in_use, quota_cores};
use crate::topology::Topology;

/// The facts of this host now. `own` is the process that asks. With a topology, the processes of the server count as well; where
/// its load comes from another host, this process is no generator, and none of its own limits count.
#[must_use]
pub fn facts(own: Pid, topology: Option<&Topology>) -> Facts {
    facts_in(&KernelPaths::default(), own, topology)
}

/// The same with files from `paths`.
#[must_use]
pub fn facts_in(paths: &KernelPaths, own: Pid, topology: Option<&Topology>) -> Facts {
    let reader = Reader::new(paths);
    let text = |check, name: &str| reader.text(check, &paths.proc.join(name));
    let clock = paths.sys.join("devices/system/clocksource/clocksource0");
    let pages = paths.sys.join("kernel/mm/transparent_hugepage/enabled");
    let servers = servers(topology);
    let generator = Some(own).filter(|_| topology.is_none_or(|topology| !topology.load_is_far));
    let Limits { sockets, server_network, listeners } = limits(&reader, topology);
    let real_links = links::real(&reader);
    let facts = Facts {
        at_us: monotonic_us(),
        debug_build: false,
        cpus: host::cpus(&text(Check::Steal, "stat"), ticks_per_second()),
        processors: processors(&reader),
        clock: reader.word(Check::Clock, &clock.join("current_clocksource")),
        clocks: words(&reader.text(Check::Clock, &clock.join("available_clocksource"))),
        huge_pages: chosen(&reader.text(Check::HugePages, &pages)),
        swapped_in_pages: named(&text(Check::Swapping, "vmstat"), "pswpin "),
        processes: processes(&reader, own, &servers),
        subjects: subjects(&reader, generator, topology),
        sockets,
        server_network,
        listeners,
        links: links::speeds(&reader, &real_links),
        offloads: links::offloads(&reader, real_links),
        unmade: Vec::new(),
    };
    Facts { unmade: reader.unmade(), ..facts }
}

fn servers(topology: Option<&Topology>) -> Vec<Pid> {
    topology.map(|of| of.servers.iter().chain(&of.downstream).copied().collect()).unwrap_or_default()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
}

fn processors(reader: &Reader<'_>) -> Vec<Processor> {
    let root = reader.paths.sys.join("devices/system/cpu");
    let entries = std::fs::read_dir(&root).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok().filter(|number| *number < 1 << 16)
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| processor(reader, &root.join(format!("cpu{number}")), number)).collect()
}

fn processor(reader: &Reader<'_>, directory: &Path, number: u32) -> Processor {
    let siblings = reader.text(Check::Cores, &directory.join("topology/thread_siblings_list"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let node =
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()).next();
    Processor {
        number,
        governor: reader.word(Check::Governor, &directory.join("cpufreq/scaling_governor")),
        wake_us: wake_us(reader, &directory.join("cpuidle")),
        siblings: process::numbers(&siblings),
        node,
    }
}

/// The longest time to wake from an idle state that is not disabled.
fn wake_us(reader: &Reader<'_>, directory: &Path) -> Option<u64> {
    let number = |file: &Path| reader.number(Check::IdleStates, file);
    let states = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let enabled = states.filter(|state| number(&state.join("disable")) != Some(1));
    enabled.filter_map(|state| number(&state.join("latency"))).max()
}

/// Every process but the kernel's own.
fn processes(reader: &Reader<'_>, own: Pid, servers: &[Pid]) -> Vec<HostProcess> {
    /// The parent of the kernel's threads.
    const KERNEL: u32 = 2;
    let stat = |pid: Pid| read(&reader.paths.process(pid).join("stat"));
    // Where those of other users are hidden (hidepid), so is the first.
    if reader.paths.are_this_host() && stat(1).is_err() {
        reader.deny(Check::Neighbours, Some(libc::EACCES));
    }
    let of = |pid: Pid| {
        let stat = process::stat(&stat(pid).ok()?)?;
        let ticks = stat.user_ticks.saturating_add(stat.system_ticks);
        let is_kernel = pid == KERNEL || stat.parent == KERNEL;
        (!is_kernel).then(|| HostProcess {
            pid,
            name: stat.name,
            cpu_us: ticks.saturating_mul(1_000_000) / ticks_per_second(),
            is_ours: pid == own || servers.contains(&pid),
        })
    };
    reader.paths.processes().unwrap_or_default().into_iter().filter_map(of).collect()
}

fn subjects(
    reader: &Reader<'_>,
    generator: Option<Pid>,
    topology: Option<&Topology>,
) -> Vec<(Subject, SubjectFacts)> {
    let text = |check, pid: Pid, name: &str| reader.text(check, &reader.paths.process(pid).join(name));
    let limits = |pid| text(Check::OpenFiles, pid, "limits");
    let facts = |pid, open_files| {
        // Read for the limits below, which do not tell why there is none.
        for check in [Check::Quota, Check::Memory] {
            let _ = text(check, pid, "cgroup");
        }
        SubjectFacts {
            open_files,
            allowed: process::allowed_cpus(&text(Check::Placement, pid, "status")),
            quota_cores: quota_cores(reader.paths, pid),
            memory: memory_in_use(reader.paths, pid),
            debug_build: is_debug_build(reader, pid),
        }
    };
    let generator = generator.map(|pid| {
        let facts = facts(pid, process::most_open_files(&limits(pid)));
        // Of nstar itself it is known.
        (Subject::Generator, SubjectFacts { debug_build: false, ..facts })
    });
    let server = |pid: Pid| {
        let serves = topology.is_some_and(|of| of.servers.contains(&pid));
        let role = if serves { Role::Server } else { Role::Downstream };
        let subject = Subject::Server { name: name_of(reader.paths, pid), pid, role };
        (subject, facts(pid, process::open_files_limit(&limits(pid))))
    };
    generator.into_iter().chain(servers(topology).into_iter().map(server)).collect()
}

fn name_of(paths: &KernelPaths, pid: Pid) -> String {
    read_or_empty(&paths.process(pid).join("comm")).trim().to_owned()
}

/// Whether its program lies where cargo puts debug builds: in `target/debug`, or in `target/PLATFORM/debug`.
fn is_debug_build(reader: &Reader<'_>, pid: Pid) -> bool {
    let program = std::fs::read_link(reader.paths.process(pid).join("exe"));
    reader.noted(Check::DebugServer, program).is_some_and(|program| is_among_debug_builds(&program))
}

fn is_among_debug_builds(program: &Path) -> bool {
    let mut folders = program.parent().into_iter().flat_map(Path::iter);
    folders.any(|folder| folder == "target") && folders.take(2).any(|folder| folder == "debug")
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
    fn programs_of_debug_builds_are_known_by_their_folder() {
        let is = |program| is_among_debug_builds(Path::new(program));
        assert!(is("/src/app/target/debug/app") && is("/src/target/x86_64-unknown-linux-musl/debug/app"));
        assert!(is("/src/target/debug/deps/app (deleted)"));
        assert!(!is("/src/target/release/app") && !is("/usr/bin/debug") && !is("/srv/target/a/b/debug/app"));
        assert!(!is("/src/target/debug"));
    }

    #[test]
    fn this_host_has_facts() {
        let facts = facts(std::process::id(), None);
        assert!(!facts.cpus.is_empty() && facts.at_us > 0);
        assert!(facts.processes.iter().any(|process| process.is_ours));
        assert!(facts.subjects.iter().any(|(subject, _)| *subject == Subject::Generator));
        assert!(!facts.sockets.network.is_empty());
    }

    #[test]
    fn a_host_that_makes_no_load_is_asked_nothing_about_a_generator() {
        let far = Topology::unseen(([127, 0, 0, 1], 80).into()).with_far_load();
        let facts = facts(std::process::id(), Some(&far));
        assert!(!facts.cpus.is_empty() && facts.subjects.is_empty() && facts.listeners.is_empty());
        assert!(facts.sockets.listen_queue.is_some(), "queues are those of whatever listens there");
    }
}
