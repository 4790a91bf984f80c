//! Sentences about disks, limits on them, and links.

use analysis::run::DeviceEvidence as Seen;

use super::at_saturation;
use super::holders::{counted, processes};
use crate::number::{percent, prefixed, quantity, time};

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::DiskBusy { disk, busy, in_flight, users, demand_us } => format!(
            "The disk {disk} is busy {} with {} requests under way on average, {}; each request of a user costs it {}.",
            percent(*busy),
            quantity(*in_flight),
            at_saturation(*users),
            time(*demand_us)
        ),
        Seen::DiskWork { reads_per_s, writes_per_s, flushes_per_s, flush } => format!(
            "It did {} reads, {} writes and {} flushes per second; flushes took {} of the time.",
            quantity(*reads_per_s),
            quantity(*writes_per_s),
            quantity(*flushes_per_s),
            percent(*flush)
        ),
        Seen::DiskLatency { read_us, write_us, flush_us } => latencies([
            ("a read", *read_us),
            ("a write", *write_us),
            ("a flush", *flush_us),
        ]),
        Seen::DiskShare { share: Some(share) } => {
            format!("The server and its tiers caused {} of its bytes.", percent(*share))
        }
        Seen::DiskShare { share: None } => {
            "How much of that the server and its tiers caused may not be read without permission.".to_owned()
        }
        Seen::DiskAwaited { pressure, thread } => format!(
            "Some task waited for a disk {} of the time, and one thread of the server or its tiers was found waiting \
             for it in {} of the samples.",
            percent(*pressure),
            percent(*thread)
        ),
        Seen::CacheTooSmall { refaults_per_s } => format!(
            "{} file pages per second were read again soon after being evicted: the page cache is too small for the \
             files asked for.",
            quantity(*refaults_per_s)
        ),
        Seen::SharedWrites => "It was as busy with fewer users, and threads took turns at waiting: one write serves all \
                               that wait for it, so more users get more done with as many writes, until no more can wait \
                               at a time."
            .to_owned(),
        Seen::IoLimitUsed { limit, cgroup, used_per_s, limit_per_s, share, users, per_request } => format!(
            "{} did {} a second on {}, {} of the {} that its cgroup {cgroup} allows, {}; each request costs it {}.",
            processes(&limit.of),
            counted(*used_per_s, limit.rate),
            limit.device,
            percent(*share),
            quantity(*limit_per_s),
            at_saturation(*users),
            counted(*per_request, limit.rate)
        ),
        Seen::DiskNotBusy { disk, busy } => format!(
            "The disk {disk} itself is busy only {}: what the limit holds back does not reach it.",
            percent(*busy)
        ),
        Seen::IoLimitAwaited { of, threads, pressure } => format!(
            "Threads of {} were found waiting for a disk in {} of the samples; some task on the host waited for one {} of \
             the time.",
            processes(of),
            percent(*threads),
            percent(*pressure)
        ),
        Seen::LinkBusy { link, used_bits_per_s, limit_bits_per_s, busy, users, demand_us } => format!(
            "The link {link} carries {} of at most {} ({}), {}; each request costs it {}.",
            prefixed(*used_bits_per_s, "b/s"),
            prefixed(*limit_bits_per_s, "b/s"),
            percent(*busy),
            at_saturation(*users),
            time(*demand_us)
        ),
        Seen::LinkQueue { delayed_per_s, dropped_per_s, backlogged } => format!(
            "Its queue delayed {} packets and dropped {} per second, and held bytes in {} of the samples.",
            quantity(*delayed_per_s),
            quantity(*dropped_per_s),
            percent(*backlogged)
        ),
    }
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
