//! A bottleneck that takes longer for each request the more of them wait there, so that throughput falls beyond N*: a lock that
//! is handed over more slowly, threads that disturb each other, a cache that overflows.
//!
//! With enough users the bottleneck is never idle, and throughput is the rate at which it serves. How many are there follows
//! from Little's law, as the others think or are elsewhere. So every step beyond the one with the most throughput shows one rate
//! of a load-dependent station (Chandy, Herzog and Woo, IBM J. Res. Dev. 19(1), 1975; Lazowska, Zahorjan, Graham and Sevcik,
//! *Quantitative System Performance*, 1984, chapter 8), and 1 / X is linear in the waiting to a power. Growth with the first
//! power is what the coherency term of the universal scalability law stands for (Gunther, CMG 1993).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{Model, Slow};
use super::parts::{Parts, Point};
use super::solved::{irregularity, misses};

/// How much longer a request takes at the bottleneck where some wait: `1 + growth (waiting - onset)^power` times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// So many requests may wait before it slows down.
    pub onset: f64,
    /// What the first one beyond adds, as a share of the time while nobody waits.
    pub growth: f64,
    /// Below 1 further ones add less than the first, above 1 more.
    pub power: f64,
}

impl Slowdown {
    /// How many wait where a request takes twice as long.
    #[must_use]
    pub fn waiting_for_double(self) -> f64 {
        self.onset + self.growth.powf(-self.power.recip())
    }

    /// How much longer a request takes while so many wait, 1 or more.
    pub(super) fn factor(self, waiting: f64) -> f64 {
        1.0 + self.growth * (waiting - self.onset).max(0.0).powf(self.power)
    }

    /// The same where the waiting are shared by so many times as many servers.
    pub(super) fn shared(self, times: f64) -> Self {
        Self { onset: self.onset * times, growth: self.growth / times.powf(self.power), ..self }
    }
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
const FELL: f64 = crate::thresholds::PLATEAU;

/// The powers that are tried.
const POWERS: [f64; 3] = [0.5, 1.0, 2.0];

/// No more onsets than this are tried.
const ONSETS_MAX: usize = 8;

/// While nobody waits, the bottleneck serves no faster than this many times the most that was measured.
const LIMIT_TIMES_MAX: f64 = 2.0;

/// How often the time elsewhere, and what follows from it, are computed from each other.
const PASSES: usize = 3;

/// No step is better known than this, as a share.
const STEP_ERROR: f64 = 0.01;

/// Users of the last step, and its throughput as a share of the maximum, where that has fallen.
pub(super) fn fell(parts: &Parts) -> Option<(u32, f64)> {
    let last = parts.points.last()?;
    let share = last.throughput_per_s.value / parts.throughput_max_per_s.value;
    (share < FELL).then_some((last.users, share))
}

/// The form with which the model is nearest to the steps; `None` where throughput did not fall, or none is nearer than no
/// slowdown.
pub(super) fn shape(parts: &Parts) -> Option<Shape> {
    fell(parts)?;
    let rates = parts.points.iter().map(|point| point.throughput_per_s.value).enumerate();
    let (most, _) = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let plain = Model::of(parts);
    let waiting = waiting(&plain, parts, parts.points.get(most..)?)?;
    let every = waiting.len().div_ceil(ONSETS_MAX).max(1);
    let (_, but_last) = waiting.split_last()?;
    let onsets = std::iter::once(0.0).chain(but_last.iter().copied().step_by(every));
    let shapes =
        onsets.flat_map(|onset| POWERS.map(|power| Shape { from: most.saturating_add(1), onset, power }));
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
    // More than the others allow was not measured of any part, and would be taken for theirs as well.
    let most_per_s = (LIMIT_TIMES_MAX * max).min(model.others_allow_per_s(model.bottleneck(parts)?)).max(max);
    let mut by = Slowdown::default();
    for _ in 0..PASSES {
        let waiting = waiting(&model, parts, full)?;
        let (limit_per_s, fitted) = fitted([max, most_per_s], full, &waiting, shape)?;
        unslowed.throughput_max_per_s.value = limit_per_s;
        model = Model::of(&unslowed);
        by = fitted;
    }
    model.slow = Some(Slow { at: model.bottleneck(parts)?, by });
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
        let error = point.throughput_per_s.error;
        Self {
            x: (waiting - shape.onset).max(0.0).powf(shape.power),
            y,
            weight: (error * error + STEP_ERROR * STEP_ERROR).recip() / (y * y),
        }
    }
}

/// The throughput of the bottleneck while nobody waits, within bounds, and its slowdown: weighted least squares of 1 / X.
/// `None` where these steps show no fall.
fn fitted(
    [least_per_s, most_per_s]: [f64; 2],
    full: &[Point],
    waiting: &[f64],
    shape: Shape,
) -> Option<(f64, Slowdown)> {
    let rows: Vec<Row> =
        full.iter().zip(waiting).map(|(point, waiting)| Row::of(point, *waiting, shape)).collect();
    let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| row.weight * of(row)).sum::<f64>();
    let (weight, x, xx) = (sum(&|_| 1.0), sum(&|row| row.x), sum(&|row| row.x * row.x));
    let (y, xy) = (sum(&|row| row.y), sum(&|row| row.x * row.y));
    let most_s = least_per_s.recip();
    let determinant = weight * xx - x * x;
    let is_known = determinant > 1e-9 * weight * xx;
    let free_s = if is_known { (y * xx - x * xy) / determinant } else { most_s };
    let free_s = free_s.max(most_per_s.recip()).min(most_s);
    let growth = (xy - free_s * x) / xx / free_s;
    let by = Slowdown { onset: shape.onset, growth, power: shape.power };
    (growth > 0.0 && growth.is_finite()).then_some((free_s.recip(), by))
}
