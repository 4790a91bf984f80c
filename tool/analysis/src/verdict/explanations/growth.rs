//! Throughput over users, as each explanation predicts it.
//!
//! m servers and a delay beside them, such that one user alone and the maximum are as measured, leave nothing open but how
//! much service times vary. With constant times nobody waits below N*, and throughput is the smaller of N / R(1) and the
//! maximum. With exponential ones it is lower by what the machine repairman says: much with one server and much delay,
//! hardly with m servers and little. What real servers do lies between.

use super::Cause;
use super::served::Served;
use crate::laws::mva::repairman;
use crate::run::Step;
use crate::search::growth::throughput_error;
use crate::verdict::curve::Curve;

/// Real servers differ from the prediction by this share: users disturb each other in other ways too.
const NOT_ALIKE: f64 = 0.03;

/// What makes one step differ makes others differ as well: all together count for so many.
const INDEPENDENT: f64 = 2.0;

/// Steps further beyond saturation tell nothing, in multiples of it.
const BEYOND: f64 = 3.0;

/// Shares of exponential times that are tried, with their priors: programs that sleep or compute take constant times.
const VARYING: [(f64, f64); 5] = [(0.0, 0.6), (0.25, 0.1), (0.5, 0.1), (0.75, 0.1), (1.0, 0.1)];

/// However unlikely the curve, the model may be wrong: no explanation loses more than this against the best.
const LEAST: f64 = 0.05;

/// Measured throughput, as shares of the maximum.
#[derive(Default)]
pub(super) struct Growth {
    at_a_time: f64,
    steps: Vec<(u32, f64, f64)>,
    highest: f64,
}

impl Growth {
    pub(super) fn of(curve: &Curve, served: &Served) -> Self {
        let (most, _) = curve.maximum();
        // Users who think are a delay beside the servers as well (Z X, by Little's law).
        let thinking = |star: &Step| star.measurement.mean_thinking_users * most / star.throughput_per_s;
        let thinking = curve.star().map(thinking).filter(|users| users.is_finite()).unwrap_or(0.0);
        let in_all = served.in_all() + thinking;
        let tells = |step: &&Step| {
            step.users > 1 && f64::from(step.users) <= BEYOND * in_all && step.completed > 0 && step.steady
        };
        // Where throughput falls again no server of constant speed is behind it.
        let falls = super::waiting::fall(curve).is_some();
        let share = |step: &Step| {
            let error = throughput_error(step) / step.throughput_per_s;
            (step.users, step.throughput_per_s / most, error.hypot(NOT_ALIKE))
        };
        let steps = if falls { Vec::new() } else { curve.steps().iter().filter(tells).map(share).collect() };
        let mut growth = Self { at_a_time: in_all, steps, highest: 0.0 };
        growth.highest = [1, 2, served.at_a_time.round().max(1.0) as u32]
            .map(|servers| growth.of_servers(servers))
            .into_iter()
            .fold(0.0, f64::max);
        growth
    }

    /// The likelihood of the measured throughput, against that of a good fit.
    pub(super) fn likelihood(&self, cause: Cause) -> f64 {
        let found = match cause {
            Cause::One => self.of_servers(1),
            Cause::Pool(workers) | Cause::Connections(workers) => self.of_servers(workers),
            Cause::RateLimit => self.constant(),
            // They may do either.
            Cause::AcceptQueue | Cause::Upstream | Cause::Else => self.of_servers(1).max(self.highest / 2.0),
        };
        if self.highest > 0.0 { (found / self.highest).clamp(LEAST, 1.0) } else { 1.0 }
    }

    fn of_servers(&self, servers: u32) -> f64 {
        let by_exponential: Vec<f64> =
            self.steps.iter().map(|(users, ..)| self.exponential(servers, *users)).collect();
        VARYING.iter().map(|(varying, prior)| prior * self.between(&by_exponential, *varying)).sum()
    }

    /// The likelihood where users below N* never wait.
    fn constant(&self) -> f64 {
        self.between(&vec![0.0; self.steps.len()], 0.0)
    }

    /// The likelihood of times that are partly exponential, by what throughput would be if they were wholly so.
    fn between(&self, by_exponential: &[f64], varying: f64) -> f64 {
        let one = |(&(users, share, error), exponential): (&(u32, f64, f64), &f64)| {
            let constant = (f64::from(users) / self.at_a_time).min(1.0);
            let off = (share - constant - varying * (exponential - constant)) / (error * share);
            -off * off / 2.0
        };
        let independent = (INDEPENDENT / self.steps.len().max(1) as f64).min(1.0);
        (independent * self.steps.iter().zip(by_exponential).map(one).sum::<f64>()).exp()
    }

    /// Throughput as a share of the maximum where all times are exponential.
    fn exponential(&self, servers: u32, users: u32) -> f64 {
        let each = f64::from(servers);
        let delay = (self.at_a_time / each - 1.0).max(0.0);
        repairman(servers, delay, users) / each
    }
}
