//! Two runs side by side: ratios with 95 % intervals.

use crate::run::{ResourceKind, Run, Step};
use crate::statistics::NORMAL_95;

/// The second run against the first.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// Maximum throughput, second over first; `None` where a run completed nothing.
    pub throughput_max: Option<Ratio>,
    /// Whether both maxima are maxima. If not, the ratio compares lower bounds and may mislead.
    pub bounded: bool,
    /// N* of the first and of the second run.
    pub users_at_saturation: [Option<u32>; 2],
    /// What stops the first and the second.
    pub bottleneck: [ResourceKind; 2],
    /// Numbers of users that both runs measured, ascending.
    pub steps: Vec<StepComparison>,
}

/// One number of users in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StepComparison {
    /// Users in the closed loop.
    pub users: u32,
    /// Throughput, second over first; `None` where a run has no interval for it.
    pub throughput: Option<Ratio>,
    /// Mean response time, second over first; likewise.
    pub response_time: Option<Ratio>,
}

/// Second over first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Above 1 where the second is larger.
    pub ratio: f64,
    /// 95 % interval of it.
    pub ci: [f64; 2],
}

impl Ratio {
    /// Whether the interval excludes 1: the two differ by more than chance.
    pub fn differs(&self) -> bool {
        let [low, high] = self.ci;
        low > 1.0 || high < 1.0
    }
}

/// Compares `b` with `a`.
pub fn compare(a: &Run, b: &Run) -> RunComparison {
    let most = |run: &Run| (run.verdict.throughput_max_per_s, run.verdict.throughput_max_ci_per_s);
    RunComparison {
        throughput_max: ratio(most(b), most(a), NORMAL_95),
        bounded: a.verdict.bounded && b.verdict.bounded,
        users_at_saturation: [a, b].map(|run| run.verdict.users_at_saturation),
        bottleneck: [a, b].map(|run| run.verdict.bottleneck.kind),
        steps: a.steps.iter().filter_map(|step| compare_step(step, &b.steps)).collect(),
    }
}

fn compare_step(first: &Step, others: &[Step]) -> Option<StepComparison> {
    let second = others.iter().find(|step| step.users == first.users)?;
    let throughput = |step: &Step| Some((step.throughput_per_s, step.throughput_ci_per_s?));
    let response = |step: &Step| Some((step.response_time_us.mean, step.response_time_us.mean_ci?));
    Some(StepComparison {
        users: first.users,
        throughput: throughput(second)
            .zip(throughput(first))
            .and_then(|(above, below)| ratio(above, below, NORMAL_95)),
        response_time: response(second)
            .zip(response(first))
            .and_then(|(above, below)| ratio(above, below, NORMAL_95)),
    })
}

/// The ratio of two independent estimates. Its logarithm is about normal, with the relative errors of both
/// (delta method), which keeps the interval above zero and the same either way round. The estimates come with 95 %
/// intervals; the ratio's is `z` standard errors wide either way.
pub(crate) fn ratio(above: (f64, [f64; 2]), below: (f64, [f64; 2]), z: f64) -> Option<Ratio> {
    let error = |(value, [_, high]): (f64, [f64; 2])| (high - value) / value / NORMAL_95;
    let valid = |(value, _): (f64, [f64; 2])| value > 0.0 && value.is_finite();
    if !valid(above) || !valid(below) {
        return None;
    }
    let ratio = above.0 / below.0;
    let spread = (z * error(above).hypot(error(below))).exp();
    Some(Ratio { ratio, ci: [ratio / spread, ratio * spread] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(value: f64, share: f64) -> (f64, [f64; 2]) {
        (value, [value * (1.0 - share), value * (1.0 + share)])
    }

    #[test]
    fn ratio_of_two_estimates() {
        let found = ratio(around(1_200.0, 0.03), around(1_000.0, 0.04), NORMAL_95).unwrap();
        assert!((found.ratio - 1.2).abs() < 1e-12 && found.differs());
        let [low, high] = found.ci;
        assert!((low - 1.2 * (-0.05f64).exp()).abs() < 1e-9 && (high - 1.2 * 0.05f64.exp()).abs() < 1e-9);
    }

    #[test]
    fn the_same_within_the_intervals() {
        assert!(!ratio(around(1_020.0, 0.02), around(1_000.0, 0.02), NORMAL_95).unwrap().differs());
    }

    #[test]
    fn either_way_round() {
        let (a, b) = (around(3_000.0, 0.02), around(1_000.0, 0.05));
        let (forth, back) = (ratio(a, b, NORMAL_95).unwrap(), ratio(b, a, NORMAL_95).unwrap());
        assert!((forth.ci[0] * back.ci[1] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_completed() {
        assert_eq!(ratio(around(1.0, 0.1), (0.0, [0.0, 0.0]), NORMAL_95), None);
    }

    /// Two servers that are the same: 95 % of comparisons say so.
    #[test]
    fn covers() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut noisy = || {
            around(
                1_000.0 * (1.0 + 0.02 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0)),
                0.02 * NORMAL_95,
            )
        };
        let same = (0..2_000).filter(|_| !ratio(noisy(), noisy(), NORMAL_95).unwrap().differs()).count();
        assert!((1_860..=1_940).contains(&same), "{same} of 2000");
    }
}
