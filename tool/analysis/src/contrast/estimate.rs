//! The ratio of two sides, from samples of each.
//!
//! Logarithms of figures are compared, so that intervals stay above zero and are the same either way round. With one run on
//! each side, the interval can only come from the runs' own ones (delta method): what differs between starts of the server
//! is not in it. With several, it comes from the scatter between them, by Welch's t ("The generalization of Student's
//! problem when several different population variances are involved", Biometrika 34, 1947); a side of one run is taken to
//! scatter as the other does. Rounds of one experiment are paired, and so are runs that took turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::PAIRS_MIN;
use crate::statistics::mean::{mean, standard_deviation};
use crate::statistics::pooling::effective_degrees_of_freedom;
use crate::statistics::{NORMAL_95, t_95, t_cdf, t_two_sided};

/// The figure of one run, or of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    /// The standard error of its logarithm, from within the run; `None` where that is not known.
    pub(super) error: Option<f64>,
}

impl Sample {
    /// A figure with its 95 % interval, if it has one. `None` unless it is above zero.
    pub(super) fn of(value: f64, ci: Option<[f64; 2]>) -> Option<Self> {
        // Of an interval that reaches zero, the upper end alone says how wide it is.
        let error = |[low, high]: [f64; 2]| match low > 0.0 {
            true => (high / low).ln() / 2.0 / NORMAL_95,
            false => (high / value).ln().max(0.0) / NORMAL_95,
        };
        let error = ci.map(error).filter(|error| error.is_finite() && *error >= 0.0);
        (value > 0.0 && value.is_finite()).then_some(Self { value, error })
    }
}

/// A figure in every run of a side, or every round, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Samples {
    pub(super) all: Vec<Option<Sample>>,
    /// Whether they are only lower bounds.
    pub(super) at_least: bool,
}

impl Samples {
    fn known(&self) -> Vec<Sample> {
        self.all.iter().copied().flatten().collect()
    }
}

/// Where the interval of a ratio comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Basis {
    /// From nowhere: a single run has no interval of this figure.
    #[default]
    Nothing,
    /// From nowhere: the file of an experiment holds this figure of one run of each variant, whatever the number of rounds.
    OneRun,
    /// From within one run on each side. What differs between starts of the server is not in it.
    WithinRuns,
    /// From the scatter between runs.
    BetweenRuns {
        /// How many there are before.
        before: u32,
        /// How many there are after.
        after: u32,
    },
    /// From the scatter of ratios within the rounds of one experiment.
    Rounds {
        /// How many there are.
        rounds: u32,
    },
    /// From the scatter of ratios within pairs of neighbours in time: the runs of the two sides took turns.
    Turns {
        /// How many pairs there are.
        pairs: u32,
    },
}

impl Basis {
    /// Whether it is the scatter of ratios, each of a pair.
    fn is_paired(self) -> bool {
        matches!(self, Self::Rounds { .. } | Self::Turns { .. })
    }

    /// The fewest repeats of each side that have such an interval.
    fn repeats_min(self) -> u32 {
        if let Self::Turns { .. } = self { PAIRS_MIN as u32 } else { 2 }
    }
}

/// What figures at the same place on both sides have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Nothing.
    Apart,
    /// The round of an experiment.
    Rounds,
    /// The time: the runs of the two sides took turns.
    Turns,
}

impl Pairing {
    /// Where the interval of so many pairs comes from; `None` where the sides are compared as a whole.
    fn basis(self, pairs: usize) -> Option<Basis> {
        match self {
            Self::Rounds if pairs > 1 => Some(Basis::Rounds { rounds: pairs as u32 }),
            Self::Turns if pairs >= PAIRS_MIN => Some(Basis::Turns { pairs: pairs as u32 }),
            _ => None,
        }
    }
}

/// What a ratio of figures says that are only bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Neither side is only bounded.
    #[default]
    Exact,
    /// The ratio is at least this: what came after is only a lower bound.
    AtLeast,
    /// The ratio is at most this: what came before is only a lower bound.
    AtMost,
    /// Nothing: both are.
    Unknown,
}

impl Bound {
    pub(super) fn allows_rise(self) -> bool {
        matches!(self, Self::Exact | Self::AtLeast)
    }

    pub(super) fn allows_fall(self) -> bool {
        matches!(self, Self::Exact | Self::AtMost)
    }
}

/// The ratio of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) log_ratio: f64,
    /// The standard error of the logarithm, and its degrees of freedom.
    pub(super) error: Option<(f64, f64)>,
    pub(super) basis: Basis,
    pub(super) bound: Bound,
    /// The standard deviation of a logarithm between runs, of both sides together.
    pub(super) scatter: Option<f64>,
}

