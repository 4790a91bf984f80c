//! Work of others on the processors that server or generator need: it stops throughput early.
//!
//! What others use in proportion to the throughput (interrupts, children too short-lived to be seen) belongs to the
//! load. The rest is strangers': what they used beyond the least per request of any step, or what would be left of it
//! at no throughput at all.

use super::finding::Finding;
use super::generator::{MORE_PROCESSORS, starved};
use super::shared::{busiest_tier, shares_beside};
use super::sweep::{GroupId, Point, Sweep, group, set_busy};
use super::utilisation::Id;
use super::waiting::hardly_starved;
use crate::resources::Group;
use crate::run::ResourceKind;
use crate::words::{core_noun, cores};

/// Strangers that take this share of the processors lower the maximum throughput by as much.
const DISTURBING: f64 = 0.10;

/// Processors less busy than this had room for everybody.
const CROWDED: f64 = 0.93;

/// What one step says about the others on a set of processors.
struct Seen {
    users: u32,
    throughput_per_s: f64,
    others: f64,
    available: f64,
    crowded: bool,
}

/// Doubts whatever was found where strangers took part of the processors at N* and beyond.
pub(super) fn qualify(sweep: &Sweep, mut finding: Finding) -> Finding {
    if finding.holder == OTHERS || sweep.completed() == 0 || waits_for_no_processor(sweep, &finding) {
        return finding;
    }
    let tier = busiest_tier(sweep);
    let of_tier = taken(sweep, "server", |point| tier.as_ref().and_then(|id: &GroupId| group(point, id)));
    let waits = sweep.mean(|point| Some(starved(sweep, point))).is_some_and(|share| share >= DISTURBING);
    let of_generator =
        waits.then(|| taken(sweep, "load generator", |point| point.resources.generator())).flatten();
    if finding.kind == ResourceKind::Generator && of_generator.as_ref().is_some_and(Taken::disturbs) {
        // It has processors enough: others are on them.
        finding.inconclusive.retain(|doubt| doubt != MORE_PROCESSORS);
    }
    let worst = [of_tier, of_generator].into_iter().flatten().max_by(|a, b| a.share().total_cmp(&b.share()));
    let Some(taken) = worst.filter(Taken::disturbs) else { return finding };
    // First: it explains the other doubts, a generator kept waiting among them.
    finding.inconclusive.insert(0, taken.doubt());
    finding
}

/// Whether what was found is a wait for something else than a processor, for which strangers cannot be the cause. A
/// limit that is used whole lets no more through, whoever has the processors.
fn waits_for_no_processor(sweep: &Sweep, finding: &Finding) -> bool {
    use ResourceKind::{AcceptQueue, Lock, WorkerPool};
    if finding.about.iter().any(|id| matches!(id, Id::IoLimit(..))) {
        return true;
    }
    matches!(finding.kind, AcceptQueue | Lock | WorkerPool) && hardly_starved(sweep)
}

/// Who holds processors that are full of strangers' work.
pub(super) const OTHERS: &str = "other processes";

/// Cores that strangers took, of those there were, on average over N* and the steps beyond.
struct Taken {
    of: &'static str,
    cores: f64,
    available: f64,
}

impl Taken {
    fn share(&self) -> f64 {
        self.cores / self.available
    }

    fn disturbs(&self) -> bool {
        self.share() >= DISTURBING
    }

    fn doubt(&self) -> String {
        format!(
            "Processes that are not part of the test took {} of the {} {} that the {} may use: stop them and measure again.",
            cores(self.cores),
            cores(self.available),
            core_noun(self.available),
            self.of
        )
    }
}

fn taken<'a>(
    sweep: &'a Sweep,
    who: &'static str,
    of: impl Fn(&'a Point) -> Option<&'a Group>,
) -> Option<Taken> {
    let steps: Vec<Seen> = sweep.points().iter().filter_map(|point| seen(point, of(point)?)).collect();
    let beyond: Vec<&Seen> = steps.iter().filter(|step| step.users >= sweep.star_users()).collect();
    if beyond.is_empty() {
        return None;
    }
    let crowded = beyond.iter().filter(|step| step.crowded);
    let mean = |sum: f64| sum / beyond.len() as f64;
    Some(Taken {
        of: who,
        cores: mean(crowded.map(|step| strangers(step, &steps)).sum()),
        available: mean(beyond.iter().map(|step| step.available).sum()),
    })
}

fn seen(point: &Point, group: &Group) -> Option<Seen> {
    let shares = shares_beside(point, group)?;
    let usable = point.throughput_per_s > 0.0 && shares.available > 0.0 && shares.others.is_finite();
    usable.then(|| Seen {
        users: point.users,
        throughput_per_s: point.throughput_per_s,
        others: shares.others,
        available: shares.available,
        crowded: set_busy(point, group).is_some_and(|busy| busy >= CROWDED),
    })
}

/// Cores that strangers used at one step.
fn strangers(step: &Seen, steps: &[Seen]) -> f64 {
    let came = |other: &Seen| step.others - other.others / other.throughput_per_s * step.throughput_per_s;
    let stayed = |other: &Seen| {
        let slower = other.throughput_per_s <= SLOWER * step.throughput_per_s;
        let rise = step.throughput_per_s - other.throughput_per_s;
        slower.then(|| (other.others * step.throughput_per_s - step.others * other.throughput_per_s) / rise)
    };
    let came = steps.iter().map(came).fold(0.0, f64::max);
    let stayed = steps.iter().filter_map(stayed).fold(f64::INFINITY, f64::min);
    came.max(if stayed.is_finite() { stayed } else { 0.0 }).clamp(0.0, step.others)
}

/// Only steps of clearly less throughput tell what others would use at none.
const SLOWER: f64 = 0.70;
