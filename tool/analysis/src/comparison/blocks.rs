//! Variants measured in randomised blocks: how far apart they are, and how sure that is.
//!
//! In each round of a workload every variant is measured once, in a random order. The logarithm of what was measured is
//! the sum of a part of the variant, a part of the round, and chance:
//!
//! ```text
//! ln x(variant, round) = variant + round + chance
//! ```
//!
//! Where chance scatters all variants alike, its scatter is estimated from all of them together, with
//! (variants - 1)(rounds - 1) degrees of freedom, so that few rounds suffice. A variant that scatters more than the others has
//! a scatter of its own, with rounds - 1 degrees of freedom, and differences to it have both (Welch 1947; Satterthwaite 1946).
//! What a round does to all is read from those that scatter alike.
//! All differences hold together by Tukey's studentized range (Tukey 1953; with unequal scatter Games and Howell 1976), those to
//! a baseline by Dunnett's points (Dunnett 1955). Two variants are compared in the rounds that both completed, however many
//! those are (Kramer 1956); the scatter is that of the rounds that all completed.
//!
//! A measurement that is only a lower bound makes its variant look slower than it is. So it counts where its variant is to be
//! ahead of another. Where its variant is to be behind, it must be so with such measurements and without: rounds in which the
//! generator was the limit are mostly those in which the variant was fast.
//!
//! Much of chance is that processors are slower at one moment than at another, by what the neighbours of a virtual machine
//! do. Where their speed was measured beside, its logarithm is a covariate (analysis of covariance; Fisher 1932): its slope
//! is estimated within rounds and variants that scatter alike, what it explains is taken out, and the error of the slope is in the
//! intervals.
//! This holds only while speed is what neighbours make it, and not what a variant makes it: where speeds differ between
//! variants by more than chance (Tukey), they are left out.

use std::{collections::BTreeMap, f64::consts::SQRT_2};

use crate::statistics::{
    chi_squared_exceeds, dunnett::dunnett, mean::mean, studentized_range::studentized_range,
};

/// Variances that differ as much by chance in a quarter of all cases are not pooled: with few rounds the test sees little,
/// and pooling a variant that scatters more makes orders that are none.
const MAY_BE_POOLED: f64 = 0.25;
/// With fewer rounds no order is claimed: it cannot be seen whether the variances differ.
pub const ROUNDS_MIN: usize = 3;

/// Which differences hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    /// Those of all pairs.
    Pairs,
    /// Those to one of the variants.
    ToBaseline,
}

/// Critical points, each computed once: they are integrals.
#[derive(Debug, Default)]
pub(crate) struct CriticalPoints(BTreeMap<(Family, usize, u64, u64), f64>);

impl CriticalPoints {
    /// Half the width of the intervals of differences, in their standard errors, if `wrong` is the chance that any of them
    /// misses.
    fn half_width(&mut self, family: Family, variants: usize, df: f64, wrong: f64) -> f64 {
        let point = || match family {
            Family::Pairs => studentized_range(variants, df, wrong) / SQRT_2,
            Family::ToBaseline => dunnett(variants - 1, df, wrong),
        };
        *self.0.entry((family, variants, df.to_bits(), wrong.to_bits())).or_insert_with(point)
    }
}

/// The difference of two means of logarithms, with an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    pub(crate) mean: f64,
    pub(crate) half_width: f64,
}

impl Difference {
    /// The lower end of its interval.
    pub(crate) fn least(&self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end of its interval.
    pub(crate) fn most(&self) -> f64 {
        self.mean + self.half_width
    }
}

/// The share of the errors that goes to the question whether the speed of the processors depends on the variant: where chance
/// alone would set the speeds of variants so far apart less often, it does.
const OF_SPEED: f64 = 0.2;
/// With fewer degrees of freedom left, none is spent on a slope.
const DF_FOR_SLOPE: f64 = 8.0;

/// What was measured of one variant, by round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures<'a> {
    /// The figure.
    pub(crate) of: &'a [Option<f64>],
    /// The same of rounds in which it is only a lower bound.
    pub(crate) at_least: &'a [Option<f64>],
    /// The speed of the processors meanwhile, where it is known.
    pub(crate) speed: &'a [Option<f64>],
}

