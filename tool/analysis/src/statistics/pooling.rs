//! Several estimates of the same thing made into one, by random effects.
//!
//! Each estimate knows its own error. Measurements that were made at different times, or on different steps, differ by more
//! than that: the variance between them is estimated by the method of Paule and Mandel ("Consensus values and weighting
//! factors", J. Research NBS 87(5), 1982), which chooses it so that the weighted squares are what they are expected to be.
//! It needs no distribution and, with few estimates, errs less than that of DerSimonian and Laird (Veroniki et al.,
//! "Methods to estimate the between-study variance", Research Synthesis Methods 7, 2016).
//!
//! Where there are enough estimates, the interval is that of Hartung and Knapp ("A refined method for the meta-analysis of
//! controlled clinical trials", Statistics in Medicine 20, 2001): the scatter that was seen, and Student's t with its degrees
//! of freedom. It holds the truth as often as it says whether there is a variance between estimates or not. With few that
//! would be very wide, so the errors of the estimates count as they are.

use crate::statistics::t_95;

/// An estimate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) error: f64,
    pub(crate) degrees_of_freedom: f64,
    /// What went into it, such as the time measured; any unit.
    pub(crate) weight: f64,
}

/// The variance between estimates of the same thing that their own errors do not explain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Between {
    pub(crate) variance: f64,
    /// How well that is known; 0 where nothing was estimated twice.
    pub(crate) degrees_of_freedom: f64,
    /// The scatter that was seen, as a share of what the errors and the variance make expected: 1, or less where estimates
    /// are nearer to one another than that without any variance between them.
    seen: f64,
}

/// The pooled estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pooled {
    pub(crate) value: f64,
    pub(crate) error: f64,
    pub(crate) degrees_of_freedom: f64,
}

impl Pooled {
    /// The 95 % interval of something that cannot be negative.
    pub(crate) fn interval(&self) -> [f64; 2] {
        let half_width = t_95(self.degrees_of_freedom) * self.error;
        [(self.value - half_width).max(0.0), self.value + half_width]
    }
}

/// Two estimates that disagree are taken to say as much about the disagreement as three.
const FEWEST_TO_DISAGREE: f64 = 2.0;

/// With so many degrees of freedom, the scatter that was seen makes the interval.
const ENOUGH: f64 = 3.0;

/// Estimates that are nearer to one another than this share of what their errors make expected agree by their resolution:
/// counts of a server whose times are constant, for example.
const LEAST_SEEN: f64 = 0.1;

/// How often the interval in which the variance lies is halved.
const HALVINGS: usize = 60;

impl Between {
    /// The variance that groups have in common, each of several estimates of one thing.
    pub(crate) fn of(groups: &[Vec<Estimate>]) -> Self {
        let groups: Vec<Vec<Estimate>> = groups.iter().map(|group| evened(group)).collect();
        let degrees_of_freedom: f64 = groups.iter().map(|group| group.len() as f64 - 1.0).sum();
        if degrees_of_freedom <= 0.0 {
            return Self::default();
        }
        let excess = |variance: f64| {
            groups.iter().map(|group| squares(group, variance)).sum::<f64>() - degrees_of_freedom
        };
        let known = degrees_of_freedom.max(FEWEST_TO_DISAGREE);
        let variance = root(excess, most(&groups));
        let seen = (1.0 + excess(variance) / degrees_of_freedom).clamp(LEAST_SEEN, 1.0);
        Self { variance, degrees_of_freedom: known, seen: if variance > 0.0 { 1.0 } else { seen } }
    }

    /// The same of something that many times as large.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { variance: self.variance * factor * factor, ..self }
    }
}

/// The weighted mean, where estimates scatter by `between` beyond their own errors. `None` without estimates.
pub(crate) fn pooled(all: &[Estimate], between: Between) -> Option<Pooled> {
    let evened = evened(all);
    let total: f64 = evened.iter().map(|one| precision(one, between.variance)).sum();
    if all.is_empty() || total <= 0.0 {
        return None;
    }
    let share = |one: &Estimate| precision(one, between.variance) / total;
    let shares: Vec<f64> = evened.iter().map(share).collect();
    let over = |term: &dyn Fn(&Estimate) -> f64| -> Vec<f64> {
        all.iter().zip(&shares).map(|(one, share)| share * share * term(one)).collect()
    };
    let own = over(&|one| one.error.powi(2));
    let parts = own.iter().zip(all).map(|(variance, one)| (*variance, one.degrees_of_freedom));
    let shared = over(&|_| between.variance).iter().sum::<f64>();
    let parts: Vec<(f64, f64)> = parts.chain([(shared, between.degrees_of_freedom)]).collect();
    let value = all.iter().zip(&shares).map(|(one, share)| share * one.value).sum();
    let error = (own.iter().sum::<f64>() + shared).sqrt();
    Some(if between.degrees_of_freedom < ENOUGH {
        Pooled { value, error, degrees_of_freedom: effective_degrees_of_freedom(&parts) }
    } else {
        Pooled { value, error: error * between.seen.sqrt(), degrees_of_freedom: between.degrees_of_freedom }
    })
}

/// The weight of each estimate in [`pooled`]; they sum to one.
pub(crate) fn weights(all: &[Estimate], between: Between) -> Vec<f64> {
    let precisions: Vec<f64> = evened(all).iter().map(|one| precision(one, between.variance)).collect();
    let total: f64 = precisions.iter().sum();
    precisions.iter().map(|precision| precision / total).collect()
}

