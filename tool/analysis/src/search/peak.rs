//! The maximum of a throughput curve that rises and falls again, between the measured steps.
//!
//! A parabola in the logarithm of users through the steps near the highest. Its value at the vertex is a
//! weighted sum of the measured throughputs, and the place of the vertex does not add to its error in first
//! order.

use crate::run::Step;
use crate::statistics::regression::{Matrix, dot, inverted, times};

/// A real curve is not a parabola: the vertex is off by about this share of the height that the steps near it
/// span.
const MISSHAPEN: f64 = 0.015;

/// The vertex.
pub(crate) struct Peak {
    pub(crate) throughput_per_s: f64,
    /// Standard error, lack of fit allowed for.
    pub(crate) error: f64,
    /// (index of the step, its weight in the vertex); weights sum to one.
    pub(crate) weights: Vec<(usize, f64)>,
}

/// Steps with at least this share of the highest throughput are near the peak.
const NEAR_PEAK: f64 = 0.9;

/// A parabola through three points fits always; the fourth can object.
const FEWEST: usize = 4;

/// The peak near the step `highest` of `steps` (ascending by users), whose throughputs have the standard errors `error`;
/// `None` where the steps do not show one with steps on either side.
pub(crate) fn peak(steps: &[&Step], highest: usize, error: impl Fn(&Step) -> f64) -> Option<Peak> {
    let rows = rows(steps, highest, error)?;
    let inverse = inverted(normal(&rows))?;
    let right =
        [0, 1, 2].map(|term: usize| rows.iter().map(|row| row.weight * row.terms()[term] * row.value).sum());
    let [_, linear, quadratic] = times(&inverse, right);
    let vertex = -linear / (2.0 * quadratic);
    let inside =
        rows.first().is_some_and(|row| row.at < vertex) && rows.last().is_some_and(|row| vertex < row.at);
    let certain = quadratic < -2.0 * inverse[2][2].max(0.0).sqrt();
    (inside && certain)
        .then(|| at(&rows, &inverse, [1.0, vertex, vertex * vertex], steps.get(highest)?.throughput_per_s))
        .flatten()
}

/// One step: logarithm of users, throughput and inverse variance, all relative to the highest step.
struct Row {
    index: usize,
    at: f64,
    value: f64,
    weight: f64,
}

impl Row {
    fn terms(&self) -> [f64; 3] {
        [1.0, self.at, self.at * self.at]
    }
}

fn rows(steps: &[&Step], highest: usize, error: impl Fn(&Step) -> f64) -> Option<Vec<Row>> {
    let top = steps.get(highest)?;
    let near = |index: &usize| {
        steps.get(*index).is_some_and(|step| step.throughput_per_s >= NEAR_PEAK * top.throughput_per_s)
    };
    let first = (0..highest).rev().take_while(near).last()?;
    let last = (highest + 1..steps.len()).take_while(near).last()?;
    let row = |index: usize| {
        let step = steps.get(index)?;
        let error = (error(step) / top.throughput_per_s).max(1e-6);
        Some(Row {
            index,
            at: (f64::from(step.users) / f64::from(top.users)).ln(),
            value: step.throughput_per_s / top.throughput_per_s,
            weight: error.powi(-2),
        })
    };
    let rows: Vec<Row> = (first..=last).filter_map(row).collect();
    (rows.len() >= FEWEST && top.throughput_per_s > 0.0).then_some(rows)
}

fn normal(rows: &[Row]) -> Matrix {
    [0, 1, 2].map(|a: usize| {
        [0, 1, 2].map(|b: usize| rows.iter().map(|row| row.weight * row.terms()[a] * row.terms()[b]).sum())
    })
}

/// The fitted value where the terms are `vertex`; `scale` is the throughput that the rows are relative to.
fn at(rows: &[Row], inverse: &Matrix, vertex: [f64; 3], scale: f64) -> Option<Peak> {
    let direction = times(inverse, vertex);
    let weights: Vec<(usize, f64)> =
        rows.iter().map(|row| (row.index, row.weight * dot(direction, row.terms()))).collect();
    let right =
        [0, 1, 2].map(|term: usize| rows.iter().map(|row| row.weight * row.terms()[term] * row.value).sum());
    let fitted = times(inverse, right);
    let misfit: f64 =
        rows.iter().map(|row| row.weight * (row.value - dot(fitted, row.terms())).powi(2)).sum();
    let inflation = (misfit / (rows.len() as f64 - 3.0)).max(1.0);
    let value = dot(fitted, vertex);
    let depth = value - rows.iter().map(|row| row.value).fold(value, f64::min);
    let error = (dot(direction, vertex).max(0.0) * inflation).sqrt().hypot(MISSHAPEN * depth);
    let peak = Peak { throughput_per_s: value * scale, error: error * scale, weights };
    value.is_finite().then_some(peak)
}
