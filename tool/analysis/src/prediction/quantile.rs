//! Percentiles of response times: the measured ratio to the mean, where the system is as near to its limit.
//!
//! No mean value analysis gives percentiles. Their ratio to the mean was measured at every step, and stands for the changed
//! system where that has the same bottleneck, as many users for those at its knee, and users who think as long and send the same
//! mix of requests: with other think times they come otherwise, and in simulations the ratio was off by half; with another mix
//! other requests make the tail; and how often a CPU quota stops a request depends on how its periods fall on what it computes.
//! Beyond the measured steps it stands for nothing. Where users think for another time, and nothing else is in the way, the ratio
//! is that of a simulation (`simulation`).

use super::change::Change;
use super::model::Model;
use super::outlook::Drawn;
use super::parts::Parts;
use super::simulation::Queue;
use super::solved::Solved;
use super::{Estimate, GoalFigure, Question, Refusal};
use crate::run::{Identity, PERCENTILES, Percentile, ResourceKind, Run};

/// A ratio to the mean, between the lowest and the highest that it may be.
pub(super) type Ratio = (f64, f64, f64);

/// The ratios of percentiles to the mean by users over those at the knee, N / (X_max (R(1) + Z)).
pub(super) struct Ratios {
    /// Ascending: the load, and the ratio of each percentile.
    steps: Vec<(f64, Vec<Option<f64>>)>,
    /// Whether they stand for the changed system.
    stands: bool,
    /// What stands for it instead.
    queue: Option<Queue>,
    /// What stopped the system in the run.
    bottleneck: Option<Bottleneck>,
    /// The percentiles that the run file holds, by name.
    kept: Vec<&'static str>,
}

/// What stops a system: the kind of its lowest limit, and whose it is.
#[derive(PartialEq)]
struct Bottleneck {
    kind: ResourceKind,
    identity: Option<Identity>,
    /// The throughput that a CPU quota allows, where it is one, requests per second.
    quota_per_s: Option<f64>,
}

impl Bottleneck {
    fn of(model: &Model) -> Option<Self> {
        let first = model.limits_while_queued().into_iter().next()?;
        let is_quota = first.kind == ResourceKind::CpuQuota;
        let quota_per_s = is_quota.then_some(first.per_s);
        Some(Self { kind: first.kind, identity: first.identity, quota_per_s })
    }
}

/// A load that is outside the measured ones by no more than this share of them has the ratio of the nearest: where N* is the
/// first step, both are the same but for rounding.
const NEAR: f64 = 0.05;

impl Ratios {
    pub(super) fn of(run: &Run, question: &Question, drawn: &Drawn, parts: &Parts) -> Self {
        let steps = run.steps.iter().filter(|step| step.steady && step.response_time_us.mean > 0.0);
        let ratios = steps.map(|step| {
            let time = &step.response_time_us;
            let each = PERCENTILES.iter().map(|one| one.read(time).map(|value| value / time.mean));
            (drawn.solved.before.load(step.users), each.collect())
        });
        let mut steps: Vec<(f64, Vec<Option<f64>>)> = ratios.collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (before, after) = (&drawn.before, &drawn.after);
        let bottleneck = Bottleneck::of(before);
        let same_mix = !question.changes.iter().any(Change::is_of_mix);
        let may_stand = same_mix && Bottleneck::of(after) == bottleneck;
        let same_think = before.think_us == after.think_us;
        let is_quota = bottleneck.as_ref().is_some_and(|of| of.quota_per_s.is_some());
        let is_simulated = may_stand && !same_think && !is_quota;
        let is_kept = |one: &&Percentile| run.steps.iter().any(|step| one.is_kept(&step.response_time_us));
        let kept = PERCENTILES.iter().filter(is_kept).map(|one| one.name).collect();
        let queue = if is_simulated { Queue::of(run, drawn, parts, question.seed) } else { None };
        Self { steps, stands: may_stand && same_think, queue, bottleneck, kept }
    }

    /// Whether the ratios stand for this system: it has the bottleneck of the run, and a CPU quota may stop it as often.
    pub(super) fn bear(&self, model: &Model) -> bool {
        Bottleneck::of(model) == self.bottleneck
    }

    /// The 95th and the 99th percentile with so many users.
    pub(super) fn percentiles(&self, users: u32, of: &Solved, mean: Estimate) -> [Option<Estimate>; 2] {
        let ratios = match &self.queue {
            Some(queue) => queue.ratios(users, [0.95, 0.99]),
            None => ["p95", "p99"].map(|name| self.at(name, users, of)),
        };
        let estimate = |(low, ratio, high): Ratio| Estimate {
            value: ratio * mean.value,
            ci: [low * mean.ci[0], high * mean.ci[1]],
        };
        ratios.map(|ratio| ratio.map(estimate))
    }

    /// The ratio of a percentile to the mean, between those of the two nearest steps.
    pub(super) fn at(&self, percentile: &str, users: u32, of: &Solved) -> Option<Ratio> {
        let index = PERCENTILES.iter().position(|one| one.name == percentile)?;
        let known: Vec<(f64, f64)> =
            self.steps.iter().filter_map(|(at, ratios)| Some((*at, (*ratios.get(index)?)?))).collect();
        let (low, high) = (known.first()?.0, known.last()?.0);
        let near = low * (1.0 - NEAR)..=high * (1.0 + NEAR);
        let load = Some(of.load(users)).filter(|load| near.contains(load))?.max(low).min(high);
        let pair = known.windows(2).find(|pair| pair[0].0 <= load && load <= pair[1].0)?;
        let share = (load - pair[0].0) / (pair[1].0 - pair[0].0).max(f64::MIN_POSITIVE);
        let ratio = pair[0].1 + share * (pair[1].1 - pair[0].1);
        self.stands.then(|| (pair[0].1.min(pair[1].1), ratio, pair[0].1.max(pair[1].1)))
    }

    /// Why a figure is not known. Where no ratio would stand, a newer file would not help.
    pub(super) fn refusal(&self, figure: &GoalFigure) -> Refusal {
        match figure {
            GoalFigure::Quantile { percentile }
                if self.stands && !self.kept.contains(&percentile.as_str()) =>
            {
                let kept = self.kept.iter().map(|name| (*name).to_owned()).collect();
                Refusal::QuantileNotKept { percentile: percentile.clone(), kept }
            }
            _ => Refusal::NoQuantile,
        }
    }
}
