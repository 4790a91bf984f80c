//! Which resource stops the server at N*, from evidence.
//!
//! A wrong verdict is worse than none, so each rule needs direct evidence, and where no rule applies the verdict is
//! [`ResourceKind::Unknown`]. The order: the generator first (it must never pass for the server), then resources that
//! are busy, then waiting while all of them are idle. A resource is busy if it is so on the plateau (N* and the steps
//! beyond it that hold its throughput) and was less busy where the throughput was lower; its rivals lower the
//! confidence. Failed requests, and other processes on the processors, make any finding doubtful.

mod database_locks;
mod disk;
mod doubts;
mod finding;
mod generator;
mod io_limit;
mod network;
mod processor;
mod quota;
mod rivals;
mod shared;
mod sweep;
mod threads;
mod utilisation;
mod waiting;

pub(crate) use database_locks::resource as locks_resource;
pub use finding::Finding;
pub use generator::starved as generator_waited;
pub use rivals::next;
pub use shared::sharing;
pub use sweep::{DatabaseServer, Shape, Sweep, WatchedDatabase};
pub use utilisation::{Use, mean_uses, uses};

use crate::run::{Aside, Confidence, Doubt, Evidence, Identity, OutcomeEvidence as Seen, ResourceKind};
use crate::search::growth::Growth;
use crate::thresholds::{FULL, UNWATCHED};

/// Names what stops the server.
pub fn bottleneck(sweep: &Sweep) -> Finding {
    let found = if sweep.completed() == 0 {
        nothing_completed()
    } else if !sweep.bounded() {
        generator::limited(sweep, 0.0).unwrap_or_else(|| never_bounded(sweep))
    } else {
        processor::with_tiers(sweep, threads::with_names(sweep, bounded(sweep)))
    };
    let ranked = rivals::with_runner_up(sweep, found);
    doubts::requests_failed(sweep, doubts::interference(sweep, ranked))
}

/// The same for one load, which does not ask what stops the server: only whether the generator kept up, and whether
/// requests failed.
pub fn bottleneck_of_load(sweep: &Sweep) -> Finding {
    let found = if sweep.completed() == 0 {
        nothing_completed()
    } else {
        generator::limited(sweep, 0.0).unwrap_or_else(|| Finding::new(ResourceKind::None, Confidence::High))
    };
    doubts::requests_failed(sweep, found)
}

/// Tries the rules in their order where throughput was seen to stop growing.
fn bounded(sweep: &Sweep) -> Finding {
    let busiest = busiest(sweep);
    let busy = busiest.as_ref().and_then(|finding| finding.utilization).unwrap_or(0.0);
    if let Some(finding) = generator::limited(sweep, busy) {
        return finding;
    }
    if let Some(finding) = waiting::descriptors(sweep).or_else(|| waiting::memory(sweep)) {
        return finding;
    }
    let locks = database_locks::full(sweep).zip(database_locks::holder(sweep));
    let found = match (busiest, locks) {
        (Some(full), Some((locks, database))) => return database_locks::beside(full, &database, locks),
        (None, Some((locks, _))) => return locks,
        (Some(full), None) => full,
        (None, None) => generator::held_up(sweep)
            .or_else(|| waiting::accept_queue(sweep))
            .or_else(|| waiting::served_at_a_time(sweep))
            .unwrap_or_else(|| unexplained(sweep)),
    };
    database_locks::compare(sweep, found)
}

/// The strongest finding among the resources that were full.
fn busiest(sweep: &Sweep) -> Option<Finding> {
    let mut full = quota::full(sweep);
    full.extend(processor::full(sweep));
    full.extend(shared::full(sweep));
    full.extend(disk::full(sweep));
    full.extend(io_limit::full(sweep));
    full.extend(network::full(sweep));
    full.into_iter().max_by(|a, b| a.strength.total_cmp(&b.strength))
}

fn nothing_completed() -> Finding {
    Finding::new(ResourceKind::Unknown, Confidence::Low)
        .seeing(Seen::NothingCompleted)
        .doubting(Doubt::NothingCompleted)
}

fn never_bounded(sweep: &Sweep) -> Finding {
    let users = sweep.last_users();
    let finding = Finding::new(ResourceKind::None, Confidence::High);
    if sweep.steps().len() < 2 {
        return finding.seeing(Seen::OnlyStep { users });
    }
    if sweep.growth() != Growth::Grows {
        return Finding::new(ResourceKind::Unknown, Confidence::Low)
            .seeing(Seen::TooUneven { users })
            .doubting(Doubt::TooUneven { users });
    }
    finding.seeing(Seen::StillGrew { users }).doubting(Doubt::NeverBounded { users })
}

/// Saturated, and no rule says why.
fn unexplained(sweep: &Sweep) -> Finding {
    let users = sweep.star_users();
    let finding = Finding::new(ResourceKind::Unknown, Confidence::Low);
    if !sweep.observed() {
        return finding.seeing(Seen::NotWatched { users });
    }
    let finding = finding.seeing(Seen::NothingExplains { users, throughput_per_s: sweep.throughput_max() });
    let cores = sweep.unwatched_cores();
    let unwatched = (cores >= UNWATCHED).then_some(Seen::UnwatchedWork { cores });
    let at_the_disk = waiting::alone_at_the_disk(sweep).filter(|_| waiting::nothing_busy(sweep));
    let all = [
        unwatched.map(Evidence::from),
        at_the_disk.map(Evidence::from),
        busiest_of_all(sweep).map(Evidence::from),
        waiting::number_served(sweep).map(Evidence::from),
    ];
    all.into_iter().flatten().fold(finding, Finding::seeing)
}

fn busiest_of_all(sweep: &Sweep) -> Option<Seen> {
    let top = mean_uses(sweep).into_iter().next()?;
    let busy = top.utilisation();
    let aside = if busy < FULL {
        None
    } else if top.resource == Identity::Host {
        Some(Aside::OthersUsedIt { tier_cores: shared::tier_cores(sweep) })
    } else {
        processor::busy_whatever_the_load(sweep, &top.resource).then_some(Aside::WhateverTheLoad)
    };
    Some(Seen::Busiest { resource: top.resource, busy, aside })
}
