//! The maximum throughput, from the steps where throughput no longer grows.
//!
//! The largest of several noisy measurements overstates the maximum. So the steps well past the knee are
//! pooled, chosen by their number of users and not by their throughput; only steps significantly below the
//! highest (a server that slows down under more users) are left out.

use crate::run::Step;
use crate::search::growth::{NEGLIGIBLE, degrees_of_freedom, throughput_error};
use crate::search::peak::{Peak, peak};
use crate::statistics::pooling::{Estimate, Pooled, pooled};
use crate::statistics::t_95;
use crate::thresholds::SATURATED;

/// The pooled maximum.
pub(crate) struct Plateau {
    /// Index of the last pooled step, or of the highest: where the rising part of the curve ends.
    pub(crate) top: usize,
    pub(crate) throughput_per_s: f64,
    error: f64,
    degrees_of_freedom: f64,
    /// By how much the steps disagree more than their intervals allow, as a factor on every step's error.
    scale: f64,
    /// (index of the step, its weight); weights sum to one.
    members: Vec<(usize, f64)>,
}

/// A step this many standard errors below the highest, and by a share that is not negligible, is not on the
/// plateau.
const BELOW: f64 = 2.6;

/// The maximum of `steps`, which ascend by users: the vertex where throughput falls again, else the pooled
/// plateau.
pub(crate) fn plateau(steps: &[&Step]) -> Plateau {
    let Some(highest) = highest(steps) else {
        return Plateau::nothing();
    };
    if falls_after(steps, highest)
        && let Some(peak) = peak(steps, highest)
    {
        return at_the_peak(steps, highest, peak);
    }
    let past = twice_past_the_knee(steps, highest);
    let level = |index: &usize| !below(steps, *index, highest);
    let from =
        |fewest: u32| (0..steps.len()).filter(move |&index| users(steps, index) >= fewest).filter(level);
    let settled: Vec<usize> = from(past).collect();
    if !settled.is_empty() {
        return pool_with_contradictions(steps, settled);
    }
    let near: Vec<usize> = from(past / 2 + 1).collect();
    pool_with_contradictions(steps, if near.is_empty() { vec![highest] } else { near })
}

/// Pools the steps chosen, and earlier ones that are above what those come to by both intervals. The maximum is not
/// below what was measured: such a step, however noisy, widens its interval.
fn pool_with_contradictions(steps: &[&Step], mut chosen: Vec<usize>) -> Plateau {
    let pooled = pool(steps, &chosen);
    let [_, high] = pooled.interval();
    let first = chosen.first().copied().unwrap_or(0);
    let above = |index: &usize| {
        let ci = steps.get(*index).and_then(|step| step.throughput_ci_per_s);
        ci.is_some_and(|[low, _]| low > high * (1.0 + NEGLIGIBLE))
    };
    let contradicting: Vec<usize> = (0..first).filter(above).collect();
    if contradicting.is_empty() {
        return pooled;
    }
    chosen.splice(0..0, contradicting);
    pool(steps, &chosen)
}

/// The last step has clearly less throughput than the highest.
fn falls_after(steps: &[&Step], highest: usize) -> bool {
    steps.len() > highest + 1 && below(steps, steps.len() - 1, highest)
}

fn at_the_peak(steps: &[&Step], highest: usize, peak: Peak) -> Plateau {
    let member = |&(index, _): &(usize, f64)| steps.get(index).map_or(1.0, |step| degrees_of_freedom(step));
    Plateau {
        top: highest,
        throughput_per_s: peak.throughput_per_s,
        error: peak.error,
        degrees_of_freedom: peak.weights.iter().map(member).sum(),
        scale: 1.0,
        members: peak.weights,
    }
}

impl Plateau {
    fn nothing() -> Self {
        Self {
            top: 0,
            throughput_per_s: 0.0,
            error: 0.0,
            degrees_of_freedom: 1.0,
            scale: 1.0,
            members: Vec::new(),
        }
    }

    pub(crate) fn interval(&self) -> [f64; 2] {
        let half_width = t_95(self.degrees_of_freedom) * self.error;
        [(self.throughput_per_s - half_width).max(0.0), self.throughput_per_s + half_width]
    }