/// Measurements of some variants, in rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks {
    /// One row for each variant with one measurement for each round that it completed.
    rows: Vec<Vec<Option<Logs>>>,
    /// What the speed of the processors explains, if it was measured.
    slope: Option<Slope>,
    /// What chance does to a single measurement of each variant.
    variances: Vec<f64>,
    /// For each pair of variants, half the width of the interval of their difference, in its standard errors.
    points: Vec<Vec<f64>>,
}

/// The logarithms of a figure and of the speed of the processors.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Logs {
    figure: f64,
    /// Whether it is no lower bound.
    exact: bool,
    speed: Option<f64>,
}

/// How far a figure follows the speed of the processors.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slope {
    slope: f64,
    /// How exact it is.
    variance: f64,
}

impl Blocks {
    /// Reads figures of some variants. `None` unless all of them completed three rounds together.
    pub(crate) fn new(
        figures: &[Figures<'_>],
        family: Family,
        wrong: f64,
        points: &mut CriticalPoints,
    ) -> Option<Self> {
        let rounds = figures.iter().map(|row| row.of.len()).max()?;
        let rows: Vec<Vec<Option<Logs>>> =
            figures.iter().map(|row| (0..rounds).map(|round| logs(row, round)).collect()).collect();
        let common: Vec<Vec<Logs>> = (0..rounds)
            .filter_map(|round| rows.iter().map(|row| row[round]).collect::<Option<Vec<Logs>>>())
            .collect();
        if figures.len() < 2 || common.len() < ROUNDS_MIN {
            return None;
        }
        let is_timed = rows.iter().flatten().flatten().all(|one| one.speed.is_some());
        let all = Residuals::of(&common, (0..rows.len()).collect());
        let by_speed = is_timed && !all.speeds_differ(&common, wrong * OF_SPEED, points);
        let wrong = if is_timed { wrong * (1.0 - OF_SPEED) } else { wrong };
        let (residuals, slope) = all.of_those_alike(&common, by_speed);
        let scatter = residuals.scatter(slope);
        let point = |one: &Variance, other: &Variance, points: &mut CriticalPoints| {
            points.half_width(family, rows.len(), one.df_beside(other), wrong)
        };
        let mut row = |one: &Variance| scatter.iter().map(|other| point(one, other, points)).collect();
        let points: Vec<Vec<f64>> = scatter.iter().map(&mut row).collect();
        let variances = scatter.iter().map(|one| one.variance).collect();
        Some(Blocks { rows, slope, variances, points })
    }

    /// Whether the speed of the processors is allowed for.
    pub(crate) fn allow_for_speed(&self) -> bool {
        self.slope.is_some()
    }

    /// Variant `above` less variant `below`, in rounds in which both are known exactly.
    pub(crate) fn difference(&self, above: usize, below: usize) -> Option<Difference> {
        self.difference_where(above, below, |(above, below)| above.exact && below.exact)
    }

    /// By how much `above` is ahead of `below` at least: also in rounds that only bound it from below. The rounds that bound `below`
    /// may be those in which it was fast by chance: the others alone make it look slower than all of them do. Or something was in
    /// its way in them. So whichever puts it less far behind counts.
    pub(crate) fn lead(&self, above: usize, below: usize) -> Option<Difference> {
        let exact = self.difference_where(above, below, |(_, below)| below.exact)?;
        let all = self.difference_where(above, below, |_| true)?;
        Some(if all.least() < exact.least() { all } else { exact })
    }

    fn difference_where(
        &self,
        above: usize,
        below: usize,
        counts: impl Fn(&(Logs, Logs)) -> bool,
    ) -> Option<Difference> {
        let rounds = self.rows.get(above)?.iter().zip(self.rows.get(below)?);
        let both: Vec<(Logs, Logs)> =
            rounds.filter_map(|(above, below)| above.zip(*below)).filter(counts).collect();
        if both.is_empty() {
            return None;
        }
        let speeds = |(above, below): &(Logs, Logs)| above.speed.unwrap_or(0.0) - below.speed.unwrap_or(0.0);
        let slope = self.slope.map_or(0.0, |found| found.slope);
        let differences: Vec<f64> =
            both.iter().map(|pair| pair.0.figure - pair.1.figure - slope * speeds(pair)).collect();
        let apart = mean(&both.iter().map(speeds).collect::<Vec<f64>>());
        let of_slope = self.slope.map_or(0.0, |found| apart.powi(2) * found.variance);
        let of_chance = (self.variances.get(above)? + self.variances.get(below)?) / differences.len() as f64;
        let half_width = self.points.get(above)?.get(below)? * (of_chance + of_slope).sqrt();
        Some(Difference { mean: mean(&differences), half_width })
    }
}

fn logs(row: &Figures<'_>, round: usize) -> Option<Logs> {
    let of = |figures: &[Option<f64>]| figures.get(round).copied().flatten().filter(is_figure).map(f64::ln);
    let (exact, at_least) = (of(row.of), of(row.at_least));
    Some(Logs { figure: exact.or(at_least)?, exact: exact.is_some(), speed: of(row.speed) })
}

/// Whether it can be compared on the logarithm.
pub(crate) fn is_figure(figure: &f64) -> bool {
    *figure > 0.0 && figure.is_finite()
}

/// What is left of measurements without the parts of their variants and rounds. Those of the rounds are what the variants
/// that scatter alike show of them: one that scatters more would scatter all others.
struct Residuals {
    /// The variants that scatter alike.
    alike: Vec<usize>,
    /// Of all variants, one for each round.
    figures: Vec<Vec<f64>>,
    /// The same of the speed, where it is known.
    speeds: Option<Vec<Vec<f64>>>,
}

impl Residuals {
    /// Of rounds that have a measurement of each variant.
    fn of(rounds: &[Vec<Logs>], alike: Vec<usize>) -> Self {
        let variants = rounds.first().map_or(0, Vec::len);
        let rows = |read: fn(&Logs) -> Option<f64>| -> Option<Vec<Vec<f64>>> {
            (0..variants).map(|variant| rounds.iter().map(|round| read(&round[variant])).collect()).collect()
        };
        let figures = rows(|logs| Some(logs.figure)).unwrap_or_default();
        Residuals {
            figures: residuals(&figures, &alike),
            speeds: rows(|logs| logs.speed).map(|speeds| residuals(&speeds, &alike)),
            alike,
        }
    }