/// The degrees of freedom of a sum of variances, each given with its own (Satterthwaite 1946).
pub(crate) fn effective_degrees_of_freedom(parts: &[(f64, f64)]) -> f64 {
    let total: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let known = parts.iter().filter(|(variance, _)| *variance > 0.0);
    let weighted: f64 = known.map(|(variance, df)| variance * variance / df.max(1.0)).sum();
    if weighted > 0.0 { (total * total / weighted).max(1.0) } else { f64::from(u16::MAX) }
}

/// The same with errors that depend only on what went into each estimate. Weights by errors as they were estimated would
/// lean towards estimates that happen to look precise.
fn evened(all: &[Estimate]) -> Vec<Estimate> {
    let usable = |one: &&Estimate| one.weight > 0.0;
    let count = all.iter().filter(usable).count() as f64;
    let rate =
        all.iter().filter(usable).map(|one| one.error.powi(2) * one.weight).sum::<f64>() / count.max(1.0);
    let even = |one: &Estimate| {
        let error = if one.weight > 0.0 { (rate / one.weight).sqrt() } else { one.error };
        Estimate { error, ..*one }
    };
    all.iter().map(even).collect()
}

fn precision(one: &Estimate, between: f64) -> f64 {
    (one.error.powi(2) + between).max(f64::MIN_POSITIVE.sqrt()).recip()
}

/// Weighted squares around the weighted mean.
fn squares(group: &[Estimate], between: f64) -> f64 {
    let total: f64 = group.iter().map(|one| precision(one, between)).sum();
    let mean = group.iter().map(|one| precision(one, between) / total * one.value).sum::<f64>();
    group.iter().map(|one| precision(one, between) * (one.value - mean).powi(2)).sum()
}

/// A variance above which the squares are fewer than expected.
fn most(groups: &[Vec<Estimate>]) -> f64 {
    let spread = |group: &Vec<Estimate>| {
        let values = || group.iter().map(|one| one.value);
        let range = values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min);
        if range.is_finite() { range * range * group.len() as f64 } else { 0.0 }
    };
    groups.iter().map(spread).sum()
}

/// Where a falling function crosses zero between 0 and `most`; 0 where it is negative everywhere.
fn root(falling: impl Fn(f64) -> f64, most: f64) -> f64 {
    if falling(0.0) <= 0.0 {
        return 0.0;
    }
    let halved = |(low, high): (f64, f64), _| {
        let middle = f64::midpoint(low, high);
        if falling(middle) > 0.0 { (middle, high) } else { (low, middle) }
    };
    let (low, high) = (0..HALVINGS).fold((0.0, most), halved);
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, error: f64) -> Estimate {
        Estimate { value, error, degrees_of_freedom: 9.0, weight: 1.0 }
    }

    fn alone(all: &[Estimate]) -> Option<Pooled> {
        pooled(all, Between::of(&[all.to_vec()]))
    }

    #[test]
    fn estimates_that_agree_narrow_the_error() {
        let found = alone(&[estimate(100.0, 2.0), estimate(102.0, 2.0)]).expect("two");
        assert_eq!(found.value, 101.0);
        assert!((found.degrees_of_freedom - 18.0).abs() < 1e-9, "{found:?}");
        assert!((found.error - 2.0f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn estimates_that_disagree_widen_it() {
        let found = alone(&[estimate(100.0, 1.0), estimate(110.0, 1.0)]).expect("two");
        assert_eq!(found.value, 105.0);
        // Standard error of the mean of 100 and 110: 5.
        assert!((found.error - 5.0).abs() < 1e-9, "{found:?}");
        assert!((2.0..2.2).contains(&found.degrees_of_freedom), "{found:?}");
    }

    #[test]
    fn nothing_says_nothing() {
        assert_eq!(alone(&[]), None);
        assert_eq!(Between::of(&[vec![estimate(1.0, 0.1)]]), Between::default());
    }

    /// The equation that defines the method.
    #[test]
    fn the_squares_are_what_they_are_expected_to_be() {
        let all = [(10.0, 1.0), (14.0, 1.2), (9.0, 0.8), (12.0, 0.9), (17.0, 1.1)];
        let all: Vec<Estimate> = all.iter().map(|(value, error)| estimate(*value, *error)).collect();
        let between = Between::of(std::slice::from_ref(&all));
        assert!((squares(&evened(&all), between.variance) - 4.0).abs() < 1e-6, "{between:?}");
    }

    /// Groups around different levels have their scatter in common.
    #[test]
    fn groups_share_their_scatter() {
        let group = |level: f64| vec![estimate(level - 3.0, 0.1), estimate(level + 3.0, 0.1)];
        let found = Between::of(&[group(100.0), group(500.0), group(900.0)]);
        assert!((found.variance - 18.0).abs() < 0.1 && found.degrees_of_freedom == 3.0, "{found:?}");
    }

    /// Normal estimates with an error of 1 and a scatter between them of none, one or three times that.
    #[test]
    fn intervals_cover_whatever_lies_between() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        for scatter in [0.0, 1.0, 3.0] {
            let mut covered = 0;
            for _ in 0..2_000 {
                let all: Vec<Estimate> =
                    (0..5).map(|_| estimate(50.0 + scatter * normal() + normal(), 1.0)).collect();
                let [low, high] = alone(&all).expect("five").interval();
                covered += usize::from(low <= 50.0 && 50.0 <= high);
            }
            assert!((1_860..=1_960).contains(&covered), "scatter {scatter}: {covered} of 2000");
        }
    }
}
