//! Which resource stops the server at N*, from evidence.
//!
//! A wrong verdict is worse than none, so each rule needs direct evidence, and what no rule explains
//! is [`ResourceKind::Unknown`]. The order: the generator first (it must never pass for the server),
//! then resources that are busy, then waiting while all of them are idle. What is busy is judged on
//! the plateau (N* and the steps beyond it that hold its throughput), must have been less busy where
//! the throughput was lower, and its rivals lower the confidence. Failed requests and strangers on the
//! processors qualify whatever was found.

mod database_locks;
mod disk;
mod errors;
mod finding;
mod generator;
mod interference;
mod io_limit;
mod network;
mod next;
mod processor;
mod quota;
mod shared;
mod sweep;
mod threads;
mod tiers;
mod utilisation;
mod waiting;

pub use database_locks::WatchedDatabase;
pub(crate) use database_locks::resource as locks_resource;
pub(crate) use errors::described as described_errors;
pub use finding::Finding;
pub use next::next;
pub use shared::{Shares, sharing};
pub use sweep::{Point, Shape, Sweep};
pub use utilisation::{Id, Use};

use crate::run::{Confidence, ResourceKind};
use crate::search::growth::Growth;
use crate::words::{cores, count, percent, users};

/// Busy at least this share on the plateau is full. The plateau begins where 95 % of the maximum
/// throughput is reached, and there a queueing resource is 95 % busy by the utilisation law (U = X D);
/// five points are left for looks that do not line up with the step.
pub const FULL: f64 = 0.90;

/// Rivals closer than this cannot be told apart with confidence: clock-tick accounting of CPU time is
/// good to one or two per cent, and the plateau itself spans five.
pub const NEAR: f64 = 0.07;

/// Less busy than this, nothing was in the way: queueing at 80 % busy may double a response time, but
/// it does not stop throughput from growing.
pub const NOT_BUSY: f64 = 0.80;

/// Cores of work that follows the load and that nobody watched: with this much of it, what is idle among
/// the watched proves nothing.
pub const UNWATCHED: f64 = 0.15;

/// Share of its threads' time the generator was runnable but waited for a processor, at one step.
pub fn generator_waited(sweep: &Sweep, point: &Point) -> f64 {
    generator::starved(sweep, point)
}

/// Names what stops the server.
pub fn judge(sweep: &Sweep) -> Finding {
    let found = if sweep.completed() == 0 {
        nothing_completed()
    } else if !sweep.bounded() {
        generator::limited(sweep, 0.0).unwrap_or_else(|| never_bounded(sweep))
    } else {
        tiers::with_demands(sweep, threads::with_names(sweep, bounded(sweep)))
    };
    let ranked = with_rivals(sweep, found);
    errors::qualify(sweep, interference::qualify(sweep, ranked))
}

/// The same for one load, which does not ask what stops the server: only whether the generator could make it, and
/// whether requests failed.
pub fn judge_load(sweep: &Sweep) -> Finding {
    let found = if sweep.completed() == 0 {
        nothing_completed()
    } else {
        generator::limited(sweep, 0.0).unwrap_or_else(|| Finding::new(ResourceKind::None, Confidence::High))
    };
    errors::qualify(sweep, found)
}