    /// Those of the same rounds where variants that scatter more or less than the others were taken away one by one; and the slope
    /// over the speed, if it is asked for, of the rest.
    fn of_those_alike(mut self, rounds: &[Vec<Logs>], by_speed: bool) -> (Self, Option<Slope>) {
        loop {
            let slope = if by_speed { self.slope() } else { None };
            let Some(odd) = self.odd_one(slope) else { return (self, slope) };
            self = Self::of(rounds, self.alike.into_iter().filter(|variant| *variant != odd).collect());
        }
    }

    /// Degrees of freedom of those that scatter alike.
    fn df(&self) -> f64 {
        let rounds = self.figures.first().map_or(0, Vec::len) as f64;
        (self.alike.len() as f64 - 1.0) * (rounds - 1.0)
    }

    /// Whether the mean speeds of two variants lie further apart than chance explains (Tukey), which may err with this chance.
    fn speeds_differ(&self, rounds: &[Vec<Logs>], wrong: f64, points: &mut CriticalPoints) -> bool {
        let Some(speeds) = &self.speeds else { return false };
        let (variants, df) = (speeds.len(), self.df());
        let squares: f64 = speeds.iter().flatten().map(|speed| speed.powi(2)).sum();
        let error = (squares / df / rounds.len() as f64).sqrt();
        let apart = SQRT_2 * error * points.half_width(Family::Pairs, variants, df, wrong);
        let mean_of = |variant: usize| {
            mean(&rounds.iter().filter_map(|round| round[variant].speed).collect::<Vec<f64>>())
        };
        let ends = (0..variants)
            .map(mean_of)
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], mean| [low.min(mean), high.max(mean)]);
        ends[1] - ends[0] > apart
    }

    /// The slope of the figures over the speeds (least squares), if it can be spared a degree of freedom.
    fn slope(&self) -> Option<Slope> {
        let (speeds, df) = (self.speeds.as_ref()?, self.df());
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            let pairs = self.alike.iter().flat_map(|row| self.figures[*row].iter().zip(&speeds[*row]));
            pairs.map(|(figure, speed)| of(*figure, *speed)).sum()
        };
        let squares = sum(&|_, speed| speed.powi(2));
        if squares <= 0.0 || df <= DF_FOR_SLOPE {
            return None;
        }
        let slope = sum(&|figure, speed| figure * speed) / squares;
        let variance = sum(&|figure, speed| (figure - slope * speed).powi(2)) / (df - 1.0);
        Some(Slope { slope, variance: variance / squares })
    }

    /// The sum of the squares that the speed does not explain, of one variant.
    fn squares(&self, variant: usize, slope: Option<Slope>) -> f64 {
        let slope = slope.map_or(0.0, |found| found.slope);
        let figures = self.figures[variant].iter().enumerate();
        let speed = |round: usize| self.speeds.as_ref().map_or(0.0, |speeds| speeds[variant][round]);
        figures.map(|(round, figure)| (figure - slope * speed(round)).powi(2)).sum()
    }

    /// Degrees of freedom of each of those that scatter alike.
    fn df_each(&self, slope: Option<Slope>) -> f64 {
        (self.df() - if slope.is_some() { 1.0 } else { 0.0 }) / self.alike.len() as f64
    }

    /// The variant that scatters more, or less, than the others by more than chance.
    fn odd_one(&self, slope: Option<Slope>) -> Option<usize> {
        let mut by_squares: Vec<(f64, usize)> =
            self.alike.iter().map(|variant| (self.squares(*variant, slope), *variant)).collect();
        by_squares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let squares: Vec<f64> = by_squares.iter().map(|(squares, _)| *squares).collect();
        let df = self.df_each(slope);
        if by_chance(&squares, df) >= MAY_BE_POOLED {
            return None;
        }
        let (lower, upper) = (&squares[..squares.len() - 1], &squares[1..]);
        let odd =
            if by_chance(lower, df) >= by_chance(upper, df) { by_squares.last() } else { by_squares.first() };
        odd.map(|(_, variant)| *variant)
    }

    /// The variance of a measurement of each variant: that of those which scatter alike together, of others that scatter more
    /// their own.
    fn scatter(&self, slope: Option<Slope>) -> Vec<Variance> {
        let squares: Vec<f64> = (0..self.figures.len()).map(|variant| self.squares(variant, slope)).collect();
        let of_alike = || self.alike.iter().map(|variant| squares[*variant]);
        let (least, most) = (of_alike().fold(f64::INFINITY, f64::min), of_alike().fold(0.0, f64::max));
        // Those taken away by chance were the largest: as the next largest they still count (Winsor; Tukey 1962).
        let within = mean(&squares.iter().map(|one| one.clamp(least.min(most), most)).collect::<Vec<f64>>());
        let df_each = self.df_each(slope);
        let pooled =
            Variance { variance: within / df_each, df: df_each * self.alike.len() as f64, pooled: true };
        let df = self.figures.first().map_or(0, Vec::len) as f64 - 1.0;
        let own = |squares: f64| Variance { variance: squares / df, df, pooled: false };
        squares.iter().map(|one| if *one <= most { pooled } else { own(*one) }).collect()
    }
}

