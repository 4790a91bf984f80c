//! The rules: which facts are faults. Kernels as they come from a distribution break none of those about limits.

use std::collections::{BTreeMap, BTreeSet};

use super::{Facts, Fault, LimitedMemory, LinkOffloads, PACKET_QUEUE, Sockets, Subject, SubjectFacts};

/// A thousand users, and some files besides.
const FILES_MIN: u64 = 1_100;

/// Fewer local ports than these are used up by a connection for each request within seconds.
const PORTS_MIN: u64 = 10_000;

/// The share of the ports held by connections that have ended, from which on requests may soon find none.
const PORTS_HELD: f64 = 0.5;

/// Kernels before 5.4 had 128, later ones 4 096.
const LISTEN_QUEUE_MIN: u64 = 1_024;

/// Servers ask for 128 and more; some libraries for 5.
const BACKLOG_MIN: u64 = 128;

/// Kernels choose 128 where there is hardly any memory.
const SYN_QUEUE_MIN: u64 = 256;

/// The share of the table of tracked connections from which on it may fill up during a load.
const TRACKED: f64 = 0.5;

/// Waking takes as long as a fast response from here on, microseconds.
const WAKE_US: u64 = 100;

/// The share of the processors' time that the hypervisor may take.
const STEAL: f64 = 0.01;

/// Processors that a stranger may use.
const NEIGHBOUR_CORES: f64 = 0.05;

/// Processors that processes in no list may use: the time of processors and that of processes are not counted alike.
const UNLISTED_CORES: f64 = 0.3;

/// The share of all time in user mode that they may take: both are not read at the same moment.
const UNLISTED: f64 = 0.2;

/// Packets that may have been dropped since the host started: a single burst loses as many.
const DROPPED_MIN: u64 = 100;

/// The share of all packets that may have been dropped since then.
const DROPPED: f64 = 1e-4;

/// The share of the memory that a cgroup may use from which on load may need more than is left.
const MEMORY: f64 = 0.8;

/// Slower links fill up before a server does.
const LINK_BITS_PER_S: f64 = 1e9;

/// Sources of the clock that are read without a system call, or nearly so.
const FAST_CLOCKS: [&str; 5] =
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "pvclock"];

/// Every fault, in no order.
pub(super) fn all(first: &Facts, second: &Facts) -> Vec<Fault> {
    let rules = [limits, memory, links, sockets, processors, placement, clock];
    let mut found: Vec<Fault> = rules.iter().flat_map(|rule| rule(second)).collect();
    found.extend(meanwhile(first, second));
    found
}

fn limits(facts: &Facts) -> Vec<Fault> {
    let files = lowest(facts, |limits| limits.open_files.filter(|limit| *limit < FILES_MIN));
    let files = files.into_iter().map(|(of, processes, limit)| Fault::OpenFiles { of, processes, limit });
    let quotas = lowest(facts, |limits| limits.quota_cores);
    let quotas = quotas.into_iter().map(|(of, processes, cores)| Fault::Quota { of, processes, cores });
    let debug = lowest(facts, |limits| limits.debug_build.then_some(()));
    let debug = debug.into_iter().filter_map(|(of, processes, ())| match of {
        Subject::Server { name, pid, .. } => Some(Fault::DebugServer { name, pid, processes }),
        Subject::Generator => None,
    });
    files.chain(quotas).chain(debug).collect()
}

fn memory(facts: &Facts) -> Vec<Fault> {
    let little_left = |limits: &SubjectFacts| {
        let memory = limits.memory.filter(|memory| memory.most_bytes > 0)?;
        let LimitedMemory { most_bytes, used_bytes } = memory;
        // The smallest share that is left is the lowest.
        (memory.share() >= MEMORY).then_some((1.0 - memory.share(), most_bytes, used_bytes))
    };
    let fault = |(of, processes, (_, most_bytes, used_bytes))| {
        let memory = LimitedMemory { most_bytes, used_bytes };
        Fault::Memory { of, processes, memory }
    };
    lowest(facts, little_left).into_iter().map(fault).collect()
}

