//! A bottleneck that takes longer for each request the more of them wait there, so that throughput falls beyond N*: a lock that
//! is handed over more slowly, threads that disturb each other, a cache that overflows.
//!
//! With enough users the bottleneck is never idle, and throughput is the rate at which it serves. How many are there follows
//! from Little's law, as the others think or are elsewhere. So every step beyond the one with the most throughput shows one rate
//! of a load-dependent station (Chandy, Herzog and Woo, IBM J. Res. Dev. 19(1), 1975; Lazowska, Zahorjan, Graham and Sevcik,
//! *Quantitative System Performance*, 1984, chapter 8), and 1 / X is linear in the waiting to a power. Growth with the first
//! power is what the coherency term of the universal scalability law stands for (Gunther, CMG 1993).
//!
//! The power may be 0: the bottleneck is slower by a share as soon as requests wait for it, however many. So are processors that
//! a scheduler leaves idle for moments although somebody wants them. Their capacity is what they achieved while users queued, the
//! weighted mean of the steps beyond that with the most throughput.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{Model, Slow};
use super::parts::{Parts, Point};
use super::solved::{irregularity, misses};
use crate::thresholds::{BELOW, PLATEAU, SATURATED};

/// How much longer a request takes at the bottleneck where some wait: `1 + growth (waiting - onset)^power` times; with a power
/// of 0, `1 + growth` times as soon as one waits beyond the onset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// So many requests may wait before it slows down.
    pub onset: f64,
    /// What the first one beyond adds, as a share of the time while nobody waits.
    pub growth: f64,
    /// Below 1 further ones add less than the first, above 1 more; where it is 0 they add nothing.
    pub power: f64,
}

impl Slowdown {
    /// How many wait where a request takes twice as long; `None` where further ones add nothing.
    #[must_use]
    pub fn waiting_for_double(self) -> Option<f64> {
        (self.power > 0.0).then(|| self.onset + self.growth.powf(-self.power.recip()))
    }

    /// How much longer a request takes while so many wait, 1 or more.
    pub(super) fn factor(self, waiting: f64) -> f64 {
        1.0 + self.growth * beyond(waiting - self.onset, self.power)
    }

    /// How much longer it takes with any number of them; `None` where there is no end to it.
    pub(super) fn factor_max(self) -> Option<f64> {
        (self.power <= 0.0).then_some(1.0 + self.growth)
    }

    /// The same where the waiting are shared by so many times as many servers.
    pub(super) fn shared(self, times: f64) -> Self {
        Self { onset: self.onset * times, growth: self.growth / times.powf(self.power), ..self }
    }
}

/// So many that wait beyond the onset, to a power. The first one is all that counts where further ones add nothing: a part of
/// one, as where servers are no whole number, is a part of it.
fn beyond(waiting: f64, power: f64) -> f64 {
    let waiting = waiting.max(0.0);
    if power > 0.0 { waiting.powf(power) } else { waiting.min(1.0) }
}

/// A slowdown at a station of so many servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slowed {
    pub(super) by: Slowdown,
    pub(super) servers: f64,
}

impl Slowed {
    /// How much longer a request takes while so many are there, those in service included.
    pub(super) fn factor(self, present: f64) -> f64 {
        self.by.factor(present - self.servers)
    }
}

/// What of a slowdown is chosen once, and not drawn: its form, and the steps that it is fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// The first step beyond that with the most throughput, as an index.
    from: usize,
    onset: f64,
    power: f64,
}

/// Throughput of the last step below this share of the maximum has fallen.
const FELL: f64 = PLATEAU;

/// The powers that are tried where throughput fell far.
const POWERS: &[f64] = &[0.0, 0.5, 1.0, 2.0];

/// The one where it fell little: of a tenth the steps hardly tell whether it goes on.
const LEVEL: &[f64] = &[0.0];

/// No more onsets than this are tried.
const ONSETS_MAX: usize = 8;

/// While nobody waits, the bottleneck serves no faster than this many times the most that was measured.
const LIMIT_TIMES_MAX: f64 = 2.0;

/// How often the time elsewhere, and what follows from it, are computed from each other.
const PASSES: usize = 3;

/// Users of the last step, and its throughput as a share of the maximum, where that has fallen: far, or beyond chance below the
/// share that counts as saturated.
pub(super) fn fell(parts: &Parts) -> Option<(u32, f64)> {
    let last = parts.points.last()?;
    let share = last.throughput_per_s.value / parts.throughput_max_per_s.value;
    let has_fallen = share < FELL || (share < SATURATED && is_below(parts));
    has_fallen.then_some((last.users, share))
}

/// The step with the most throughput, as an index.
fn most(parts: &Parts) -> Option<usize> {
    let rates = parts.points.iter().map(|point| point.throughput_per_s.value).enumerate();
    rates.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(most, _)| most)
}

/// Whether the last step, or all beyond that with the most throughput together, are below the maximum beyond chance.
fn is_below(parts: &Parts) -> bool {
    let beyond = most(parts).and_then(|most| parts.points.get(most.saturating_add(1)..)).unwrap_or_default();
    let max = parts.throughput_max_per_s;
    let is_clear = |points: &[Point]| {
        let weighted = points.iter().map(|point| {
            let weight = point.throughput_per_s.variance().recip();
            (weight, weight * point.throughput_per_s.value / max.value)
        });
        let (weight, sum) = weighted.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let error = (weight.recip() + max.variance()).sqrt();
        1.0 - sum / weight > BELOW * error
    };
    let last = beyond.len().saturating_sub(1);
    is_clear(beyond) || beyond.get(last..).is_some_and(is_clear)
}