/// Response times are counted in classes about so wide, as a share of the time: figures that agree exactly are not known
/// better than this.
const RESOLUTION: f64 = 5e-4;

/// As many degrees of freedom as make Student's t normal.
const KNOWN: f64 = 65_535.0;

impl Estimate {
    pub(super) fn ratio(&self) -> f64 {
        self.log_ratio.exp()
    }

    /// 95 % interval of the ratio.
    pub(super) fn interval(&self) -> Option<[f64; 2]> {
        let (error, df) = self.error?;
        let half_width = t_95(df) * error;
        Some([self.log_ratio - half_width, self.log_ratio + half_width].map(f64::exp))
    }

    /// The chance of a ratio so far from 1, or farther, if the sides are the same.
    pub(super) fn chance(&self) -> Option<f64> {
        let (error, df) = self.error?;
        Some(2.0 * (1.0 - t_cdf(df, self.log_ratio.abs() / error)))
    }
}

/// The fewest repeats of each side that find a difference of `distance`, on the scale of logarithms, 19 times in 20: whose interval
/// then excludes 0, and comes from where this one does. `None` where a thousand would not do.
pub(super) fn repeats_for(scatter: f64, distance: f64, basis: Basis) -> Option<u32> {
    const MOST: u32 = 1_000;
    // One side of Student's t that holds 95 % has two that hold 90 %.
    const FOUND: f64 = 0.90;
    let narrow = |repeats: &u32| {
        let count = f64::from(*repeats);
        let df = if basis.is_paired() { count - 1.0 } else { 2.0 * count - 2.0 };
        (t_95(df) + t_two_sided(df, FOUND)) * scatter * (2.0 / count).sqrt() < distance
    };
    (basis.repeats_min()..=MOST).find(narrow)
}

/// The ratio of two sides. `None` if one has no figure.
pub(super) fn estimate(before: &Samples, after: &Samples, pairing: Pairing) -> Option<Estimate> {
    let bound = match (before.at_least, after.at_least) {
        (false, false) => Bound::Exact,
        (false, true) => Bound::AtLeast,
        (true, false) => Bound::AtMost,
        (true, true) => Bound::Unknown,
    };
    let pairs = before.all.iter().zip(&after.all).filter_map(|(one, other)| Some(((*one)?, (*other)?)));
    let pairs: Vec<(Sample, Sample)> = pairs.collect();
    let found = match pairing.basis(pairs.len()) {
        Some(basis) => by_pairs(&pairs, basis),
        None => by_sides(&before.known(), &after.known())?,
    };
    Some(Estimate { bound, ..found })
}

fn by_pairs(pairs: &[(Sample, Sample)], basis: Basis) -> Estimate {
    let ratios: Vec<f64> = pairs.iter().map(|(one, other)| (other.value / one.value).ln()).collect();
    let count = ratios.len() as f64;
    // As of sides: no less than the runs themselves say.
    let within = pairs.iter().filter_map(|(one, other)| Some(one.error?.powi(2) + other.error?.powi(2)));
    let within = mean(&within.collect::<Vec<f64>>()).sqrt();
    let scatter = standard_deviation(&ratios).max(within);
    let of_side = |pick: fn(&(Sample, Sample)) -> Sample| {
        mean(&pairs.iter().map(|pair| pick(pair).value.ln()).collect::<Vec<_>>()).exp()
    };
    Estimate {
        before: of_side(|pair| pair.0),
        after: of_side(|pair| pair.1),
        log_ratio: mean(&ratios),
        error: Some(((scatter / count.sqrt()).max(RESOLUTION), count - 1.0)),
        basis,
        bound: Bound::Exact,
        // Of a side: the scatter of a difference is that of two.
        scatter: Some(scatter / std::f64::consts::SQRT_2),
    }
}

fn by_sides(before: &[Sample], after: &[Sample]) -> Option<Estimate> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let [one, other] = [before, after].map(logs);
    let (basis, error) = match (before, after) {
        ([one], [other]) => {
            let within = one.error.zip(other.error);
            let error = within.map(|(one, other)| (one.hypot(other).max(RESOLUTION), KNOWN));
            (if error.is_some() { Basis::WithinRuns } else { Basis::Nothing }, error)
        }
        _ => {
            let basis = Basis::BetweenRuns { before: before.len() as u32, after: after.len() as u32 };
            (basis, Some(between(before, after)))
        }
    };
    Some(Estimate {
        before: mean(&one).exp(),
        after: mean(&other).exp(),
        log_ratio: mean(&other) - mean(&one),
        error,
        basis,
        bound: Bound::Exact,
        scatter: scatter(before, after),
    })
}

