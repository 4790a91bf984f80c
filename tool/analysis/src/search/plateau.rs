//! The maximum throughput, from the steps where throughput no longer grows.
//!
//! The largest of several noisy measurements overstates the maximum. So the steps well past the knee are
//! pooled, chosen by their number of users and not by their throughput; only steps significantly below the
//! highest (a server that slows down under more users) are left out.

use crate::estimate::Estimate;
use crate::search::growth::{NEGLIGIBLE, degrees_of_freedom, throughput_error};
use crate::search::peak::{Peak, peak};
use crate::search::saturation::SATURATED;
use crate::statistics::pooling::{Measured, Pooled, pooled};
use crate::statistics::student::t_95;

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

/// The maximum of `points`, which ascend by users: the vertex where throughput falls again, else the pooled
/// plateau.
pub(crate) fn plateau(points: &[(u32, &Estimate)]) -> Plateau {
    let Some(highest) = highest(points) else {
        return Plateau::nothing();
    };
    if falls_after(points, highest)
        && let Some(peak) = peak(points, highest)
    {
        return at_the_peak(points, highest, peak);
    }
    let past = twice_past_the_knee(points, highest);
    let level = |index: &usize| !below(points, *index, highest);
    let from =
        |fewest: u32| (0..points.len()).filter(move |&index| users(points, index) >= fewest).filter(level);
    let settled: Vec<usize> = from(past).collect();
    if !settled.is_empty() {
        return pool_with_contradictions(points, settled);
    }
    let near: Vec<usize> = from(past / 2 + 1).collect();
    pool_with_contradictions(points, if near.is_empty() { vec![highest] } else { near })
}

/// Pools the steps chosen, and earlier ones that are above what those come to by both intervals. The maximum is not
/// below what was measured: such a step, however noisy, widens its interval.
fn pool_with_contradictions(points: &[(u32, &Estimate)], mut chosen: Vec<usize>) -> Plateau {
    let pooled = pool(points, &chosen);
    let [_, high] = pooled.interval();
    let first = chosen.first().copied().unwrap_or(0);
    let above = |index: &usize| {
        let ci = points.get(*index).and_then(|(_, estimate)| estimate.throughput_ci_per_s);
        ci.is_some_and(|[low, _]| low > high * (1.0 + NEGLIGIBLE))
    };
    let contradicting: Vec<usize> = (0..first).filter(above).collect();
    if contradicting.is_empty() {
        return pooled;
    }
    chosen.splice(0..0, contradicting);
    pool(points, &chosen)
}

/// The last step has clearly less throughput than the highest.
fn falls_after(points: &[(u32, &Estimate)], highest: usize) -> bool {
    points.len() > highest + 1 && below(points, points.len() - 1, highest)
}

fn at_the_peak(points: &[(u32, &Estimate)], highest: usize, peak: Peak) -> Plateau {
    let member =
        |&(index, _): &(usize, f64)| points.get(index).map_or(1.0, |point| degrees_of_freedom(point.1));
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
    pub(crate) fn deviation(&self, index: usize, points: &[(u32, &Estimate)], share: f64) -> f64 {
        let Some((_, estimate)) = points.get(index) else { return 0.0 };
        let own = throughput_error(estimate) * self.scale;
        let weight = self.members.iter().find(|member| member.0 == index).map_or(0.0, |member| member.1);
        let others = (self.error.powi(2) - (weight * own).powi(2)).max(0.0);
        let error = ((own * (1.0 - share * weight)).powi(2) + share.powi(2) * others).sqrt();
        (estimate.throughput_per_s - share * self.throughput_per_s) / error.max(f64::MIN_POSITIVE)
    }
}

fn users(points: &[(u32, &Estimate)], index: usize) -> u32 {
    points.get(index).map_or(0, |point| point.0)
}

fn highest(points: &[(u32, &Estimate)]) -> Option<usize> {
    let throughput = |index: &usize| points.get(*index).map_or(0.0, |point| point.1.throughput_per_s);
    (0..points.len()).max_by(|a, b| throughput(a).total_cmp(&throughput(b)))
}

/// Twice the smallest number of users that reaches 95 % of the highest throughput.
fn twice_past_the_knee(points: &[(u32, &Estimate)], highest: usize) -> u32 {
    let level = points.get(highest).map_or(0.0, |point| SATURATED * point.1.throughput_per_s);
    let knee = points.iter().find(|point| point.1.throughput_per_s >= level).map_or(1, |point| point.0);
    knee.saturating_mul(2)
}

fn below(points: &[(u32, &Estimate)], index: usize, highest: usize) -> bool {
    let (Some((_, lower)), Some((_, higher))) = (points.get(index), points.get(highest)) else { return true };
    let error = throughput_error(lower).hypot(throughput_error(higher));
    let difference = higher.throughput_per_s - lower.throughput_per_s;
    difference > (BELOW * error).max(NEGLIGIBLE * higher.throughput_per_s)
}

/// Pools by measured time, which unlike the estimated variances does not lean towards steps that happen to
/// look quiet.
fn pool(points: &[(u32, &Estimate)], indices: &[usize]) -> Plateau {
    let chosen: Vec<(usize, Measured)> =
        indices.iter().filter_map(|&index| Some((index, measured(points.get(index)?.1)))).collect();
    let measurements: Vec<Measured> = chosen.iter().map(|(_, measured)| *measured).collect();
    let Some(Pooled { value, error, degrees_of_freedom, scale }) = pooled(&measurements) else {
        return Plateau::nothing();
    };
    let total: f64 = measurements.iter().map(|one| one.weight).sum();
    Plateau {
        top: indices.iter().copied().max().unwrap_or(0),
        throughput_per_s: value,
        error,
        degrees_of_freedom,
        scale,
        members: chosen.iter().map(|(index, one)| (*index, one.weight / total)).collect(),
    }
}

fn measured(estimate: &Estimate) -> Measured {
    Measured {
        value: estimate.throughput_per_s,
        error: throughput_error(estimate),
        degrees_of_freedom: degrees_of_freedom(estimate),
        weight: estimate.measured_us.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(throughput: f64, half_width: f64) -> Estimate {
        Estimate {
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput - half_width, throughput + half_width]),
            measured_us: 2_000_000,
            batches: 20,
            ..Estimate::default()
        }
    }

    fn of(steps: &[(u32, Estimate)]) -> Plateau {
        plateau(&steps.iter().map(|(users, estimate)| (*users, estimate)).collect::<Vec<_>>())
    }

    #[test]
    fn the_maximum_is_not_below_a_noisy_earlier_step() {
        let steps =
            [(1, step(95.0, 1.0)), (2, step(190.0, 80.0)), (4, step(100.0, 1.0)), (8, step(101.0, 1.0))];
        let found = of(&steps);
        let [low, high] = found.interval();
        assert!(low < 101.0 && high > 190.0, "{low} to {high}");
    }

    #[test]
    fn noise_that_the_intervals_explain_changes_nothing() {
        let steps =
            [(1, step(95.0, 1.0)), (2, step(140.0, 50.0)), (4, step(100.0, 1.0)), (8, step(101.0, 1.0))];
        let found = of(&steps);
        assert!((found.throughput_per_s - 100.5).abs() < 1e-9);
    }
}
