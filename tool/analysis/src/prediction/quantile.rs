//! Percentiles of response times: the measured ratio to the mean, where the system is as near to its limit.
//!
//! No mean value analysis gives percentiles. Their ratio to the mean was measured at every step, and stands for the changed
//! system where that has the same bottleneck, as many users for those at its knee, and users who think as long and send the same
//! mix of requests: with other think times they come otherwise, and in simulations the ratio was off by half; with another mix
//! other requests make the tail. Beyond the measured steps it stands for nothing.

use super::change::Change;
use super::outlook::Drawn;
use super::solved::Solved;
use super::{Estimate, GoalFigure, Refusal};
use crate::run::{PERCENTILES, Percentile, Run};

/// The ratios of percentiles to the mean by users over those at the knee, N / (X_max (R(1) + Z)).
pub(super) struct Ratios {
    /// Ascending: the load, and the ratio of each percentile.
    steps: Vec<(f64, Vec<Option<f64>>)>,
    /// Whether they stand for the changed system.
    stands: bool,
    /// The percentiles that the run file holds, by name.
    kept: Vec<&'static str>,
}

impl Ratios {
    pub(super) fn of(run: &Run, drawn: &Drawn, changes: &[Change]) -> Self {
        let steps = run.steps.iter().filter(|step| step.steady && step.response_time_us.mean > 0.0);
        let ratios = steps.map(|step| {
            let time = &step.response_time_us;
            let each = PERCENTILES.iter().map(|one| one.read(time).map(|value| value / time.mean));
            (drawn.solved.before.load(step.users), each.collect())
        });
        let mut steps: Vec<(f64, Vec<Option<f64>>)> = ratios.collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first = |limits: Vec<super::model::Limit>| limits.into_iter().next().map(|limit| limit.identity);
        let same_bottleneck = first(drawn.before.limits()) == first(drawn.after.limits());
        let same_think = drawn.before.think_us == drawn.after.think_us;
        let is_kept = |one: &&Percentile| run.steps.iter().any(|step| one.is_kept(&step.response_time_us));
        let kept = PERCENTILES.iter().filter(is_kept).map(|one| one.name).collect();
        let same_mix = !changes.iter().any(Change::is_of_mix);
        Self { steps, stands: same_bottleneck && same_think && same_mix, kept }
    }

    /// A percentile with so many users.
    pub(super) fn percentile(&self, name: &str, users: u32, of: &Solved, mean: Estimate) -> Option<Estimate> {
        let (low, ratio, high) = self.at(name, users, of)?;
        Some(Estimate { value: ratio * mean.value, ci: [low * mean.ci[0], high * mean.ci[1]] })
    }

    /// The ratio of a percentile to the mean, between those of the two nearest steps.
    pub(super) fn at(&self, percentile: &str, users: u32, of: &Solved) -> Option<(f64, f64, f64)> {
        let index = PERCENTILES.iter().position(|one| one.name == percentile)?;
        let load = of.load(users);
        let known: Vec<(f64, f64)> =
            self.steps.iter().filter_map(|(at, ratios)| Some((*at, (*ratios.get(index)?)?))).collect();
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