fn logs(side: &[Sample]) -> Vec<f64> {
    side.iter().map(|sample| sample.value.ln()).collect()
}

/// The standard error of the difference of means, and its degrees of freedom.
fn between(before: &[Sample], after: &[Sample]) -> (f64, f64) {
    let known = |side: &[Sample]| variance(side).map(|variance| (variance, side.len() as f64 - 1.0));
    let (one, other) = (known(before), known(after));
    let part = |own: Option<(f64, f64)>, borrowed: Option<(f64, f64)>, side: &[Sample]| {
        let (variance, df) = own.or(borrowed).unwrap_or_default();
        (variance / side.len() as f64, df)
    };
    let parts = [part(one, other, before), part(other, one, after)];
    let error = parts.iter().map(|(variance, _)| variance).sum::<f64>().sqrt();
    let df = match (one, other) {
        (Some(_), Some(_)) => effective_degrees_of_freedom(&parts),
        // One estimate of the scatter serves both.
        (Some((_, df)), None) | (None, Some((_, df))) => df,
        (None, None) => 1.0,
    };
    (error.max(RESOLUTION), df)
}

/// The variance of logarithms between the runs of a side, and no less than the runs themselves say: few may agree by chance.
/// `None` of a single run.
fn variance(side: &[Sample]) -> Option<f64> {
    if side.len() < 2 {
        return None;
    }
    let within: Vec<f64> = side.iter().filter_map(|sample| sample.error).map(|error| error.powi(2)).collect();
    Some(standard_deviation(&logs(side)).powi(2).max(mean(&within)))
}

/// The standard deviation between the runs of a side, of both together.
fn scatter(before: &[Sample], after: &[Sample]) -> Option<f64> {
    let weighted = |side: &[Sample]| variance(side).map(|variance| (variance, side.len() as f64 - 1.0));
    let parts: Vec<(f64, f64)> = [weighted(before), weighted(after)].into_iter().flatten().collect();
    let df: f64 = parts.iter().map(|(_, df)| df).sum();
    let total: f64 = parts.iter().map(|(variance, df)| variance * df).sum();
    (df > 0.0).then(|| (total / df).sqrt())
}

