//! Sentences about what the kernel does for the server, and about its limits.

use std::net::SocketAddr;

use analysis::run::{KernelEvidence as Seen, Processes};

use super::at_saturation;
use super::holders::processes;
use crate::number::{count, percent, prefixed, quantity, tenths, time};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::SoftirqsFull { processor, busy, softirq, users, demand_us } => {
            softirqs_full(*processor, [*busy, *softirq], *users, *demand_us)
        }
        Seen::PacketsLeft { dropped_per_s, squeezes_per_s } => packets_left(*dropped_per_s, *squeezes_per_s),
        Seen::TiersHadRoom { of, busy } => {
            format!("{} had room: it used {} of what it may at most.", processes(of), percent(*busy))
        }
        Seen::SpreadSoftirqs { processors } => spread_softirqs(*processors),
        Seen::MemoryLimitFull { of, cgroup, limit_bytes, fill, reached_per_s, users } => {
            memory_limit_full((of, cgroup), (*limit_bytes, *fill), *reached_per_s, *users)
        }
        Seen::ReadAgain { bytes_per_s, bytes_per_request, share } => {
            read_again(*bytes_per_s, *bytes_per_request, *share)
        }
        Seen::MemoryAwaited { threads, found, stalled } => memory_awaited(*threads, *found, *stalled),
        Seen::TrackingTableFull { connections, most, refused_per_s, users } => {
            tracking_table_full(*connections, *most, *refused_per_s, *users)
        }
        Seen::PortsUsedUp { address, is_target, used, ports, users } => {
            ports_used_up(address, *is_target, [*used, *ports], *users)
        }
        Seen::KilledForMemory { cgroup, processes, users } => killed_for_memory(cgroup, *processes, *users),
        Seen::HostMemoryLeft { share } => {
            format!("The host had {} of its memory to spare at the least.", percent(*share))
        }
    }
}

/// Shares of a processor's time: all in which it was busy, and the part of it in soft interrupts.
fn softirqs_full(processor: u32, [busy, softirq]: [f64; 2], users: u32, demand_us: f64) -> String {
    format!(
        "Processor {processor} is busy {}, {} of its time with soft interrupts (the kernel's work on packets that \
         arrive), {}; each request costs {} of them.",
        percent(busy),
        percent(softirq),
        at_saturation(users),
        time(demand_us)
    )
}

fn packets_left(dropped_per_s: f64, squeezes_per_s: f64) -> String {
    format!(
        "It dropped {} packets per second, and {} times per second it had no time for all that had arrived.",
        quantity(dropped_per_s),
        quantity(squeezes_per_s)
    )
}

fn spread_softirqs(processors: u64) -> String {
    format!(
        "{} had room: more receive queues (RSS), or rps_cpus of the interface, spread this work.",
        match processors {
            1 => "1 processor".to_owned(),
            many => format!("{} processors", count(many)),
        }
    )
}

/// The processes and their cgroup; its limit in bytes, and the share of it in use.
fn memory_limit_full(
    (of, cgroup): (&Processes, &str),
    (limit_bytes, fill): (f64, f64),
    reached_per_s: f64,
    users: u32,
) -> String {
    format!(
        "The cgroup {cgroup} of {} may use {} of memory and uses {} of it, cached files included; {} times per second \
         something was evicted to make room, {}.",
        processes(of),
        prefixed(limit_bytes, "B"),
        percent(fill),
        quantity(reached_per_s),
        at_saturation(users)
    )
}

fn read_again(bytes_per_s: f64, bytes_per_request: f64, share: Option<f64>) -> String {
    format!(
        "{} per second were read again soon after they had been evicted, {} for each request{}.",
        prefixed(bytes_per_s, "B"),
        prefixed(bytes_per_request, "B"),
        share.map_or_else(String::new, |share| format!(": {} of what it read and wrote", percent(share)))
    )
}

fn memory_awaited(threads: f64, found: f64, stalled: Option<f64>) -> String {
    format!(
        "{} of its threads waited for a disk on average, at least one in {} of the samples{}.",
        tenths(threads),
        percent(found),
        stalled.map_or_else(String::new, |share| {
            format!(
                "; by the cgroup's own account some task waited for memory {} of the time",
                percent(share)
            )
        })
    )
}

fn tracking_table_full(connections: u64, most: u64, refused_per_s: f64, at: u32) -> String {
    format!(
        "{} of {} connections that the kernel keeps track of were in its table with {}, and it dropped {} packets per \
         second that found no room: raise net.netfilter.nf_conntrack_max, or do not track them.",
        count(connections),
        count(most),
        users(at),
        quantity(refused_per_s)
    )
}

/// Ports that were used, of all that there are.
fn ports_used_up(address: &SocketAddr, is_target: bool, [used, ports]: [u64; 2], at: u32) -> String {
    format!(
        "{} used {} of {} local ports towards {address} with {}, those of connections that ended a short while ago \
         included: keep connections open, or widen net.ipv4.ip_local_port_range.",
        if is_target { "The generator" } else { "The server or a tier behind it" },
        count(used),
        count(ports),
        users(at)
    )
}

fn killed_for_memory(cgroup: &str, killed: u64, at: u32) -> String {
    format!(
        "With {} the kernel killed {} of the cgroup {cgroup}, whose memory was full.",
        users(at),
        match killed {
            1 => "a process".to_owned(),
            many => format!("{} processes", count(many)),
        }
    )
}
