//! Sentences about disks, limits on them, and links.

use analysis::run::{DeviceEvidence as Seen, DiskLimit, Processes};

use super::at_saturation;
use super::holders::{counted, processes};
use crate::number::{percent, prefixed, quantity, time};
use crate::words::users;

const SHARE_UNKNOWN: &str =
    "How much of that the server and its tiers caused may not be read without permission.";
const SHARED_WRITES: &str = "It was as busy with fewer users, and threads took turns at waiting: one write serves all \
                             that wait for it, so more users get more done with as many writes, until no more can wait \
                             at a time.";

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::DiskBusy { disk, busy, in_flight, users, demand_us } => {
            disk_busy(disk, *busy, *in_flight, (*users, *demand_us))
        }
        Seen::DiskWork { reads_per_s, writes_per_s, flushes_per_s, flush } => {
            disk_work([*reads_per_s, *writes_per_s, *flushes_per_s], *flush)
        }
        Seen::DiskLatency { read_us, write_us, flush_us } => {
            latencies([("a read", *read_us), ("a write", *write_us), ("a flush", *flush_us)])
        }
        Seen::DiskServesSeveral { users, light_us, full_us } => side_by_side(*users, *light_us, *full_us),
        Seen::DiskShare { share: Some(share) } => {
            format!("The server and its tiers caused {} of its bytes.", percent(*share))
        }
        Seen::DiskShare { share: None } => SHARE_UNKNOWN.to_owned(),
        Seen::DiskAwaited { pressure, thread } => disk_awaited(*pressure, *thread),
        Seen::CacheTooSmall { refaults_per_s } => cache_too_small(*refaults_per_s),
        Seen::SharedWrites => SHARED_WRITES.to_owned(),
        Seen::IoLimitUsed { limit, cgroup, used_per_s, limit_per_s, share, users, per_request } => {
            io_limit_used((limit, cgroup), [*used_per_s, *limit_per_s], *share, (*users, *per_request))
        }
        Seen::DiskNotBusy { disk, busy } => disk_not_busy(disk, *busy),
        Seen::IoLimitAwaited { of, threads, pressure } => io_limit_awaited(of, *threads, *pressure),
        Seen::LinkBusy { link, used_bits_per_s, limit_bits_per_s, busy, users, demand_us } => {
            link_busy(link, [*used_bits_per_s, *limit_bits_per_s], *busy, (*users, *demand_us))
        }
        Seen::LinkQueue { delayed_per_s, dropped_per_s, backlogged } => {
            link_queue(*delayed_per_s, *dropped_per_s, *backlogged)
        }
    }
}

/// The last: users at saturation, and the disk's time for each request.
fn disk_busy(disk: &str, busy: f64, in_flight: f64, (users, demand_us): (u32, f64)) -> String {
    format!(
        "The disk {disk} is busy {} with {} requests under way on average, {}; each request of a user costs it {}.",
        percent(busy),
        quantity(in_flight),
        at_saturation(users),
        time(demand_us)
    )
}

/// Reads, writes and flushes per second, and the share of the time that flushes took.
fn disk_work([reads, writes, flushes]: [f64; 3], flush: f64) -> String {
    format!(
        "It did {} reads, {} writes and {} flushes per second; flushes took {} of the time.",
        quantity(reads),
        quantity(writes),
        quantity(flushes),
        percent(flush)
    )
}

/// `Queueing included, a read took 1.2 ms and a flush 3 ms.`
fn latencies(all: [(&str, Option<f64>); 3]) -> String {
    let known = all.into_iter().filter_map(|(name, us)| Some((name, us?)));
    let parts: Vec<String> = known
        .enumerate()
        .map(|(index, (name, us))| format!("{name}{} {}", if index == 0 { " took" } else { "" }, time(us)))
        .collect();
    match parts.split_last() {
        Some((last, [])) => format!("Queueing included, {last}."),
        Some((last, others)) => format!("Queueing included, {} and {last}.", others.join(", ")),
        None => "How long its requests took is not counted.".to_owned(),
    }
}

fn side_by_side(light_users: u32, light_us: f64, full_us: f64) -> String {
    format!(
        "With {} it took {} for each, and at N* and beyond {} at most: it serves so many side by side, and may have time \
         for more.",
        users(light_users),
        time(light_us),
        time(full_us)
    )
}

fn disk_awaited(pressure: f64, thread: f64) -> String {
    format!(
        "Some task waited for a disk {} of the time, and one thread of the server or its tiers was found waiting \
         for it in {} of the samples.",
        percent(pressure),
        percent(thread)
    )
}

fn cache_too_small(refaults_per_s: f64) -> String {
    format!(
        "{} file pages per second were read again soon after being evicted: the page cache is too small for the \
         files asked for.",
        quantity(refaults_per_s)
    )
}

/// A limit and the cgroup that has it; what was used of it per second, and what may be; the last: users at saturation, and the
/// use for each request.
fn io_limit_used(
    (limit, cgroup): (&DiskLimit, &str),
    [used_per_s, limit_per_s]: [f64; 2],
    share: f64,
    (users, per_request): (u32, f64),
) -> String {
    format!(
        "{} did {} a second on {}, {} of the {} that its cgroup {cgroup} allows, {}; each request costs it {}.",
        processes(&limit.of),
        counted(used_per_s, limit.rate),
        limit.device,
        percent(share),
        quantity(limit_per_s),
        at_saturation(users),
        counted(per_request, limit.rate)
    )
}

fn disk_not_busy(disk: &str, busy: f64) -> String {
    format!(
        "The disk {disk} itself is busy only {}: what the limit holds back does not reach it.",
        percent(busy)
    )
}

fn io_limit_awaited(of: &Processes, threads: f64, pressure: f64) -> String {
    format!(
        "Threads of {} were found waiting for a disk in {} of the samples; some task on the host waited for one {} of \
         the time.",
        processes(of),
        percent(threads),
        percent(pressure)
    )
}

/// Bits per second that the link carries, and at most; the last: users at saturation, and the link's time for each request.
fn link_busy(link: &str, [used, limit]: [f64; 2], busy: f64, (users, demand_us): (u32, f64)) -> String {
    format!(
        "The link {link} carries {} of at most {} ({}), {}; each request costs it {}.",
        prefixed(used, "b/s"),
        prefixed(limit, "b/s"),
        percent(busy),
        at_saturation(users),
        time(demand_us)
    )
}

fn link_queue(delayed_per_s: f64, dropped_per_s: f64, backlogged: f64) -> String {
    format!(
        "Its queue delayed {} packets and dropped {} per second, and held bytes in {} of the samples.",
        quantity(delayed_per_s),
        quantity(dropped_per_s),
        percent(backlogged)
    )
}
