//! The maximum throughput, from the steps where throughput no longer grows.
//!
//! The largest of several noisy measurements overstates the maximum. So the steps well past the knee are
//! pooled, chosen by their number of users and not by their throughput; only steps significantly below the
//! highest (a server that slows down under more users) are left out.

use crate::estimate::replicates::usable;
use crate::run::{Replicate, Step};
use crate::search::growth::{NEGLIGIBLE, degrees_of_freedom, throughput_error};
use crate::search::peak::{Peak, peak};
use crate::statistics::pooling::{Between, Estimate, Pooled, effective_degrees_of_freedom, pooled, weights};
use crate::statistics::t_95;
use crate::thresholds::{BELOW, SATURATED};

/// The pooled maximum.
pub(crate) struct Plateau {
    /// Index of the last pooled step, or of the highest: where the rising part of the curve ends.
    pub(crate) top: usize,
    pub(crate) throughput_per_s: f64,
    error: f64,
    degrees_of_freedom: f64,
    /// One request over the time of a measurement: counts are no finer.
    resolution_per_s: f64,
    /// The relative variance between measurements at saturation that their intervals do not explain.
    between: Between,
    /// (index of the step, its weight); weights sum to one.
    members: Vec<(usize, f64)>,
}

/// The maximum of `steps`, which ascend by users: the vertex where throughput falls again, else the pooled
/// plateau.
pub(crate) fn plateau(steps: &[&Step]) -> Plateau {
    let Some(highest) = highest(steps) else {
        return Plateau::nothing();
    };
    let between = replicated(steps, highest);
    let falls = steps.len() > highest + 1 && below(steps, steps.len() - 1, highest, between);
    if falls && let Some(peak) = peak(steps, highest, |step| own_error(step, between)) {
        return at_the_peak(steps, highest, peak, between);
    }
    let past = twice_past_the_knee(steps, highest);
    let level = |index: &usize| !below(steps, *index, highest, between);
    let from =
        |fewest: u32| (0..steps.len()).filter(move |&index| users(steps, index) >= fewest).filter(level);
    let settled: Vec<usize> = from(past).collect();
    if !settled.is_empty() {
        return pool_with_contradictions(steps, settled);
    }
    let near: Vec<usize> = from(past / 2 + 1).collect();
    // The largest of several noisy steps overstates the maximum, so all that are level with it are pooled.
    let level: Vec<usize> = if near.is_empty() { from(past / 2).collect() } else { near };
    pool_with_contradictions(steps, level)
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

/// The vertex as the maximum.
fn at_the_peak(steps: &[&Step], highest: usize, peak: Peak, between: Between) -> Plateau {
    let member = |&(index, _): &(usize, f64)| steps.get(index).map_or(1.0, |step| degrees_of_freedom(step));
    let squares: f64 = peak.weights.iter().map(|(_, weight)| weight * weight).sum();
    let shared = between.scaled(peak.throughput_per_s).variance * squares;
    let own = (peak.error.powi(2) - shared).max(0.0);
    let parts = [(own, peak.weights.iter().map(member).sum()), (shared, between.degrees_of_freedom)];
    Plateau {
        top: highest,
        throughput_per_s: peak.throughput_per_s,
        error: peak.error,
        degrees_of_freedom: effective_degrees_of_freedom(&parts),
        resolution_per_s: 0.0,
        between,
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
            resolution_per_s: 0.0,
            between: Between::default(),
            members: Vec::new(),
        }
    }

    pub(crate) fn interval(&self) -> [f64; 2] {
        let half_width = (t_95(self.degrees_of_freedom) * self.error).max(self.resolution_per_s);
        [(self.throughput_per_s - half_width).max(0.0), self.throughput_per_s + half_width]
    }

    /// How far the throughput of step `index` lies above `share` of the maximum, in half-widths of the 95 % interval of
    /// that difference: beyond 1 or -1 it is significant. A step that is part of the plateau is correlated with it, which
    /// is allowed for.
    pub(crate) fn deviation(&self, index: usize, steps: &[&Step], share: f64) -> f64 {
        let Some(step) = steps.get(index) else { return 0.0 };
        let Some(own) = own(step, self.between) else { return 0.0 };
        let weight = self.members.iter().find(|member| member.0 == index).map_or(0.0, |member| member.1);
        let others = (self.error.powi(2) - (weight * own.error).powi(2)).max(0.0);
        let of_own = (own.error * (1.0 - share * weight)).powi(2);
        let of_others = share.powi(2) * others;
        let df = effective_degrees_of_freedom(&[
            (of_own, own.degrees_of_freedom),
            (of_others, self.degrees_of_freedom),
        ]);
        let half_width = t_95(df) * (of_own + of_others).sqrt();
        (step.throughput_per_s - share * self.throughput_per_s) / half_width.max(f64::MIN_POSITIVE)
    }
}