/// The variance of a measurement, and how well it is known.
#[derive(Debug, Clone, Copy)]
struct Variance {
    variance: f64,
    df: f64,
    /// Whether it is that of several variants together.
    pooled: bool,
}

impl Variance {
    /// Degrees of freedom of the variance of a difference (Satterthwaite), rounded down.
    fn df_beside(&self, other: &Self) -> f64 {
        if self.pooled && other.pooled {
            return self.df;
        }
        let of_own = |one: &Self| one.variance.powi(2) / one.df;
        let df = (self.variance + other.variance).powi(2) / (of_own(self) + of_own(other));
        if df.is_finite() { df.floor().max(1.0) } else { self.df.min(other.df) }
    }
}

/// Rows without their own means, and without what the columns of some of them show of these.
fn residuals(rows: &[Vec<f64>], of: &[usize]) -> Vec<Vec<f64>> {
    let columns = rows.first().map_or(0, Vec::len);
    let of_column = |column: usize| of.iter().map(|row| rows[*row][column]).sum::<f64>() / of.len() as f64;
    let of_columns: Vec<f64> = (0..columns).map(of_column).collect();
    let all = mean(&of_columns);
    let of_row = |row: &Vec<f64>| {
        let own = mean(row);
        row.iter().zip(&of_columns).map(|(one, column)| one - own - column + all).collect()
    };
    rows.iter().map(of_row).collect()
}