/// The form with which the model is nearest to the steps; `None` where throughput did not fall beyond chance, or none is nearer
/// than no slowdown.
pub(super) fn shape(parts: &Parts) -> Option<Shape> {
    let (_, share) = fell(parts).filter(|_| is_below(parts))?;
    let powers = if share < FELL { POWERS } else { LEVEL };
    let most = most(parts)?;
    let plain = Model::of(parts);
    let waiting = waiting(&plain, parts, parts.points.get(most..)?)?;
    let every = waiting.len().div_ceil(ONSETS_MAX).max(1);
    let (_, but_last) = waiting.split_last()?;
    let onsets = std::iter::once(0.0).chain(but_last.iter().copied().step_by(every));
    let from = most.saturating_add(1);
    let shapes = onsets.flat_map(|onset| powers.iter().map(move |&power| Shape { from, onset, power }));
    let missed = shapes.filter_map(|shape| Some((missed_by(slowing(parts, shape)?, parts), shape)));
    let known = missed.filter(|(missed, _)| missed.is_finite());
    let (nearest, shape) = known.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (nearest < missed_by(plain, parts)).then_some(shape)
}

/// The model of these parts, calibrated; with a bottleneck that slows down where it has a shape that they bear.
pub(super) fn model(parts: &Parts, shape: Option<Shape>) -> Model {
    shape.and_then(|shape| slowing(parts, shape)).unwrap_or_else(|| Model::of(parts))
}

/// How far a model is from the steps, with the irregularity that fits best.
fn missed_by(model: Model, parts: &Parts) -> f64 {
    let irregularity = irregularity(&model, parts).mean();
    misses(&Model { irregularity, ..model }, parts)
}

fn slowing(parts: &Parts, shape: Shape) -> Option<Model> {
    let full = parts.points.get(shape.from..)?;
    let mut unslowed = parts.clone();
    let mut model = Model::of(parts);
    let max = parts.throughput_max_per_s.value;
    let at = model.bottleneck(parts)?;
    // More than the others allow was not measured of any part, and would be taken for theirs as well.
    let most_per_s = (LIMIT_TIMES_MAX * max).min(model.others_allow_per_s(at)).max(max);
    // What is slower as soon as one waits does not show how fast it would be else: no less than it is given.
    let given_per_s = model.given_per_s(at).filter(|_| shape.power <= 0.0);
    let unseen_per_s = given_per_s.unwrap_or(max).min(most_per_s).max(max);
    let mut by = Slowdown::default();
    for _ in 0..PASSES {
        let waiting = waiting(&model, parts, full)?;
        let (limit_per_s, fitted) = fitted([max, most_per_s, unseen_per_s], full, &waiting, shape)?;
        unslowed.throughput_max_per_s.value = limit_per_s;
        model = Model::of(&unslowed);
        by = fitted;
    }
    model.slow = Some(Slow { at, by });
    Some(model)
}

/// How many wait for the bottleneck at each of the steps: those who neither think, nor are elsewhere, nor are served.
fn waiting(model: &Model, parts: &Parts, points: &[Point]) -> Option<Vec<f64>> {
    let at = model.bottleneck(parts)?;
    let (_, held_us) = model.limit_at(at)?;
    let elsewhere_s = (model.think_us + (model.solved().alone_us - held_us).max(0.0)) / 1e6;
    let servers = model.servers_at(at).max(1.0);
    let of = |point: &Point| {
        (f64::from(point.users) - point.throughput_per_s.value * elsewhere_s - servers).max(0.0)
    };
    Some(points.iter().map(of).collect())
}

/// A step beyond the most throughput: the waiting to the power, the seconds per request, and what it counts for.
struct Row {
    x: f64,
    y: f64,
    weight: f64,
}

impl Row {
    fn of(point: &Point, waiting: f64, shape: Shape) -> Self {
        let y = point.throughput_per_s.value.recip();
        let x = beyond(waiting - shape.onset, shape.power);
        Self {
            // Either somebody waits or nobody does: what lies between tells nothing of both ends.
            x: if shape.power > 0.0 { x } else { x.round() },
            y,
            weight: point.throughput_per_s.variance().recip() / (y * y),
        }
    }
}

/// The throughput of the bottleneck while nobody waits, within bounds, and its slowdown: weighted least squares of 1 / X. The
/// third bound is that throughput where the steps do not tell it. `None` where they show no fall.
fn fitted(
    [least_per_s, most_per_s, unseen_per_s]: [f64; 3],
    full: &[Point],
    waiting: &[f64],
    shape: Shape,
) -> Option<(f64, Slowdown)> {
    let rows: Vec<Row> =
        full.iter().zip(waiting).map(|(point, waiting)| Row::of(point, *waiting, shape)).collect();
    let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| row.weight * of(row)).sum::<f64>();
    let (weight, x, xx) = (sum(&|_| 1.0), sum(&|row| row.x), sum(&|row| row.x * row.x));
    let (y, xy) = (sum(&|row| row.y), sum(&|row| row.x * row.y));
    let determinant = weight * xx - x * x;
    let is_known = determinant > 1e-9 * weight * xx;
    let free_s = if is_known { (y * xx - x * xy) / determinant } else { unseen_per_s.recip() };
    let free_s = free_s.max(most_per_s.recip()).min(least_per_s.recip());
    let growth = (xy - free_s * x) / xx / free_s;
    let by = Slowdown { onset: shape.onset, growth, power: shape.power };
    (growth > 0.0 && growth.is_finite()).then_some((free_s.recip(), by))
}
