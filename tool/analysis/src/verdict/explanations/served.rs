//! How many requests are served at a time, k = X_max R(1), and how likely that is by each explanation.
//!
//! A pool of m workers in which requests spend nearly all of their time serves m at a time, and a little more for the way
//! there and back. Work that waits for nobody, before or after, makes k larger by any factor. A lock is a pool of one. So the
//! density of ln k is that of an exponential excess over ln m, small or large, with the normal error of the measurement.

use std::f64::consts::{PI, SQRT_2};

use statrs::function::erf::erfc;

use super::Cause;
use crate::verdict::curve::Curve;
use crate::verdict::{hops, waiting};

/// Mean excess over a whole number, as a share, where requests spend nearly all of their time in the pool or the lock.
const WAY: f64 = 0.015;
const WAY_TO_LOCK: f64 = 0.03;

/// Mean logarithm of the factor by which other work makes k larger. Servers do much besides what they hold a lock for.
const BESIDE_POOL: f64 = 0.5;
const BESIDE_LOCK: f64 = 3.0;

/// The share of pools, and of locks, of which requests spend nearly all of their time there.
const MOSTLY_POOL: f64 = 0.6;
const MOSTLY_LOCK: f64 = 0.75;

/// The largest k that is thought of, and the smallest: what nothing is known of is spread evenly over the logarithm.
const RANGE: [f64; 2] = [0.1, 1_000.0];

/// Response times of one user and at saturation differ by this share for reasons that no interval shows: clock rates, caches.
const NOT_ALIKE: f64 = 0.008;

/// What is known of the requests at other tiers is good to this share.
const ELSEWHERE_ERROR: f64 = 0.1;

/// The variance of what a look finds there, at most: it finds the whole number above or below the mean.
const LOOK_VARIANCE: f64 = 0.25;

/// The number of requests served at a time where they queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Served {
    /// The number, k.
    pub(super) at_a_time: f64,
    /// Requests that are served elsewhere meanwhile, which are not in it.
    pub(super) elsewhere: f64,
    /// Requests whose responses are held back meanwhile, which are not in it either.
    pub(super) held_back: f64,
    /// Standard error of its logarithm.
    pub(super) error: f64,
}

impl Served {
    pub(super) fn of(curve: &Curve) -> Option<Self> {
        let (rate_per_s, rate_error) = curve.maximum();
        let (alone_us, alone_error) = waiting::unqueued(curve)?;
        let in_all = rate_per_s * alone_us / 1e6;
        let elsewhere = hops::elsewhere(curve);
        let held_back = waiting::held_back(curve);
        let at_a_time = in_all - elsewhere - held_back;
        // The pauses are measured, and what one user's response time errs by is all in the rest.
        let of_rest = (in_all - elsewhere) / at_a_time;
        let variance = rate_error.powi(2)
            + (of_rest * alone_error).powi(2)
            + NOT_ALIKE.powi(2)
            + elsewhere_variance(curve, elsewhere) / at_a_time.powi(2);
        let counted = curve.closed() && at_a_time > 0.0 && variance.is_finite();
        counted.then(|| Self { at_a_time, elsewhere, held_back, error: variance.sqrt() })
    }

    /// Together with those served elsewhere, and those held back.
    pub(super) fn in_all(&self) -> f64 {
        self.at_a_time + self.elsewhere + self.held_back
    }

    /// The density of ln k by this explanation.
    pub(super) fn density(&self, cause: Cause) -> f64 {
        let wide = 1.0 / (RANGE[1] / RANGE[0]).ln();
        let one = |way: f64| self.above(1.0, way);
        match cause {
            Cause::One => MOSTLY_LOCK * one(WAY_TO_LOCK) + (1.0 - MOSTLY_LOCK) * one(BESIDE_LOCK),
            Cause::Pool(workers) | Cause::Connections(workers) => {
                let workers = f64::from(workers);
                let size = ((workers + 0.5) / (workers - 0.5)).ln() / (RANGE[1] / 1.5).ln();
                let mostly = self.above(workers, WAY);
                size * (MOSTLY_POOL * mostly + (1.0 - MOSTLY_POOL) * self.above(workers, BESIDE_POOL))
            }
            // One user alone is delayed as well, unless the limit leaves room for bursts.
            Cause::RateLimit => 0.5 * one(WAY) + 0.5 * wide,
            Cause::AcceptQueue | Cause::Else => 0.5 * one(WAY_TO_LOCK) + 0.5 * wide,
            Cause::Upstream => wide,
        }
    }

    /// The density of ln k where it exceeds ln `servers` by an exponential amount, measured with a normal error.
    fn above(&self, servers: f64, mean: f64) -> f64 {
        exponential_and_normal((self.at_a_time / servers).ln(), mean, self.error)
    }
}

/// How far what is known of the requests at other tiers may be off: looks are a sample, and a few of them tell little.
fn elsewhere_variance(curve: &Curve, elsewhere: f64) -> f64 {
    let looks = hops::looks_beyond(curve).max(1.0);
    (ELSEWHERE_ERROR * elsewhere).powi(2) + elsewhere.min(LOOK_VARIANCE) / looks
}

/// The density at `x` of the sum of an exponential variable and a normal one around 0.
fn exponential_and_normal(x: f64, mean: f64, deviation: f64) -> f64 {
    let ratio = deviation / mean;
    if ratio > 5.0 {
        let z = (x - mean) / deviation;
        return (-z * z / 2.0).exp() / (deviation * (2.0 * PI).sqrt());
    }
    let tail = erfc((ratio - x / deviation) / SQRT_2);
    (ratio * ratio / 2.0 - x / mean).min(700.0).exp() * tail / (2.0 * mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_come_to_one() {
        for (mean, deviation) in [(0.015, 0.01), (2.0, 0.01), (0.015, 0.2), (0.03, 0.15)] {
            let step = 1e-3;
            let sum: f64 = (-2_000..40_000)
                .map(|index| exponential_and_normal(f64::from(index) * step, mean, deviation) * step)
                .sum();
            assert!((sum - 1.0).abs() < 0.02, "mean {mean}, deviation {deviation}: {sum}");
        }
    }
}
