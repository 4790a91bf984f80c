//! Which resource stops the server at N*, from evidence.
//!
//! A wrong verdict is worse than none, so each rule needs direct evidence, and where no rule applies the verdict is
//! [`ResourceKind::Unknown`]. The order: the generator first (it must never pass for the server), then resources that
//! are busy, then waiting while all of them are idle, for which explanations compete; processors that are nearly full are
//! weighed in between. A resource is busy if it is so on the
//! plateau (N* and the steps beyond it that hold its throughput) and was less busy where the throughput was lower; its
//! rivals share the probability. Failed requests, and other processes on the processors, make any finding doubtful.

mod accept_queue;
mod collector;
mod connecting;
mod curve;
mod database_locks;
mod disk;
mod doubts;
mod explanations;
mod finding;
mod generator;
mod hops;
mod host_limits;
mod io_limit;
mod memory_limit;
mod nearly;
mod network;
mod processor;
mod quota;
mod rate_limit;
mod rivals;
mod shared;
mod softirq;
mod threads;
mod undecided;
mod utilisation;
mod variation;
mod waiters;
mod waiting;

pub use curve::{Curve, DatabaseServer, Shape, WatchedDatabase};
pub(crate) use database_locks::resource as locks_resource;
pub use finding::Finding;
pub(crate) use finding::SUREST;
pub use generator::starved as generator_waited;
pub(crate) use host_limits::reached as host_limits_reached;
pub(crate) use processor::cpu_demand_us;
pub use rivals::next;
pub use shared::sharing;
pub(crate) use undecided::{Tried, is_told_by_pairs, undecided};
pub use utilisation::{Use, mean_uses, uses};
pub(crate) use waiting::to_tell_apart;

use self::finding::DIRECT;
use crate::run::{Aside, Doubt, Evidence, Identity, OutcomeEvidence as Seen, ResourceKind};
use crate::search::growth::Growth;
use crate::thresholds::{FULL, UNWATCHED};

/// Names what stops the server.
pub fn bottleneck(curve: &Curve) -> Finding {
    let found = if curve.completed() == 0 {
        nothing_completed()
    } else if !curve.bounded() {
        generator::limited(curve, 0.0).unwrap_or_else(|| never_bounded(curve))
    } else {
        let found = threads::with_names(curve, bounded(curve));
        connecting::with_share(curve, processor::with_tiers(curve, found))
    };
    let ranked = rivals::with_runner_up(curve, found);
    doubts::requests_failed(curve, doubts::interference(curve, ranked))
}

/// The same for one load, which does not ask what stops the server: only whether the generator kept up, and whether
/// requests failed.
pub fn bottleneck_of_load(curve: &Curve) -> Finding {
    let found = if curve.completed() == 0 {
        nothing_completed()
    } else {
        generator::limited(curve, 0.0).unwrap_or_else(|| Finding::new(ResourceKind::None, DIRECT))
    };
    doubts::requests_failed(curve, found)
}

/// Tries the rules in their order where throughput was seen to stop growing.
fn bounded(curve: &Curve) -> Finding {
    let busiest = in_pauses(curve, busiest(curve));
    let busy = busiest.as_ref().and_then(|finding| finding.utilization).unwrap_or(0.0);
    if let Some(finding) = generator::limited(curve, busy) {
        return finding;
    }
    let short = || short_of_memory(curve, busiest.as_ref());
    if let Some(finding) = waiting::descriptors(curve).or_else(short) {
        return finding;
    }
    let locks = database_locks::full(curve).zip(database_locks::holder(curve));
    let found = match (busiest, locks) {
        (Some(full), Some((locks, database))) => return database_locks::beside(full, &database, locks),
        (None, Some((locks, _))) => return locks,
        (Some(full), None) => compared(curve, full),
        (None, None) => rate_limit::rejects(curve)
            .or_else(|| generator::held_up(curve))
            .or_else(|| accept_queue::full(curve))
            .or_else(|| hops::behind(curve))
            .unwrap_or_else(|| weighed(curve)),
    };
    database_locks::compare(curve, found)
}

/// A tier that waits for pages on a host that swaps, or for what its cgroup had no memory to keep. A disk that is busy with either
/// is not a rival; anything else that is full is.
fn short_of_memory(curve: &Curve, busiest: Option<&Finding>) -> Option<Finding> {
    if busiest.is_some_and(|finding| finding.kind != ResourceKind::Disk) {
        return None;
    }
    waiting::memory(curve).or_else(|| memory_limit::read_again(curve))
}

