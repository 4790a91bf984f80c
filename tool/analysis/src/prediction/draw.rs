//! What is not known for sure, drawn at random: the figures within their intervals, and how irregular the times are.

use super::parts::{Figure, Parts, STEP_ERROR};
use crate::statistics::random::Random;
use crate::thresholds::SATURATED;

/// How irregular times are, 0 to 1, as a mean and an error: least squares with a prior that knows nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Irregularity {
    weight: f64,
    weighted: f64,
}

/// Before anything is seen: half way between both ends, give or take as much.
const PRIOR: f64 = 0.5;

/// Where users come at other times than in the run, or with other requests, nothing says that times are as regular.
const ERROR_ELSEWHERE: f64 = 0.3;

impl Default for Irregularity {
    fn default() -> Self {
        let weight = PRIOR.powi(-2);
        Self { weight, weighted: weight * PRIOR }
    }
}

impl Irregularity {
    /// Adds a step: the cycles of both ends, its own, and the relative variance of that.
    pub(super) fn add(&mut self, constant_us: f64, exponential_us: f64, cycle_us: f64, variance: f64) {
        let apart = (exponential_us - constant_us) / cycle_us;
        let beyond = (cycle_us - constant_us) / cycle_us;
        if (apart * beyond).is_finite() {
            self.weight += apart * apart / variance;
            self.weighted += apart * beyond / variance;
        }
    }

    /// The most probable.
    pub(super) fn mean(&self) -> f64 {
        (self.weighted / self.weight).clamp(0.0, 1.0)
    }

    /// Its standard error; larger for users who think for another time or send another mix of requests.
    pub(super) fn error(&self, elsewhere: bool) -> f64 {
        let known = self.weight.recip().sqrt();
        if elsewhere { known.max(ERROR_ELSEWHERE) } else { known }
    }

    pub(super) fn drawn(&self, elsewhere: bool, random: &mut Random) -> f64 {
        (self.mean() + self.error(elsewhere) * random.normal()).clamp(0.0, 1.0)
    }
}

/// The share of the maximum throughput at which a sweep finds N*. It compares a step with the maximum, and no step is better
/// known than by its error: where throughput hardly grows any more, that moves N* by several users.
pub(super) fn saturated(random: &mut Random) -> f64 {
    SATURATED * (STEP_ERROR * random.normal()).exp()
}

/// The parts of a run as they may be as well.
pub(super) fn parts(of: &Parts, random: &mut Random) -> Parts {
    let mut drawn = of.clone();
    draw(&mut drawn.alone_us, random);
    draw(&mut drawn.throughput_max_per_s, random);
    drawn.points.iter_mut().for_each(|point| draw(&mut point.throughput_per_s, random));
    drawn.tiers.iter_mut().for_each(|tier| draw(&mut tier.cpu_us, random));
    drawn.devices.iter_mut().for_each(|device| draw(&mut device.busy_us, random));
    drawn.hosts.iter_mut().for_each(|host| draw(&mut host.cpu_us, random));
    drawn
}

/// Errors are of the logarithm, so that no figure becomes negative.
fn draw(figure: &mut Figure, random: &mut Random) {
    figure.value *= (figure.error * random.normal()).exp();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturation_is_drawn_around_its_share_by_the_error_of_a_step() {
        let mut random = Random::seeded(1);
        let drawn: Vec<f64> = (0..2_000).map(|_| saturated(&mut random) / SATURATED - 1.0).collect();
        let mean = drawn.iter().sum::<f64>() / 2_000.0;
        let spread = (drawn.iter().map(|of| of * of).sum::<f64>() / 2_000.0).sqrt();
        assert!(mean.abs() < 0.001 && (spread / STEP_ERROR - 1.0).abs() < 0.1, "{mean} {spread}");
    }
}
