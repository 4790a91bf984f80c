//! A model with its rates computed: throughput, response time and N*, and how far it is from what was measured.

use super::draw::Irregularity;
use super::model::Model;
use super::network::{Rates, served_per_s};
use super::parts::{Parts, Point};

/// A model with its rates computed.
#[derive(Debug, Clone)]
pub(super) struct Solved {
    pub(super) stations: Option<Rates>,
    pub(super) delay_us: f64,
    pub(super) think_us: f64,
    /// The lowest limit.
    pub(super) limit_per_s: f64,
    pub(super) alone_us: f64,
    pub(super) irregularity: f64,
}

/// Saturated: this share of the maximum.
const SATURATED: f64 = crate::thresholds::SATURATED;

/// No search for N* goes beyond so many users.
pub(super) const USERS_MAX: u32 = 1_000_000;

impl Solved {
    /// The cycle N / X of so many users where times are constant, and where they are exponential, microseconds.
    pub(super) fn cycles_us(&self, users: u32) -> (f64, f64) {
        let shared_us = f64::from(users) / self.limit_per_s * 1e6;
        let constant_us = (self.alone_us + self.think_us).max(shared_us);
        let served = served_per_s(self.stations.as_ref(), self.delay_us + self.think_us, users);
        (constant_us, (f64::from(users) / served * 1e6).max(constant_us))
    }

    pub(super) fn throughput_per_s(&self, users: u32) -> f64 {
        let (constant_us, exponential_us) = self.cycles_us(users);
        f64::from(users) / (constant_us + self.irregularity * (exponential_us - constant_us)) * 1e6
    }

    pub(super) fn response_us(&self, users: u32) -> f64 {
        f64::from(users) / self.throughput_per_s(users) * 1e6 - self.think_us
    }

    /// So many users over those at the knee.
    pub(super) fn load(&self, users: u32) -> f64 {
        f64::from(users) / (self.limit_per_s * (self.alone_us + self.think_us)) * 1e6
    }

    /// N*; `None` where no limit is known, or it is beyond [`USERS_MAX`].
    pub(super) fn users_at_saturation(&self) -> Option<u32> {
        let is_full = |users: u32| self.throughput_per_s(users) >= SATURATED * self.limit_per_s;
        let (mut low, mut high) = (0, 1);
        while !is_full(high) {
            if high >= USERS_MAX {
                return None;
            }
            (low, high) = (high, (high * 2).min(USERS_MAX));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_full(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// How irregular the times are, as the steps show it: least squares of their cycles between both ends.
pub(super) fn irregularity(model: &Model, parts: &Parts) -> Irregularity {
    let solved = model.solved();
    let mut fit = Irregularity::default();
    for point in &parts.points {
        let (constant_us, exponential_us) = solved.cycles_us(point.users);
        let cycle_us = f64::from(point.users) / point.throughput_per_s.value * 1e6;
        fit.add(constant_us, exponential_us, cycle_us, point.throughput_per_s.error);
    }
    fit
}

/// How far the model is from the steps: the root of the mean square of the relative gaps of throughput.
pub(super) fn misses(model: &Model, parts: &Parts) -> f64 {
    let solved = model.solved();
    let gap =
        |point: &Point| (solved.throughput_per_s(point.users) / point.throughput_per_s.value - 1.0).powi(2);
    (parts.points.iter().map(gap).sum::<f64>() / parts.points.len().max(1) as f64).sqrt()
}