/// Throughput was seen to stop growing: the rules in their order.
fn bounded(sweep: &Sweep) -> Finding {
    let busiest = busiest(sweep);
    let busy = busiest.as_ref().and_then(|finding| finding.utilization).unwrap_or(0.0);
    if let Some(finding) = generator::limited(sweep, busy) {
        return finding;
    }
    if let Some(finding) = waiting::descriptors(sweep).or_else(|| waiting::memory(sweep)) {
        return finding;
    }
    let found = match (busiest, database_locks::full(sweep)) {
        (Some(full), Some(locks)) => return database_locks::beside(full, &locks),
        (None, Some(locks)) => return locks,
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

/// Adds the runner-up, and lowers the confidence where it is close.
fn with_rivals(sweep: &Sweep, mut finding: Finding) -> Finding {
    let rival = sweep
        .mean_uses()
        .into_iter()
        .filter(|rival| !finding.includes(&rival.id))
        .max_by(|a, b| a.utilisation().total_cmp(&b.utilisation()));
    let Some(rival) = rival else { return finding };
    let near = finding.utilization.is_some_and(|busy| rival.utilisation() > busy - NEAR);
    let close = (near && rival.utilisation() >= NOT_BUSY) || rival.utilisation() >= FULL;
    if close && finding.utilization.is_some() && finding.confidence == Confidence::High {
        finding.confidence = Confidence::Medium;
        finding.evidence.push(format!(
            "{} was close behind at {}, so the two are hard to tell apart.",
            sweep.name(&rival.id),
            percent(rival.utilisation())
        ));
    }
    finding.runner_up = Some(sweep.resource(&rival));
    finding
}

fn nothing_completed() -> Finding {
    Finding::new(ResourceKind::Unknown, Confidence::Low)
        .saying("No request completed, so there is no throughput to explain.".to_owned())
        .doubting("No request completed.".to_owned())
}

fn never_bounded(sweep: &Sweep) -> Finding {
    let most = sweep.last_users();
    let last = users(most);
    let finding = Finding::new(ResourceKind::None, Confidence::High);
    if sweep.points().len() < 2 {
        return finding.saying(format!(
            "Only {last} {} tried, which does not show where throughput stops growing.",
            if most == 1 { "was" } else { "were" }
        ));
    }
    if sweep.growth() != Growth::Grows {
        return uneven(&last);
    }
    finding
        .saying(format!(
            "Throughput still grew at {last}, the most that were tried, so nothing stopped the server yet."
        ))
        .doubting(format!(
            "Throughput never stopped growing: N* is above {last}. Sweep further, for example with --users 1..{}.",
            most.saturating_mul(4)
        ))
}

/// Neither growth nor its end is beyond doubt.
fn uneven(last: &str) -> Finding {
    Finding::new(ResourceKind::Unknown, Confidence::Low)
        .saying(format!(
            "The steps up to {last} are too uneven to show whether throughput stopped growing."
        ))
        .doubting(format!(
            "Throughput varied too much from step to step, up to {last}, to say where it stops growing: allow \
             longer steps (--duration), and look for what else uses the machine."
        ))
}

/// Saturated, and no rule says why.
fn unexplained(sweep: &Sweep) -> Finding {
    let finding = Finding::new(ResourceKind::Unknown, Confidence::Low);
    if !sweep.observed() {
        return finding.saying(format!(
            "Throughput stopped growing at N* = {}, but the server's processes could not be watched, \
             so no resource can be named.",
            users(sweep.star_users())
        ));
    }
    let finding = finding.saying(format!(
        "Throughput stopped growing at N* = {} and {} req/s, and nothing that was watched explains it.",
        users(sweep.star_users()),
        count(sweep.throughput_max())
    ));
    let at_the_disk = waiting::alone_at_the_disk(sweep).filter(|_| waiting::nothing_busy(sweep));
    [unwatched_work(sweep), at_the_disk, busiest_of_all(sweep), waiting::number_served(sweep)]
        .into_iter()
        .flatten()
        .fold(finding, Finding::saying)
}

fn unwatched_work(sweep: &Sweep) -> Option<String> {
    let cores = sweep.unwatched_cores();
    (cores >= UNWATCHED).then(|| {
        format!("Processes that were not watched, or interrupts, used {cores:.2} cores more than under a light load.")
    })
}

fn busiest_of_all(sweep: &Sweep) -> Option<String> {
    let top = sweep.mean_uses().into_iter().next()?;
    let busiest = format!("{} was the busiest, at {}", sweep.name(&top.id), percent(top.utilisation()));
    Some(if top.id == Id::Host && top.utilisation() >= FULL {
        format!(
            "{busiest}, but the server and its tiers used only {} cores of it: measure again while this host \
             does nothing else.",
            cores(shared::tier_cores(sweep))
        )
    } else if top.utilisation() >= FULL && processor::busy_whatever_the_load(sweep, &top.id) {
        format!(
            "{busiest}, but it was so whatever the load, as a loop that polls is, so that proves nothing."
        )
    } else {
        format!("{busiest}.")
    })
}
