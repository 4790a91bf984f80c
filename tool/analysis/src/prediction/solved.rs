//! A model with its rates computed: throughput, response time and N*, and how far it is from what was measured.

use super::draw::Irregularity;
use super::model::Model;
use super::network::{Rates, served_per_s};
use super::parts::{Parts, Point};
use super::slowdown::Slowed;
use crate::thresholds::SATURATED;

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
    /// N* has this share of the maximum throughput.
    pub(super) saturated: f64,
    pub(super) falling: Option<Falling>,
}

/// How a bottleneck slows down, what it serves per second while nobody waits, and how long a request is elsewhere, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Falling {
    pub(super) by: Slowed,
    pub(super) per_s: f64,
    pub(super) elsewhere_us: f64,
}

/// No search for N* goes beyond so many users.
pub(super) const USERS_MAX: u32 = 1_000_000;

/// With more users than this at a station that slows down, chance changes nothing that shows.
const CHANCE_MAX: u32 = 5_000;

/// How often the waiting, and the time that they make each request take, are computed from each other at most.
const PASSES: usize = 200;

impl Solved {
    /// The cycle N / X of so many users where times are constant, and where they are exponential, microseconds.
    pub(super) fn cycles_us(&self, users: u32) -> (f64, f64) {
        let shared_us = f64::from(users) / self.limit_per_s * 1e6;
        let unslowed_us = (self.alone_us + self.think_us).max(shared_us);
        let constant_us = self.falling.map_or(unslowed_us, |of| self.slowed_us(of, users, unslowed_us));
        if users > CHANCE_MAX
            && let Some(rates) = self.slowed_stations()
        {
            let end_us = f64::from(users) / rates.end_per_s() * 1e6;
            return (constant_us, end_us.max(constant_us));
        }
        let served = served_per_s(self.stations.as_ref(), self.delay_us + self.think_us, users);
        (constant_us, (f64::from(users) / served * 1e6).max(constant_us))
    }

    /// All stations as one, where one of them slows down.
    fn slowed_stations(&self) -> Option<&Rates> {
        self.stations.as_ref().filter(|rates| rates.is_slowed())
    }

    /// The cycle where times are constant, of a system that slows down. Those who are nowhere else wait at the bottleneck, whose
    /// time they make longer, which makes more of them wait: the fewest with which that ends.
    fn slowed_us(&self, of: Falling, users: u32, unslowed_us: f64) -> f64 {
        let shared_us = f64::from(users) / of.per_s * 1e6;
        let mut cycle_us = unslowed_us;
        for _ in 0..PASSES {
            let elsewhere = (of.elsewhere_us + self.think_us) / cycle_us;
            let present = f64::from(users) * (1.0 - elsewhere);
            let next_us = unslowed_us.max(shared_us * of.by.factor(present));
            if next_us <= cycle_us * (1.0 + 1e-9) {
                break;
            }
            cycle_us = next_us;
        }
        cycle_us
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

    /// The most throughput, with any number of users.
    pub(super) fn throughput_max_per_s(&self) -> f64 {
        self.peak().map_or(self.level_per_s(), |(_, per_s)| per_s)
    }

    /// What throughput tends to, where no number of users that is tried shows it.
    fn level_per_s(&self) -> f64 {
        self.slowed_stations().map_or(self.limit_per_s, |rates| rates.end_per_s().min(self.limit_per_s))
    }

    /// Where a station slows down, the users with whom throughput is highest, to a tenth, and that. The highest is flat. `None`
    /// where throughput still grows with the most users that are tried.
    fn peak(&self) -> Option<(u32, f64)> {
        if self.slowed_stations().is_none() && self.falling.is_none() {
            return None;
        }
        let more = |users: &u32| Some(users + (users / 10).max(1)).filter(|users| *users <= USERS_MAX);
        let (mut most, mut most_per_s) = (1, 0.0);
        for users in std::iter::successors(Some(1u32), more) {
            let per_s = self.throughput_per_s(users);
            if per_s > most_per_s {
                (most, most_per_s) = (users, per_s);
            } else if per_s < SATURATED * most_per_s {
                break;
            }
        }
        let half = USERS_MAX / 2;
        let grows = most > half && self.throughput_per_s(half) < SATURATED * most_per_s;
        (!grows).then_some((most, most_per_s))
    }

    /// N*; `None` where no limit is known, or it is beyond [`USERS_MAX`].
    pub(super) fn users_at_saturation(&self) -> Option<u32> {
        let peak = self.peak();
        let most_per_s = peak.map_or(self.level_per_s(), |(_, per_s)| per_s);
        let is_full = |users: u32| self.throughput_per_s(users) >= self.saturated * most_per_s;
        let (mut low, mut high) = match peak {
            Some((users, _)) => (0, users),
            None => doubled(is_full)?,
        };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_full(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Numbers of users, one twice the other, between which a system becomes full.
fn doubled(is_full: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
    let (mut low, mut high) = (0, 1);
    while !is_full(high) {
        if high >= USERS_MAX {
            return None;
        }
        (low, high) = (high, (high * 2).min(USERS_MAX));
    }
    Some((low, high))
}

/// How irregular the times are, as the steps show it: least squares of their cycles between both ends.
pub(super) fn irregularity(model: &Model, parts: &Parts) -> Irregularity {
    let solved = model.solved();
    let mut fit = Irregularity::default();
    for point in &parts.points {
        let (constant_us, exponential_us) = solved.cycles_us(point.users);
        let cycle_us = f64::from(point.users) / point.throughput_per_s.value * 1e6;
        fit.add(constant_us, exponential_us, cycle_us, point.throughput_per_s.variance());
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