#[cfg(test)]
mod tests {
    use super::Pairing::{Apart, Rounds};
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let all = values.iter().map(|value| Sample::of(*value, None)).collect();
        Samples { all, at_least: false }
    }

    fn around(value: f64, share: f64) -> Samples {
        let ci = [value / (1.0 + share), value * (1.0 + share)];
        Samples { all: vec![Sample::of(value, Some(ci))], at_least: false }
    }

    #[test]
    fn single_runs_have_the_intervals_of_both() {
        let found = estimate(&around(1_000.0, 0.03), &around(1_200.0, 0.04), Apart).expect("both");
        assert!((found.ratio() - 1.2).abs() < 1e-12);
        let [low, high] = found.interval().expect("within");
        let half_width = 1.03f64.ln().hypot(1.04f64.ln());
        assert!(
            (low - 1.2 * (-half_width).exp()).abs() < 1e-5 && (high - 1.2 * half_width.exp()).abs() < 1e-5
        );
        assert_eq!((found.basis, found.scatter), (Basis::WithinRuns, None));
        let alone = estimate(&samples(&[5.0]), &samples(&[6.0]), Apart).expect("both");
        assert_eq!((alone.interval(), alone.basis), (None, Basis::Nothing));
    }

    /// Worked by hand: logarithms 0, 0.02, 0.04 and 0.1, 0.14, whose variances are 4e-4 and 8e-4.
    #[test]
    fn repeats_are_compared_by_welchs_t() {
        let exp = |logs: &[f64]| samples(&logs.iter().map(|log| log.exp()).collect::<Vec<_>>());
        let found = estimate(&exp(&[0.0, 0.02, 0.04]), &exp(&[0.1, 0.14]), Apart).expect("both");
        let (error, df) = found.error.expect("an error");
        let (one, other) = (4e-4 / 3.0, 8e-4 / 2.0);
        assert!((found.log_ratio - 0.1).abs() < 1e-12);
        assert!((error - f64::sqrt(one + other)).abs() < 1e-12);
        assert!((df - (one + other) * (one + other) / (one * one / 2.0 + other * other)).abs() < 1e-9);
        assert_eq!(found.basis, Basis::BetweenRuns { before: 3, after: 2 });
    }

    #[test]
    fn a_single_run_is_taken_to_scatter_as_the_other_side_does() {
        let before = [1.0f64.exp(), 1.02f64.exp(), 1.04f64.exp()];
        let found = estimate(&samples(&before), &samples(&[1.12f64.exp()]), Apart).expect("both");
        let (error, df) = found.error.expect("an error");
        assert!((error - (4e-4f64 * (1.0 + 1.0 / 3.0)).sqrt()).abs() < 1e-9 && df == 2.0);
    }

    #[test]
    fn rounds_of_one_experiment_cancel_what_they_share() {
        let (before, after) = ([100.0, 200.0, 400.0], [110.0, 222.0, 438.0]);
        let paired = estimate(&samples(&before), &samples(&after), Rounds).expect("both");
        let apart = estimate(&samples(&before), &samples(&after), Apart).expect("both");
        let excludes_one = |found: &Estimate| found.interval().is_some_and(|[low, _]| low > 1.0);
        assert!(excludes_one(&paired) && !excludes_one(&apart));
        assert_eq!(paired.basis, Basis::Rounds { rounds: 3 });
        let missed = Samples { all: vec![None, Sample::of(5.0, None), None], at_least: false };
        assert_eq!(
            estimate(&missed, &samples(&before), Rounds).expect("both").basis,
            Basis::BetweenRuns { before: 1, after: 3 }
        );
    }

    #[test]
    fn runs_that_agree_by_chance_are_not_surer_than_they_are_alone() {
        let side = Samples { all: vec![around(100.0, 0.05).all[0]; 3], at_least: false };
        let (error, _) = estimate(&side, &side, Apart).and_then(|found| found.error).expect("an error");
        assert!((error - 1.05f64.ln() / NORMAL_95 * (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_bound_allows_what_it_proves() {
        let at_least = |mut of: Samples| {
            of.at_least = true;
            of
        };
        let (one, other) = (samples(&[1.0]), samples(&[2.0]));
        let bound = |one: Samples, other: Samples| estimate(&one, &other, Apart).map(|found| found.bound);
        assert_eq!(bound(one.clone(), at_least(other.clone())), Some(Bound::AtLeast));
        assert_eq!(bound(at_least(one.clone()), other.clone()), Some(Bound::AtMost));
        assert_eq!(bound(at_least(one), at_least(other)), Some(Bound::Unknown));
        assert!(Bound::AtLeast.allows_rise() && !Bound::AtLeast.allows_fall());
        assert!(!Bound::Unknown.allows_rise() && !Bound::Unknown.allows_fall());
    }

    #[test]
    fn nothing_and_nonsense_have_no_ratio() {
        assert!(estimate(&samples(&[]), &samples(&[1.0]), Apart).is_none());
        assert!(estimate(&samples(&[0.0, f64::NAN]), &samples(&[1.0]), Rounds).is_none());
        let open = Sample::of(10.0, Some([0.0, 20.0])).expect("a sample");
        assert!((open.error.expect("an error") - 2.0f64.ln() / NORMAL_95).abs() < 1e-12);
    }

    #[test]
    fn repeats_that_would_do() {
        let spread = samples(&[99.0, 100.0, 101.0]);
        let scatter = estimate(&spread, &spread, Apart).and_then(|found| found.scatter).expect("a scatter");
        assert!((scatter - 0.01).abs() < 1e-4);
        // t of 8 degrees of freedom: 2.306 two-sided, 1.860 one-sided; of 6: 2.447, 1.943.
        assert!((2.306 + 1.860) * 0.01 * f64::sqrt(2.0 / 5.0) < 1.03f64.ln());
        assert!((2.447 + 1.943) * 0.01 * f64::sqrt(2.0 / 4.0) > 1.03f64.ln());
        let apart = Basis::BetweenRuns { before: 3, after: 3 };
        let needed = |basis| [0.01, 0.005].map(|scatter| repeats_for(scatter, 1.03f64.ln(), basis));
        assert_eq!(needed(apart), [Some(5), Some(3)]);
        assert_eq!(repeats_for(1.0, 0.001, apart), None);
        // t of 5 degrees of freedom: 2.571, 2.015; of 4: 2.776, 2.132.
        assert!((2.571 + 2.015) * 0.01 * f64::sqrt(2.0 / 6.0) < 1.03f64.ln());
        assert!((2.776 + 2.132) * 0.01 * f64::sqrt(2.0 / 5.0) > 1.03f64.ln());
        assert_eq!(needed(Basis::Rounds { rounds: 3 }), [Some(6), Some(3)]);
        assert_eq!(needed(Basis::Turns { pairs: 6 }), [Some(6), Some(6)], "fewer are not paired");
    }
}