fn own_error(step: &Step, between: Between) -> f64 {
    own(step, between).map_or(0.0, |own| own.error)
}

/// A step's throughput with the variance between measurements in its error.
fn own(step: &Step, between: Between) -> Option<Pooled> {
    pooled(&measurements(step), between.scaled(step.throughput_per_s))
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

/// Whether a step is below the highest, beyond chance and by a share that is not negligible: it is not on the plateau.
fn below(steps: &[&Step], index: usize, highest: usize, between: Between) -> bool {
    let (Some(lower), Some(higher)) = (steps.get(index), steps.get(highest)) else { return true };
    let error = own_error(lower, between).hypot(own_error(higher, between));
    let difference = higher.throughput_per_s - lower.throughput_per_s;
    difference > (BELOW * error).max(NEGLIGIBLE * higher.throughput_per_s)
}

/// The relative variance between measurements of the same users, from the steps near the highest that were come back to.
fn replicated(steps: &[&Step], highest: usize) -> Between {
    let level = steps.get(highest).map_or(0.0, |step| SATURATED * step.throughput_per_s);
    let near = steps.iter().filter(|step| step.throughput_per_s >= level && step.throughput_per_s > 0.0);
    let groups: Vec<_> = near.map(|step| relative(&measurements(step), step.throughput_per_s)).collect();
    Between::of(&groups)
}

/// Pools every measurement of these steps by random effects. How much measurements differ is taken from all of them, and
/// from the replicates of the steps between N* and them.
fn pool(steps: &[&Step], indices: &[usize]) -> Plateau {
    let members: Vec<(usize, Estimate)> = indices
        .iter()
        .filter_map(|&index| Some((index, *steps.get(index)?)))
        .flat_map(|(index, step)| measurements(step).into_iter().map(move |one| (index, one)))
        .collect();
    let estimates: Vec<Estimate> = members.iter().map(|(_, estimate)| *estimate).collect();
    let Some(level) = pooled(&estimates, Between::default()).filter(|level| level.value > 0.0) else {
        return Plateau::nothing();
    };
    let mut groups = vec![relative(&estimates, level.value)];
    let near = |step: &&&Step| step.throughput_per_s >= SATURATED * level.value;
    let others = steps.iter().enumerate().filter(|(index, _)| !indices.contains(index)).map(|(_, step)| step);
    groups.extend(others.filter(near).map(|step| relative(&measurements(step), step.throughput_per_s)));
    let between = Between::of(&groups);
    let absolute = between.scaled(level.value);
    let Some(found) = pooled(&estimates, absolute) else { return Plateau::nothing() };
    let mut weighted: Vec<(usize, f64)> = Vec::new();
    for ((index, _), weight) in members.iter().zip(weights(&estimates, absolute)) {
        match weighted.iter_mut().find(|member| member.0 == *index) {
            Some(member) => member.1 += weight,
            None => weighted.push((*index, weight)),
        }
    }
    Plateau {
        top: indices.iter().copied().max().unwrap_or(0),
        throughput_per_s: found.value,
        error: found.error,
        degrees_of_freedom: found.degrees_of_freedom,
        resolution_per_s: estimates.len() as f64 / estimates.iter().map(|one| one.weight).sum::<f64>(),
        between,
        members: weighted,
    }
}

/// Every measurement of a step that is part of its figures.
fn measurements(step: &Step) -> Vec<Estimate> {
    if step.replicates.is_empty() {
        let (value, weight) = (step.throughput_per_s, step.measured_us().max(1) as f64 / 1e6);
        let degrees_of_freedom = degrees_of_freedom(step);
        return vec![Estimate { value, error: throughput_error(step), degrees_of_freedom, weight }];
    }
    usable(&step.replicates, |one| one.steady).into_iter().map(estimate).collect()
}

fn estimate(one: &Replicate) -> Estimate {
    let degrees_of_freedom = one.degrees_of_freedom();
    let error = match one.throughput_ci_per_s {
        Some([_, high]) => (high - one.throughput_per_s) / t_95(degrees_of_freedom),
        None => one.throughput_per_s / 2.0,
    };
    Estimate { value: one.throughput_per_s, error, degrees_of_freedom, weight: one.elapsed_s.max(1e-6) }
}

/// The same as shares of `level`.
fn relative(estimates: &[Estimate], level: f64) -> Vec<Estimate> {
    let over = |one: &Estimate| Estimate { value: one.value / level, error: one.error / level, ..*one };
    estimates.iter().map(over).collect()
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
