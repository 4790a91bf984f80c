//! Service demand of each kind of request on one resource, where a load has several.
//!
//! U = sum over kinds of X_k D_k, regressed over windows of all steps (`resources::Usage::with_kinds`). What cannot be told
//! from so few requests, or from requests that always came in the same proportion, is not said.

use crate::statistics::normal_equations::NormalEquations;
use crate::statistics::{NORMAL_95, t_95};

/// What a request of one kind costs of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KindDemand {
    /// Microseconds of the resource for one request.
    pub(crate) demand_us: f64,
    /// Half the width of its 95 % interval.
    pub(crate) half_width_us: f64,
}

/// A demand is known where its standard error is no more than this share of it,
const OF_IT: f64 = 0.3;

/// or no more than this share of what a request costs on average, as of a kind that costs next to nothing.
const OF_MEAN: f64 = 0.1;

/// The demand of each kind, by place; `None` where it is not known.
pub(crate) fn demands(sums: &NormalEquations) -> Vec<Option<KindDemand>> {
    let (Some(fit), Some(mean)) = (sums.fit(), sums.mean()) else { return Vec::new() };
    let t = t_95(fit.degrees_of_freedom);
    let known = fit.coefficients.into_iter().map(|found| {
        let found = found?;
        let half_width_us = t * found.error;
        let most = (OF_IT * found.value).max(OF_MEAN * mean);
        // Few windows know their own scatter badly, which t makes up for.
        let is_known = half_width_us / NORMAL_95 <= most;
        is_known.then_some(KindDemand { demand_us: found.value, half_width_us })
    });
    known.collect()
}

impl KindDemand {
    /// Its 95 % interval, [lo, hi].
    pub(crate) fn interval_us(self) -> [f64; 2] {
        [(self.demand_us - self.half_width_us).max(0.0), self.demand_us + self.half_width_us]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    /// Windows of about a hundred requests of two kinds, of which the second makes this share, with so much noise in each.
    fn sums(costs: [f64; 2], share: f64, (windows, noise_us): (u32, f64)) -> NormalEquations {
        let mut random = Random::seeded(11);
        let mut sums = NormalEquations::default();
        for _ in 0..windows {
            let rare = (100.0 * share + (100.0 * share).sqrt() * random.normal()).round().max(0.0);
            let counts = [100.0 - rare, rare];
            let used = counts[0] * costs[0] + counts[1] * costs[1] + noise_us * random.normal();
            sums.add(used, &counts);
        }
        sums
    }

    #[test]
    fn a_demand_has_an_interval_that_ends_at_zero() {
        let found = demands(&sums([100.0, 0.0], 0.3, (60, 150.0)));
        let [Some(dear), Some(free)] = found.as_slice() else { panic!("{found:?}") };
        assert!((dear.demand_us - 100.0).abs() < 5.0 && dear.half_width_us > 0.0, "{dear:?}");
        assert!(free.demand_us < 20.0 && free.interval_us()[0] == 0.0, "{free:?}");
        assert!(free.interval_us()[1] > free.demand_us);
    }

    #[test]
    fn a_kind_that_came_too_seldom_is_not_known_and_the_other_is() {
        let found = demands(&sums([100.0, 300.0], 0.01, (40, 3_000.0)));
        let [Some(often), None] = found.as_slice() else { panic!("{found:?}") };
        assert!((often.demand_us - 100.0).abs() < 20.0, "{often:?}");
    }

    #[test]
    fn kinds_that_always_came_in_the_same_proportion_are_not_known() {
        let mut sums = NormalEquations::default();
        (1..50).for_each(|n| sums.add(f64::from(n) * 900.0, &[f64::from(n) * 3.0, f64::from(n)]));
        assert_eq!(demands(&sums), vec![None, None]);
        assert!(demands(&NormalEquations::default()).is_empty());
    }
}