/// How often chance alone would make the variances of variants differ as much (Bartlett 1937), from the squares of their
/// residuals. Of two variants the residuals are each other's mirror image, and say nothing.
fn by_chance(squares: &[f64], df: f64) -> f64 {
    let count = squares.len() as f64;
    let pooled = mean(squares);
    if count < 3.0 || pooled <= 0.0 {
        return 1.0;
    }
    let logs: f64 = squares.iter().map(|squares| (squares.max(pooled * 1e-12) / pooled).ln()).sum();
    let correction = 1.0 + (count + 1.0) / (3.0 * count * df);
    chi_squared_exceeds(count - 1.0, -df * logs / correction)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// A normal variable: the sum of twelve uniform ones.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// Variants of these figures in so many rounds that drift, with this scatter.
    fn measured(
        figures: &[f64],
        rounds: usize,
        scatter: impl Fn(usize) -> f64,
        random: &mut Rng,
    ) -> Vec<Vec<f64>> {
        let drift: Vec<f64> = (0..rounds).map(|_| 0.3 * normal(random)).collect();
        let of = |(variant, figure): (usize, &f64)| {
            drift.iter().map(|drift| figure * (drift + scatter(variant) * normal(random)).exp()).collect()
        };
        figures.iter().enumerate().map(of).collect()
    }

    /// Figures whose processors were not timed.
    fn alone(figures: &[Vec<Option<f64>>]) -> Vec<Figures<'_>> {
        figures.iter().map(|of| Figures { of, at_least: &[], speed: &[] }).collect()
    }

    fn blocks(figures: &[Vec<f64>], points: &mut CriticalPoints) -> Blocks {
        let some: Vec<Vec<Option<f64>>> =
            figures.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
        Blocks::new(&alone(&some), Family::Pairs, 0.05, points).expect("blocks")
    }

    fn claims(blocks: &Blocks, variants: usize) -> usize {
        let pairs = (0..variants).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs
            .filter(|(a, b)| {
                blocks.difference(*a, *b).is_some_and(|found| found.mean.abs() > found.half_width)
            })
            .count()
    }

    /// A program against itself: an order is claimed in at most 5 of 100, whatever the drift from round to round.
    #[test]
    fn the_same_ten_times_is_seldom_put_in_order() {
        let (mut random, mut points) = (Rng::with_seed(1), CriticalPoints::default());
        for rounds in [3, 6] {
            let wrong = (0..300)
                .filter(|_| {
                    let figures = measured(&[100.0; 10], rounds, |_| 0.05, &mut random);
                    claims(&blocks(&figures, &mut points), 10) > 0
                })
                .count();
            assert!(wrong <= 27, "{rounds} rounds: {wrong} of 300");
        }
    }

    /// The same where one of them scatters five times as much as the others.
    #[test]
    fn a_variant_that_scatters_more_does_not_make_orders() {
        let (mut random, mut points) = (Rng::with_seed(2), CriticalPoints::default());
        let wrong = (0..200)
            .filter(|_| {
                let figures =
                    measured(&[100.0; 6], 8, |variant| if variant == 0 { 0.1 } else { 0.02 }, &mut random);
                claims(&blocks(&figures, &mut points), 6) > 0
            })
            .count();
        assert!(wrong <= 20, "{wrong} of 200");
    }

    /// Ten variants 15 % apart with 3 % of scatter: six rounds tell nearly all neighbours apart.
    #[test]
    fn differences_are_found() {
        let mut random = Rng::with_seed(3);
        let figures: Vec<f64> = (0..10).map(|n| 1.15_f64.powi(n)).collect();
        let blocks = blocks(&measured(&figures, 6, |_| 0.03, &mut random), &mut CriticalPoints::default());
        assert_eq!(claims(&blocks, 10), 45);
        let found = blocks.difference(1, 0).expect("a difference");
        assert!((found.mean - 1.15_f64.ln()).abs() < found.half_width, "{found:?}");
    }

    /// Three rounds of ten variants, of which one is five times as fast as others, and two scatter ten times as much: what scatters
    /// alike is told apart as before, and the fast one from all.
    #[test]
    fn some_that_scatter_more_hide_no_order_of_the_others() {
        let mut random = Rng::with_seed(11);
        let figures = [500.0, 100.0, 100.0, 100.0, 100.0, 100.0, 50.0, 50.0, 100.0, 100.0];
        let scatter = |variant| if variant > 7 { 0.3 } else { 0.03 };
        let blocks = blocks(&measured(&figures, 3, scatter, &mut random), &mut CriticalPoints::default());
        let is_apart = |one: usize, other: usize| {
            blocks.difference(one, other).is_some_and(|found| found.mean > found.half_width)
        };
        assert!(
            (1..8).all(|other| is_apart(0, other)) && (1..6).all(|one| is_apart(one, 6) && is_apart(one, 7))
        );
    }

    /// One of ten scatters twenty times as much as the others, and follows the speed of the processors for reasons of its own. It
    /// scattered the means of the rounds, from which the others were measured, and set the slope of all: two 15 % apart were open.
    #[test]
    fn one_that_scatters_much_more_blurs_no_order_of_the_others() {
        let (mut random, mut points) = (Rng::with_seed(13), CriticalPoints::default());
        let truth: Vec<f64> = [100.0, 115.0].into_iter().chain([100.0; 8]).collect();
        let found = (0..50).filter(|_| {
            let mut all = beside_neighbours(&truth, 9, 0.1, &mut random);
            let [figures, speeds] = &mut all;
            for (figure, speed) in figures[9].iter_mut().zip(&speeds[9]) {
                let slower = speed.map_or(0.0, |speed| (speed / 1e9).ln());
                *figure = figure.map(|figure| figure * (10.0 * slower + 0.5 * normal(&mut random)).exp());
            }
            let blocks = Blocks::new(&with_speeds(&all), Family::Pairs, 0.01, &mut points).expect("blocks");
            (2..9).all(|other| blocks.difference(1, other).is_some_and(|found| found.mean > found.half_width))
        });
        assert!(found.count() >= 45);
    }

    /// A variant that scatters more, and was measured exactly in a single round: its differences have intervals.
    #[test]
    fn a_single_round_in_common_has_the_scatter_of_all() {
        let figures = measured(
            &[100.0; 6],
            4,
            |variant| if variant == 0 { 0.5 } else { 0.02 },
            &mut Rng::with_seed(12),
        );
        let some: Vec<Vec<Option<f64>>> =
            figures.into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
        let mut all = alone(&some);
        all[0] = Figures { of: &some[0][..1], at_least: &some[0], speed: &[] };
        let blocks = Blocks::new(&all, Family::Pairs, 0.05, &mut CriticalPoints::default()).expect("blocks");
        let width = |one, other| blocks.difference(one, other).expect("a difference").half_width;
        assert!(width(0, 1) > 2.0 * width(2, 1) && width(0, 1).is_finite() && width(2, 1) > 0.0);
    }

    /// Every difference is within its interval, all together, 95 times in 100.
    #[test]
    fn the_intervals_hold_together() {
        let (mut random, mut points) = (Rng::with_seed(4), CriticalPoints::default());
        let figures = [100.0, 120.0, 90.0, 130.0];
        let held = (0..400)
            .filter(|_| {
                let blocks = blocks(&measured(&figures, 4, |_| 0.04, &mut random), &mut points);
                (0..4).all(|a: usize| {
                    (0..4).filter(|b| *b != a).all(|b| {
                        let truth = (figures[a] / figures[b]).ln();
                        blocks
                            .difference(a, b)
                            .is_some_and(|found| (found.mean - truth).abs() <= found.half_width)
                    })
                })
            })
            .count();
        assert!((366..=396).contains(&held), "{held} of 400");
    }

    /// Compared with a baseline alone, fewer intervals need to hold together, and each is narrower.
    #[test]
    fn a_baseline_makes_intervals_narrower() {
        let mut random = Rng::with_seed(5);
        let figures = measured(&[100.0; 5], 5, |_| 0.03, &mut random);
        let figures: Vec<Vec<_>> =
            figures.into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
        let rows = alone(&figures);
        let [pairs, baseline] = [Family::Pairs, Family::ToBaseline].map(|family| {
            let blocks = Blocks::new(&rows, family, 0.05, &mut CriticalPoints::default());
            blocks.and_then(|blocks| blocks.difference(1, 0)).expect("a difference")
        });
        assert!(pairs.mean == baseline.mean && baseline.half_width < 0.95 * pairs.half_width);
    }

    /// A round that one variant missed counts for the others; three must be common to all.
    #[test]
    fn a_round_that_one_missed_counts_for_the_others() {
        let read = |rows: &[&[Option<f64>]]| {
            let rows: Vec<_> = rows.iter().map(|of| Figures { of, at_least: &[], speed: &[] }).collect();
            Blocks::new(&rows, Family::Pairs, 0.05, &mut CriticalPoints::default())
        };
        let [one, other, third] = [
            [Some(1.0), Some(2.0), None, Some(4.0)],
            [Some(2.0), Some(4.0), Some(9.0), Some(8.0)],
            [Some(2.1), Some(3.9), Some(36.0), Some(8.0)],
        ];
        let found = read(&[&one, &other]).expect("three rounds");
        assert!((found.difference(1, 0).expect("a difference").mean - 2.0_f64.ln()).abs() < 1e-12);
        let found = read(&[&one, &other, &third]).expect("three rounds");
        let mean = |above, below| found.difference(above, below).expect("a difference").mean;
        assert!((mean(1, 0) - 2.0_f64.ln()).abs() < 1e-12 && mean(2, 1) > 0.3);
        assert_eq!(read(&[&one[..3], &other]), None);
        assert_eq!(read(&[&one]), None);
        assert_eq!(read(&[&one, &[Some(1.0), Some(0.0), Some(1.0), Some(1.0)]]), None);
    }

    /// The same four times, each of which misses a fifth of its rounds: an order is claimed in at most 5 of 100.
    #[test]
    fn rounds_that_are_missed_make_no_orders() {
        let (mut random, mut points) = (Rng::with_seed(6), CriticalPoints::default());
        let wrong = (0..300)
            .filter(|_| {
                let figures = measured(&[100.0; 4], 12, |_| 0.05, &mut random);
                let mut missing = |figure: f64| Some(figure).filter(|_| random.f64() >= 0.2);
                let some: Vec<Vec<Option<f64>>> =
                    figures.into_iter().map(|row| row.into_iter().map(&mut missing).collect()).collect();
                Blocks::new(&alone(&some), Family::Pairs, 0.05, &mut points)
                    .is_some_and(|blocks| claims(&blocks, 4) > 0)
            })
            .count();
        assert!(wrong <= 27, "{wrong} of 300");
    }

    /// Variants of these figures on processors whose speed scatters by `speeds`, and which they follow by half; with what was
    /// measured of the speed.
    fn beside_neighbours(
        figures: &[f64],
        rounds: usize,
        speeds: f64,
        random: &mut Rng,
    ) -> [Vec<Vec<Option<f64>>>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        for figure in figures {
            let (mut row, mut speed) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let slower = speeds * normal(random);
                row.push(Some(figure * (0.5 * slower + 0.02 * normal(random)).exp()));
                speed.push(Some(1e9 * (slower + 0.005 * normal(random)).exp()));
            }
            all[0].push(row);
            all[1].push(speed);
        }
        all
    }

    fn with_speeds(all: &[Vec<Vec<Option<f64>>>; 2]) -> Vec<Figures<'_>> {
        all[0].iter().zip(&all[1]).map(|(of, speed)| Figures { of, at_least: &[], speed }).collect()
    }

    /// The speed of the processors scatters five times as much as the figures do beside: its part is taken out, differences of
    /// 15 % are found in six rounds, and none where there is none.
    #[test]
    fn what_the_speed_of_the_processors_explains_is_taken_out() {
        let (mut random, mut points) = (Rng::with_seed(7), CriticalPoints::default());
        let truth: Vec<f64> = (0..8).map(|n| 1.15_f64.powi(n)).collect();
        let mut found = [0, 0];
        for _ in 0..50 {
            let all = beside_neighbours(&truth, 6, 0.2, &mut random);
            let blocks = |figures: &[Figures<'_>], points: &mut CriticalPoints| {
                Blocks::new(figures, Family::Pairs, 0.05, points).expect("blocks")
            };
            found[0] += claims(&blocks(&with_speeds(&all), &mut points), 8);
            found[1] += claims(&blocks(&alone(&all[0]), &mut points), 8);
        }
        assert!(found[0] >= 50 * 27 && found[1] < 50 * 22, "{found:?}");
        let wrong = (0..300)
            .filter(|_| {
                let all = beside_neighbours(&[100.0; 6], 4, 0.2, &mut random);
                let blocks = Blocks::new(&with_speeds(&all), Family::Pairs, 0.05, &mut points);
                claims(&blocks.expect("blocks"), 6) > 0
            })
            .count();
        assert!(wrong <= 27, "{wrong} of 300");
    }

    /// One of several programs that are the same keeps the neighbouring core busy, so that its own processor is slower. That is
    /// its doing, and must not be made up for.
    #[test]
    fn a_speed_that_depends_on_the_variant_is_left_out() {
        let mut random = Rng::with_seed(8);
        let mut all = beside_neighbours(&[100.0; 6], 6, 0.05, &mut random);
        all[1][2].iter_mut().flatten().for_each(|speed| *speed *= 0.8);
        let points = &mut CriticalPoints::default();
        let blocks = Blocks::new(&with_speeds(&all), Family::Pairs, 0.05, points).expect("blocks");
        assert!(!blocks.allow_for_speed() && claims(&blocks, 6) == 0);
        let all = beside_neighbours(&[100.0; 6], 6, 0.05, &mut random);
        let blocks = Blocks::new(&with_speeds(&all), Family::Pairs, 0.05, points).expect("blocks");
        assert!(blocks.allow_for_speed());
    }

    /// One variant scatters five times as much as the others, beside neighbours: the same six are seldom put in order.
    #[test]
    fn speeds_and_unequal_scatter_together_make_no_orders() {
        let (mut random, mut points) = (Rng::with_seed(9), CriticalPoints::default());
        let wrong = (0..200)
            .filter(|_| {
                let mut all = beside_neighbours(&[100.0; 6], 8, 0.2, &mut random);
                for figure in all[0][0].iter_mut().flatten() {
                    *figure *= (0.1 * normal(&mut random)).exp();
                }
                all[0][1][3] = None;
                let blocks = Blocks::new(&with_speeds(&all), Family::Pairs, 0.05, &mut points);
                claims(&blocks.expect("blocks"), 6) > 0
            })
            .count();
        assert!(wrong <= 20, "{wrong} of 200");
    }
}
