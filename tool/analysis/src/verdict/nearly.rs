//! Processors that are nearly full where nothing else explains why throughput stopped growing.
//!
//! Schedulers of programs leave processors idle for moments although somebody wants them, so that they never count as full.
//! How busy they are is then weighed together with what a request does: one that computes for all of the time that it takes
//! alone waits for nothing which could be what stops the others.

use super::curve::{Curve, group};
use super::finding::{EITHER, Finding, INDIRECT};
use super::processor::{COMPUTE, cores_busy, follows_load, own_resources};
use super::{quota, waiting};
use crate::resources::Group;
use crate::run::{Identity, Probability, Processes, ResourceKind};
use crate::thresholds::FULL;

/// Processes that use less than this share of their processors leave more of them idle than a scheduler explains.
const NEARLY: f64 = 0.75;

/// Processors that stop everything else are idle for this share of the time on average. The share is taken to be exponential.
const LEFT_IDLE: f64 = 0.05;

/// How many times more often requests that only compute are stopped by processors than by what is not watched, before it is known
/// how busy those are.
const PRIOR_ODDS: f64 = 8.0;

/// About a whole number of requests at a time, within this share of it: as many may be all that are let through.
const WHOLE: f64 = 0.04;

/// The finding, if a tier's processors are nearly full and its requests do nothing but compute.
pub(super) fn full(curve: &Curve) -> Option<Finding> {
    let of = waiting::served_by(curve)?;
    let at_a_time = waiting::at_a_time_there(curve)?;
    let peak = curve.group(&of)?;
    let [share, cores] = [Group::busy, |group: &Group| group.cores].map(|read| curve.group_mean(&of, read));
    let is_nearly = (NEARLY..FULL).contains(&share) && follows_load(curve, &of);
    let computes = cores.min(cores_of_one(curve, &of)?) >= COMPUTE * at_a_time;
    let is_quota_fuller = || quota::spent(curve, &of).is_some_and(|spent| spent > share);
    if !is_nearly || !computes || is_quota_fuller() || waiting::queue_at_locks(curve, &of) {
        return None;
    }
    let found = if [at_a_time, cores].iter().any(|number| is_let_through(*number, peak.allowed_count())) {
        either(&of)
    } else {
        Finding::new(ResourceKind::Cpu, probability(share))
    };
    let found = found
        .held_by(Identity::Processes(of.clone()))
        .about(own_resources(&of))
        .busy(share)
        .seeing(cores_busy(curve, &of));
    Some(waiting::by_little(curve, at_a_time).into_iter().fold(found, Finding::seeing))
}

/// How many processors the maximum throughput would keep busy if requests computed for as long as with one user. Beside others
/// they compute for longer, because threads share caches and cores: that does not tell how much of their time it is.
fn cores_of_one(curve: &Curve, of: &Processes) -> Option<f64> {
    let alone = curve.alone().filter(|step| step.throughput_per_s > 0.0)?;
    Some(group(alone, of)?.cores / alone.throughput_per_s * curve.maximum().0)
}

/// How probable it is that processors stop requests that only compute, if they are busy for this share of the time: how dense that
/// share is where they do, beside all shares alike where they do not.
fn probability(share: f64) -> Probability {
    let density = ((share - 1.0) / LEFT_IDLE).exp() / LEFT_IDLE;
    let odds = PRIOR_ODDS * density;
    Probability::new((odds / (1.0 + odds)).min(INDIRECT.share()))
}

/// Whether a number of requests that are served at a time, or of busy processors, is about a whole one and less than there are
/// processors. Beside others requests take longer, so that there are more workers than the response time of one user tells.
fn is_let_through(number: f64, processors: usize) -> bool {
    let whole = number.round();
    whole < processors as f64 && (number - whole).abs() <= WHOLE * whole
}

/// Processors, or as many workers: a runtime may give itself fewer than there are processors.
fn either(of: &Processes) -> Finding {
    let [of_cpu, of_workers] = EITHER;
    let workers = Finding::new(ResourceKind::WorkerPool, INDIRECT).held_by(Identity::Processes(of.clone()));
    Finding::new(ResourceKind::Cpu, Probability::new(of_cpu)).or(workers.explanation(of_workers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_the_more_probable() {
        let shares = [0.76, 0.80, 0.83].map(|share| probability(share).share());
        assert!(shares[0] > 0.5 && shares.is_sorted(), "{shares:?}");
        assert_eq!(probability(0.89), INDIRECT, "however busy, it was not counted as full");
    }

    #[test]
    fn a_whole_number_below_that_of_processors_may_be_of_workers() {
        assert!(is_let_through(7.1, 8));
        assert!(!is_let_through(1.78, 2), "the processors of a small host");
        assert!(!is_let_through(6.5, 8));
        assert!(!is_let_through(8.0, 8), "all of them");
    }
}