/// Lowers the odds of a full resource where nothing shows that it was less busy under less load.
fn compared(curve: &Curve, full: Finding) -> Finding {
    if curve.compared_with().is_some() { full } else { full.less_sure() }
}

/// A collector that stops all other threads, where one was seen: then threads that seem to run one at a time are its own
/// and, in turn, the others. A processor that is full is full whatever runs on it.
fn in_pauses(curve: &Curve, busiest: Option<Finding>) -> Option<Finding> {
    let inferred =
        |finding: &Finding| finding.kind == ResourceKind::SingleThread && finding.confidence < DIRECT;
    if busiest.as_ref().is_some_and(|finding| !inferred(finding)) {
        return busiest;
    }
    collector::stops_the_world(curve).or(busiest)
}

/// The strongest finding among the resources that were full.
fn busiest(curve: &Curve) -> Option<Finding> {
    let mut full = quota::full(curve);
    full.extend(processor::full(curve));
    full.extend(shared::full(curve));
    full.extend(softirq::full(curve));
    full.extend(disk::full(curve));
    full.extend(io_limit::full(curve));
    full.extend(network::full(curve));
    rivals::most_probable(full)
}

fn nothing_completed() -> Finding {
    Finding::unknown().seeing(Seen::NothingCompleted).doubting(Doubt::NothingCompleted)
}

fn never_bounded(curve: &Curve) -> Finding {
    let users = curve.last_users();
    if curve.steps().len() < 2 {
        return Finding::unknown().seeing(Seen::OnlyStep { users }).doubting(Doubt::OnlyStep { users });
    }
    if curve.growth() != Growth::Grows {
        return Finding::unknown().seeing(Seen::TooUneven { users }).doubting(Doubt::TooUneven { users });
    }
    let finding = Finding::new(ResourceKind::None, DIRECT);
    finding.seeing(Seen::StillGrew { users }).doubting(Doubt::NeverBounded { users, asked: None })
}

/// The most probable of the explanations that compete where nothing is busy and no rule tells directly.
fn weighed(curve: &Curve) -> Finding {
    if hops::has_answered_already(curve) {
        return unexplained(curve);
    }
    if let Some(few) = processor::few_at_a_time(curve) {
        return few;
    }
    if let Some(nearly) = nearly::full(curve) {
        return nearly;
    }
    let Some(weighed) = explanations::weighed(curve) else { return unexplained(curve) };
    weighed.finding(curve).unwrap_or_else(|| weighed.undecided(unexplained(curve)))
}

/// Saturated, and no rule says why.
fn unexplained(curve: &Curve) -> Finding {
    let users = curve.star_users();
    let finding = Finding::unknown();
    if !curve.observed() {
        return finding.seeing(Seen::NotWatched { users });
    }
    let finding = finding.seeing(Seen::NothingExplains { users, throughput_per_s: curve.throughput_max() });
    let cores = curve.unwatched_cores();
    let unwatched = (cores >= UNWATCHED).then_some(Seen::UnwatchedWork { cores });
    let at_the_disk = waiting::alone_at_the_disk(curve).filter(|_| waiting::nothing_busy(curve));
    let all = [
        unwatched.map(Evidence::from),
        at_the_disk.map(Evidence::from),
        busiest_of_all(curve).map(Evidence::from),
        waiting::number_served(curve).map(Evidence::from),
    ];
    all.into_iter().flatten().fold(finding, Finding::seeing)
}

fn busiest_of_all(curve: &Curve) -> Option<Seen> {
    // What keeps the processors of the generator's own host busy is nothing to servers on another.
    let hosts = || curve.star().into_iter().flat_map(|star| star.usage.tier_hosts());
    let is_elsewhere = |resource: &Identity| match resource {
        Identity::Host { on } => hosts().all(|host| host.name != *on),
        _ => false,
    };
    let top = mean_uses(curve).into_iter().find(|seen| !is_elsewhere(&seen.resource))?;
    let busy = top.utilisation();
    let aside = if busy < FULL {
        None
    } else if matches!(top.resource, Identity::Host { .. }) {
        Some(Aside::OthersUsedIt { tier_cores: shared::tier_cores(curve) })
    } else {
        processor::busy_whatever_the_load(curve, &top.resource).then_some(Aside::WhateverTheLoad)
    };
    Some(Seen::Busiest { resource: top.resource, busy, aside })
}