    /// How many standard errors the throughput of step `index` lies above `share` of the maximum. A step that
    /// is part of the plateau is correlated with it, which is allowed for.
    pub(crate) fn deviation(&self, index: usize, steps: &[&Step], share: f64) -> f64 {
        let Some(step) = steps.get(index) else { return 0.0 };
        let own = throughput_error(step) * self.scale;
        let weight = self.members.iter().find(|member| member.0 == index).map_or(0.0, |member| member.1);
        let others = (self.error.powi(2) - (weight * own).powi(2)).max(0.0);
        let error = ((own * (1.0 - share * weight)).powi(2) + share.powi(2) * others).sqrt();
        (step.throughput_per_s - share * self.throughput_per_s) / error.max(f64::MIN_POSITIVE)
    }
}

fn users(steps: &[&Step], index: usize) -> u32 {
    steps.get(index).map_or(0, |step| step.users)
}

fn highest(steps: &[&Step]) -> Option<usize> {
    let throughput = |index: &usize| steps.get(*index).map_or(0.0, |step| step.throughput_per_s);
    (0..steps.len()).max_by(|a, b| throughput(a).total_cmp(&throughput(b)))
}

/// Twice the smallest number of users that reaches 95 % of the highest throughput.
fn twice_past_the_knee(steps: &[&Step], highest: usize) -> u32 {
    let level = steps.get(highest).map_or(0.0, |step| SATURATED * step.throughput_per_s);
    let knee = steps.iter().find(|step| step.throughput_per_s >= level).map_or(1, |step| step.users);
    knee.saturating_mul(2)
}

fn below(steps: &[&Step], index: usize, highest: usize) -> bool {
    let (Some(lower), Some(higher)) = (steps.get(index), steps.get(highest)) else { return true };
    let error = throughput_error(lower).hypot(throughput_error(higher));
    let difference = higher.throughput_per_s - lower.throughput_per_s;
    difference > (BELOW * error).max(NEGLIGIBLE * higher.throughput_per_s)
}

/// Pools by measured time, which unlike the estimated variances does not lean towards steps that happen to
/// look quiet.
fn pool(steps: &[&Step], indices: &[usize]) -> Plateau {
    let chosen: Vec<(usize, Estimate)> =
        indices.iter().filter_map(|&index| Some((index, throughput(steps.get(index)?)))).collect();
    let estimates: Vec<Estimate> = chosen.iter().map(|(_, estimate)| *estimate).collect();
    let Some(Pooled { value, error, degrees_of_freedom, scale }) = pooled(&estimates) else {
        return Plateau::nothing();
    };
    let total: f64 = estimates.iter().map(|one| one.weight).sum();
    Plateau {
        top: indices.iter().copied().max().unwrap_or(0),
        throughput_per_s: value,
        error,
        degrees_of_freedom,
        scale,
        members: chosen.iter().map(|(index, one)| (*index, one.weight / total)).collect(),
    }
}

fn throughput(step: &Step) -> Estimate {
    Estimate {
        value: step.throughput_per_s,
        error: throughput_error(step),
        degrees_of_freedom: degrees_of_freedom(step),
        weight: step.measured_us().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Measurement;

    fn step(users: u32, throughput: f64, half_width: f64) -> Step {
        Step {
            users,
            elapsed_s: 2.0,
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput - half_width, throughput + half_width]),
            measurement: Measurement { batches: 20, ..Measurement::default() },
            ..Step::default()
        }
    }

    fn of(steps: &[Step]) -> Plateau {
        plateau(&steps.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_maximum_is_not_below_a_noisy_earlier_step() {
        let steps = [step(1, 95.0, 1.0), step(2, 190.0, 80.0), step(4, 100.0, 1.0), step(8, 101.0, 1.0)];
        let found = of(&steps);
        let [low, high] = found.interval();
        assert!(low < 101.0 && high > 190.0, "{low} to {high}");
    }

    #[test]
    fn noise_that_the_intervals_explain_changes_nothing() {
        let steps = [step(1, 95.0, 1.0), step(2, 140.0, 50.0), step(4, 100.0, 1.0), step(8, 101.0, 1.0)];
        let found = of(&steps);
        assert!((found.throughput_per_s - 100.5).abs() < 1e-9);
    }
}