fn links(facts: &Facts) -> Vec<Fault> {
    let slow = |(name, bits_per_s, full_duplex): &(String, f64, bool)| {
        (*bits_per_s < LINK_BITS_PER_S || !full_duplex).then(|| Fault::Link {
            name: name.clone(),
            bits_per_s: *bits_per_s,
            full_duplex: *full_duplex,
        })
    };
    let without_help = |link: &LinkOffloads| {
        let [segmentation, receive] = [link.segmentation, link.receive].map(|is_on| is_on == Some(false));
        let link = link.link.clone();
        (segmentation || receive).then_some(Fault::Offloads { link, segmentation, receive })
    };
    let offloads = facts.offloads.iter().filter_map(without_help);
    facts.links.iter().filter_map(slow).chain(offloads).collect()
}

/// Of each tier whose processes have such a limit: the one with the lowest, how many have any, and the lowest. A server of many
/// processes, such as one with a process for each connection, has one fault and not one for each.
fn lowest<L: PartialOrd>(
    facts: &Facts,
    limit: impl Fn(&SubjectFacts) -> Option<L>,
) -> Vec<(Subject, u32, L)> {
    let mut tiers: Vec<(Subject, u32, L)> = Vec::new();
    for (subject, limits) in &facts.subjects {
        let Some(own) = limit(limits) else { continue };
        match tiers.iter_mut().find(|(of, ..)| of.tier() == subject.tier()) {
            Some((of, processes, least)) => {
                *processes = processes.saturating_add(1);
                if own < *least {
                    (*of, *least) = (subject.clone(), own);
                }
            }
            None => tiers.push((subject.clone(), 1, own)),
        }
    }
    tiers
}

fn sockets(facts: &Facts) -> Vec<Fault> {
    let within = facts.server_network.iter().flat_map(|network| {
        let all = connections(&network.sockets).into_iter().chain(queues(&network.sockets));
        all.map(move |fault| Fault::Within {
            name: network.name.clone(),
            pid: network.pid,
            fault: Box::new(fault),
        })
    });
    // Nobody listens in a namespace that the server is not in.
    let own_queues = facts.server_network.is_none().then(|| queues(&facts.sockets));
    let own = connections(&facts.sockets).into_iter().chain(own_queues.into_iter().flatten());
    own.chain(within).chain(backlogs(facts)).collect()
}

/// What limits who opens connections.
fn connections(sockets: &Sockets) -> Vec<Fault> {
    let ports = sockets.ports.unwrap_or(0);
    let held = ports > 0 && sockets.time_wait as f64 >= PORTS_HELD * ports as f64;
    let table = sockets.tracked.filter(|table| table.most > 0);
    [
        sockets.ports.filter(|ports| *ports < PORTS_MIN).map(|ports| Fault::FewPorts { ports }),
        held.then_some(Fault::TimeWait { held: sockets.time_wait, ports, reuse: sockets.reuse }),
        table
            .filter(|table| table.connections as f64 >= TRACKED * table.most as f64)
            .map(|table| Fault::Tracking { table }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What limits who listens.
fn queues(sockets: &Sockets) -> Vec<Fault> {
    let listen = sockets.listen_queue.filter(|limit| *limit < LISTEN_QUEUE_MIN);
    let syn = sockets.syn_queue.filter(|limit| *limit < SYN_QUEUE_MIN);
    let listen = listen.map(|limit| Fault::ListenQueue { limit });
    listen.into_iter().chain(syn.map(|limit| Fault::SynQueue { limit })).collect()
}

/// Listen queues that the server itself made short: where the limit on all of them does, that is the fault.
fn backlogs(facts: &Facts) -> Vec<Fault> {
    let sockets = facts.server_network.as_ref().map_or(&facts.sockets, |network| &network.sockets);
    let is_short = |most: u64| most < BACKLOG_MIN && sockets.listen_queue.is_none_or(|limit| most < limit);
    let short = facts.listeners.iter().filter(|of| is_short(of.most));
    let fault = |of: &super::ListenQueue| Fault::Backlog {
        name: of.name.clone(),
        pid: of.pid,
        port: of.port,
        most: of.most,
    };
    short.map(fault).collect()
}

fn processors(facts: &Facts) -> Vec<Fault> {
    let slow = |governor: &&String| governor.as_str() != "performance";
    let governors: Vec<&String> =
        facts.processors.iter().filter_map(|processor| processor.governor.as_ref()).filter(slow).collect();
    let wakes = facts.processors.iter().filter_map(|processor| processor.wake_us);
    let wakes: Vec<u64> = wakes.filter(|wake_us| *wake_us >= WAKE_US).collect();
    let governor = governors
        .first()
        .map(|name| Fault::Governor { name: (*name).clone(), processors: governors.len() as u32 });
    let idle = wakes
        .iter()
        .max()
        .map(|wake_us| Fault::IdleStates { wake_us: *wake_us, processors: wakes.len() as u32 });
    let pages = facts.huge_pages.as_deref() == Some("always");
    governor.into_iter().chain(idle).chain(pages.then_some(Fault::HugePages)).collect()
}

/// Where generator and server run, as far as they are known. Of what they have in common the closest is told: processors, cores,
/// memory.
fn placement(facts: &Facts) -> Vec<Fault> {
    let allowed = |generator: bool| -> BTreeSet<u32> {
        let of = facts.subjects.iter().filter(|(subject, _)| (*subject == Subject::Generator) == generator);
        of.flat_map(|(_, limits)| &limits.allowed).copied().collect()
    };
    let (generator, servers) = (allowed(true), allowed(false));
    let in_common = match generator.intersection(&servers).count() as u32 {
        0 => shared_core(facts, &generator, &servers).or_else(|| memory_nodes(facts, &generator, &servers)),
        shared => Some(Fault::SharedProcessors { shared, servers: servers.len() as u32 }),
    };
    let nodes = nodes(facts, &servers).len() as u32;
    let spread = (nodes > 1).then_some(Fault::Nodes { nodes });
    in_common.into_iter().chain(spread).collect()
}

fn shared_core(facts: &Facts, generator: &BTreeSet<u32>, servers: &BTreeSet<u32>) -> Option<Fault> {
    let of_generator = facts.processors.iter().filter(|processor| generator.contains(&processor.number));
    let mut pairs = of_generator
        .flat_map(|processor| processor.siblings.iter().map(move |sibling| [processor.number, *sibling]));
    let pair = pairs.find(|[own, sibling]| own != sibling && servers.contains(sibling))?;
    Some(Fault::SharedCores { pair })
}

/// Whether generator and server have one node of memory or two, where there are several. A server that may run on more than one
/// has a fault of its own, which comes first.
fn memory_nodes(facts: &Facts, generator: &BTreeSet<u32>, servers: &BTreeSet<u32>) -> Option<Fault> {
    let all: BTreeSet<u32> = facts.processors.iter().filter_map(|processor| processor.node).collect();
    let (generator, servers) = (nodes(facts, generator), nodes(facts, servers));
    let server = servers.first().copied().filter(|_| all.len() > 1 && servers.len() == 1)?;
    if generator.contains(&server) {
        return Some(Fault::SharedNode { node: server, nodes: all.len() as u32 });
    }
    generator.first().map(|generator| Fault::NodesApart { generator: *generator, server })
}

/// The nodes of memory of these processors.
fn nodes(facts: &Facts, of: &BTreeSet<u32>) -> BTreeSet<u32> {
    let these = facts.processors.iter().filter(|processor| of.contains(&processor.number));
    these.filter_map(|processor| processor.node).collect()
}

fn clock(facts: &Facts) -> Vec<Fault> {
    let is_fast = |source: &str| FAST_CLOCKS.contains(&source);
    let slow = facts.clock.as_ref().filter(|source| !is_fast(source));
    let better = facts.clocks.iter().find(|source| is_fast(source)).cloned();
    let clock = slow.map(|source| Fault::Clock { source: source.clone(), better });
    clock.into_iter().chain(facts.debug_build.then_some(Fault::DebugBuild)).collect()
}

/// What happened between two looks.
fn meanwhile(first: &Facts, second: &Facts) -> Vec<Fault> {
    let elapsed_us = second.at_us.saturating_sub(first.at_us);
    if elapsed_us == 0 {
        return Vec::new();
    }
    let seconds = elapsed_us as f64 / 1e6;
    let per_s = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let mut found = Vec::new();
    let dropped = per_s(first.sockets.packets_dropped, second.sockets.packets_dropped);
    if dropped > 0.0 {
        found.push(Fault::PacketsDropped { per_s: dropped, limit: second.sockets.packet_queue });
    } else {
        found.extend(dropped_before(&second.sockets));
    }
    let pages_per_s = per_s(first.swapped_in_pages, second.swapped_in_pages);
    if pages_per_s > 0.0 {
        found.push(Fault::Swapping { pages_per_s });
    }
    let steal = |facts: &Facts| facts.cpus.iter().map(|cpu| cpu.steal_us).fold(0, u64::saturating_add);
    let processors = second.cpus.len().max(1) as f64;
    let share = steal(second).saturating_sub(steal(first)) as f64 / elapsed_us as f64 / processors;
    if share >= STEAL {
        found.push(Fault::Steal { share });
    }
    found.extend(neighbours(first, second, elapsed_us as f64));
    found.extend(short_lived(first, second, elapsed_us as f64));
    found
}

/// Packets that were dropped since the host started, where they are a share of all that arrived that loads would feel. The count
/// never falls, so that it is no fault of a queue that was made longer since.
fn dropped_before(sockets: &Sockets) -> Option<Fault> {
    let Sockets { packet_queue, packets_dropped, packets_handled, .. } = *sockets;
    let are_many = packets_handled > 0
        && packets_dropped >= DROPPED_MIN
        && packets_dropped as f64 >= DROPPED * packets_handled as f64
        && packet_queue.is_none_or(|limit| limit < PACKET_QUEUE);
    are_many.then_some(Fault::DroppedSinceStart { packets: packets_dropped, limit: packet_queue })
}

/// The strangers that were most at work, three at most.
fn neighbours(first: &Facts, second: &Facts, elapsed_us: f64) -> Vec<Fault> {
    const MOST: usize = 3;
    let mut at_work: Vec<(f64, &super::HostProcess)> = second
        .processes
        .iter()
        .filter(|process| !process.is_ours)
        .filter_map(|process| {
            let same = |other: &&super::HostProcess| other.pid == process.pid && other.name == process.name;
            let before = first.processes.iter().find(same)?;
            let cores = process.cpu_us.saturating_sub(before.cpu_us) as f64 / elapsed_us;
            (cores >= NEIGHBOUR_CORES).then_some((cores, process))
        })
        .collect();
    at_work.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let fault = |(cores, process): (f64, &super::HostProcess)| Fault::Neighbour {
        name: process.name.clone(),
        pid: process.pid,
        cores,
    };
    at_work.into_iter().take(MOST).map(fault).collect()
}

/// What takes processor time and is in no list: time in user mode less all time of what is listed. Work of the kernel, which may
/// be nobody's, is not counted, so that it is rather too little than too much.
fn short_lived(first: &Facts, second: &Facts, elapsed_us: f64) -> Option<Fault> {
    let user_us = |facts: &Facts| facts.cpus.iter().map(|cpu| cpu.user_us).fold(0, u64::saturating_add);
    // A processor that was switched on meanwhile comes with all its time so far.
    let are_comparable = first.cpus.len() == second.cpus.len() && !first.processes.is_empty();
    let used_us = user_us(second).saturating_sub(user_us(first));
    let unlisted_us = used_us.saturating_sub(listed_us(first, second));
    let is_much = unlisted_us as f64 >= UNLISTED * used_us as f64;
    let cores = unlisted_us as f64 / elapsed_us;
    (are_comparable && is_much && cores >= UNLISTED_CORES).then_some(Fault::ShortLived { cores })
}

/// The time that listed processes took between two looks: ours, and strangers that are in both.
fn listed_us(first: &Facts, second: &Facts) -> u64 {
    let before: BTreeMap<u32, u64> =
        first.processes.iter().map(|process| (process.pid, process.cpu_us)).collect();
    let took_us = |process: &super::HostProcess| match before.get(&process.pid) {
        // Where it took less so far than the one before, that has ended, and its number was given again.
        Some(before_us) => process.cpu_us.checked_sub(*before_us).unwrap_or(process.cpu_us),
        None if process.is_ours => process.cpu_us,
        None => 0,
    };
    second.processes.iter().map(took_us).fold(0, u64::saturating_add)
}
