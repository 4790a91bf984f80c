//! What is decided about the order of variants while rounds are still being made.
//!
//! Whoever looks at a comparison after every round and stops at the first difference that seems significant finds one too
//! often. So it is looked at after a few rounds that are fixed beforehand, and the chance of a wrong claim is shared out
//! over the looks (alpha spending: Lan and DeMets 1983): look k may err with a chance of 2 / ((k + 1) (k + 2)) of all, which
//! adds up to one, and the last look takes what is left. What was decided at one look stays.
//!
//! A variant is settled once it is in order with every other; it needs no more rounds, and later looks compare the rest
//! alone (successive elimination). Until a first wrong claim no two variants that are the same are in order with
//! each other, so they are in the same look, whose intervals hold for all of them: the share of that look bounds
//! its error whatever was settled before.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Blocks, CriticalPoints, Difference, Family, Figures, ROUNDS_MIN, is_figure};
use super::ratio::Ratio;

/// Comparisons that claim a wrong order, at most, of all.
const WRONG: f64 = 0.05;
/// The share of them that goes to CPU time per request. It is kept for that from the first look on: that the generator became the
/// limit later must not undo what was decided before.
const BY_CPU: f64 = 0.2;
/// A variant that missed more of the rounds of a look than this is left out of it: how much all scatter is seen in rounds that
/// all completed.
const MISSED: f64 = 0.5;

/// What is known of one variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Requests per second, by round.
    pub(crate) throughput_per_s: &'a [Option<f64>],
    /// The same of rounds that only bound it from below.
    pub(crate) at_least_per_s: &'a [Option<f64>],
    /// CPU time per request, by round.
    pub(crate) cpu_us: &'a [Option<f64>],
    /// The speed of the processors, by round, where it is known.
    pub(crate) speed: &'a [Option<f64>],
    /// Whether its throughput is only a lower bound.
    pub(crate) lower_bound: bool,
    /// Whether the generator was the limit in a round: in the others it was near, so that throughput tells little.
    pub(crate) generator_bound: bool,
}

/// What two variants are put in order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Criterion {
    Throughput,
    /// CPU time per request: less is better.
    CpuTime,
}

/// Whether rounds are still being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    UnderWay,
    Ended,
}

/// What is known of the order of some variants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    throughput: Seen,
    cpu: Seen,
    /// For each variant, whether its throughput is a lower bound, and whether the generator was the limit in a round.
    bounds: Vec<(bool, bool)>,
    /// The variant that all others are compared with; `None`: all are compared with each other.
    baseline: Option<usize>,
    /// How many rounds the latest look was at.
    rounds: usize,
}

/// What was seen of one figure, by pairs of variants.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    /// The larger, the smaller.
    above: BTreeSet<(usize, usize)>,
    differences: BTreeMap<(usize, usize), Interval>,
    /// Whether a look allowed for the speed of the processors.
    allows_for_speed: bool,
}

/// A difference of logarithms: the latest estimate, and where it lies by all looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    estimate: f64,
    ends: [f64; 2],
}

/// Looks at variants, those of earlier looks first. `None` without three rounds.
pub(crate) fn standing(
    rows: &[Row<'_>],
    baseline: Option<usize>,
    progress: Progress,
    points: &mut CriticalPoints,
) -> Option<Standing> {
    let mut standing = Standing {
        throughput: Seen::default(),
        cpu: Seen::default(),
        bounds: rows.iter().map(|row| (row.lower_bound, row.generator_bound)).collect(),
        baseline,
        rounds: 0,
    };
    let throughput: Vec<_> = rows
        .iter()
        .map(|row| Figures { of: row.throughput_per_s, at_least: row.at_least_per_s, speed: row.speed })
        .collect();
    let cpu: Vec<_> =
        rows.iter().map(|row| Figures { of: row.cpu_us, at_least: &[], speed: row.speed }).collect();
    let rounds = throughput.iter().map(|row| row.of.len()).max()?;
    let by_cpu = rows.iter().any(|row| row.generator_bound);
    for Look { rounds, wrong } in looks(rounds, progress) {
        let open: Vec<usize> = (0..rows.len()).filter(|variant| standing.stays_in(*variant)).collect();
        let look = |share: f64| Look { rounds, wrong: share * wrong };
        standing.rounds = rounds;
        standing.throughput.look(&open, &throughput, look(1.0 - BY_CPU), baseline, points);
        if by_cpu {
            standing.cpu.look(&open, &cpu, look(BY_CPU), baseline, points);
        }
    }
    (!standing.throughput.differences.is_empty()).then_some(standing)
}

/// When it is looked, and with which chance of a wrong claim.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    /// How many rounds are looked at.
    rounds: usize,
    wrong: f64,
}

/// The looks at so many rounds: after 3, 4, 6, 9, 13, ..; and at the end at all of them.
fn looks(rounds: usize, progress: Progress) -> Vec<Look> {
    let planned = std::iter::successors(Some(ROUNDS_MIN), |rounds| Some(rounds * 3 / 2));
    let shares = (2..).map(|number: u32| 2.0 * WRONG / f64::from(number * (number + 1)));
    let planned = planned.zip(shares).map(|(rounds, wrong)| Look { rounds, wrong });
    let ended = progress == Progress::Ended;
    let mut looks: Vec<Look> =
        planned.take_while(|look| look.rounds < rounds || (look.rounds == rounds && !ended)).collect();
    if ended && rounds >= ROUNDS_MIN {
        let spent: f64 = looks.iter().map(|look| look.wrong).sum();
        looks.push(Look { rounds, wrong: WRONG - spent });
    }
    looks
}

impl Standing {
    /// What puts variant `one` behind the other; `None` if nothing does. A lower bound on throughput puts no variant
    /// behind another.
    pub(crate) fn behind(&self, one: usize, other: usize) -> Option<Criterion> {
        let (lower_bound, _) = *self.bounds.get(one)?;
        if !lower_bound && self.throughput.above.contains(&(other, one)) {
            return Some(Criterion::Throughput);
        }
        let by_throughput = !self.bounds.get(other)?.0 && self.throughput.above.contains(&(one, other));
        let generator_bound = [one, other].iter().any(|variant| self.bounds[*variant].1);
        let costs_more = generator_bound && self.cpu.above.contains(&(one, other));
        (costs_more && !by_throughput).then_some(Criterion::CpuTime)
    }

    /// The throughput of one variant over that of another.
    pub(crate) fn ratio(&self, above: usize, below: usize) -> Option<Ratio> {
        self.throughput.ratio(above, below)
    }

    /// The CPU time per request of one variant over that of another.
    pub(crate) fn cpu_ratio(&self, above: usize, below: usize) -> Option<Ratio> {
        self.cpu.ratio(above, below)
    }

    /// Whether the comparison of throughput allows for the speed of the processors.
    pub(crate) fn allows_for_speed(&self) -> bool {
        self.throughput.allows_for_speed
    }

    /// Whether a variant is in order with every other that it is compared with.
    pub(crate) fn is_settled(&self, variant: usize) -> bool {
        let in_order =
            |other: usize| self.behind(variant, other).is_some() || self.behind(other, variant).is_some();
        match self.baseline {
            Some(baseline) if baseline != variant => in_order(baseline),
            _ => (0..self.bounds.len()).filter(|other| *other != variant).all(in_order),
        }
    }

    /// How wide an interval of the difference of two variants would be after one round, as half of it, on average over the pairs
    /// that are not in order; after n rounds it is this over the square root of n. `None` if all are in order.
    pub(crate) fn scatter(&self) -> Option<f64> {
        let in_order = |(one, other): (usize, usize)| {
            self.behind(one, other).is_some() || self.behind(other, one).is_some()
        };
        let open = self.throughput.differences.iter().filter(|(pair, _)| !in_order(**pair));
        let widths: Vec<f64> =
            open.map(|(_, Interval { ends: [low, high], .. })| (high - low) / 2.0).collect();
        let mean = widths.iter().sum::<f64>() / widths.len() as f64;
        (!widths.is_empty()).then_some(mean * (self.rounds as f64).sqrt())
    }

    /// Whether two variants that are not in order may yet differ by this factor or more, in what would put them in order.
    pub(crate) fn may_differ_by(&self, factor: f64) -> bool {
        let near = factor.ln();
        let is_open = |(one, other)| self.behind(one, other).is_none() && self.behind(other, one).is_none();
        let may_differ = |pair: &(usize, usize)| {
            let reaches = |Interval { ends: [low, high], .. }: &Interval| *low <= -near || *high >= near;
            self.figures(*pair).any(|seen| seen.differences.get(pair).is_none_or(reaches))
        };
        self.throughput.differences.keys().any(|pair| is_open(*pair) && may_differ(pair))
    }

    /// The figures that may yet put two variants in order.
    fn figures(&self, (one, other): (usize, usize)) -> impl Iterator<Item = &Seen> {
        let [one, other] = [one, other].map(|variant| self.bounds[variant]);
        let throughput = (!one.0 || !other.0).then_some(&self.throughput);
        let cpu = (one.1 || other.1).then_some(&self.cpu);
        throughput.into_iter().chain(cpu)
    }

    /// Whether the next look is at this variant too: what others are compared with stays.
    fn stays_in(&self, variant: usize) -> bool {
        self.baseline == Some(variant) || !self.is_settled(variant)
    }
}

impl Seen {
    fn look<'f>(
        &mut self,
        open: &[usize],
        figures: &[Figures<'f>],
        look: Look,
        baseline: Option<usize>,
        points: &mut CriticalPoints,
    ) {
        let row = |variant: usize| {
            let Figures { of, at_least, speed } = figures[variant];
            let begun = |figures: &'f [Option<f64>]| figures.get(..look.rounds).unwrap_or(figures);
            Figures { of: begun(of), at_least: begun(at_least), speed }
        };
        let made = |variant: usize| {
            let Figures { of, at_least, .. } = row(variant);
            of.iter().chain(at_least).flatten().filter(|figure| is_figure(figure)).count()
        };
        let enough = |variant: &usize| made(*variant) as f64 >= (1.0 - MISSED) * look.rounds as f64;
        let mut present: Vec<usize> = open.iter().copied().filter(enough).collect();
        let family = if baseline.is_some() { Family::ToBaseline } else { Family::Pairs };
        let blocks = loop {
            let rows: Vec<_> = present.iter().map(|variant| row(*variant)).collect();
            if let Some(blocks) = Blocks::new(&rows, family, look.wrong, points) {
                break blocks;
            }
            // Too few rounds are common to all: without the variant that missed most there may be enough.
            let others = present.iter().copied().filter(|one| baseline != Some(*one));
            let missed_most = others.min_by_key(|one| made(*one)).filter(|_| present.len() > 2);
            let Some(missed_most) = missed_most else { return };
            present.retain(|one| *one != missed_most);
        };
        self.allows_for_speed |= blocks.allow_for_speed();
        let is_compared =
            |one: usize, other: usize| baseline.is_none_or(|baseline| one == baseline || other == baseline);
        for (place, &above) in present.iter().enumerate() {
            for (other, &below) in present.iter().enumerate() {
                if above != below
                    && is_compared(above, below)
                    && let Some(lead) = blocks.lead(place, other)
                {
                    let back = blocks.lead(other, place);
                    self.note((above, below), lead, back, blocks.difference(place, other));
                }
            }
        }
    }

    /// Takes note of how far one variant is ahead of another at least, of how far behind, and of their difference where both are
    /// known exactly.
    fn note(
        &mut self,
        pair: (usize, usize),
        lead: Difference,
        back: Option<Difference>,
        exact: Option<Difference>,
    ) {
        let decided = self.above.contains(&pair) || self.above.contains(&(pair.1, pair.0));
        if lead.least() > 0.0 && !decided {
            self.above.insert(pair);
        }
        let found = exact.unwrap_or(lead);
        let most = back.map_or(found.most(), |back| -back.least());
        let ends = [found.least().min(lead.least()), found.most().max(most)];
        let seen = self.differences.entry(pair).or_insert(Interval { estimate: found.mean, ends });
        let both = [seen.ends[0].max(ends[0]), seen.ends[1].min(ends[1])];
        // Intervals of two looks that exclude each other: one of them is wrong, and the later knows more.
        *seen = Interval { estimate: found.mean, ends: if both[0] <= both[1] { both } else { ends } };
    }

    fn ratio(&self, above: usize, below: usize) -> Option<Ratio> {
        if above == below {
            return Some(Ratio { ratio: 1.0, ci: [1.0, 1.0] });
        }
        let Interval { estimate, ends: [low, high] } = *self.differences.get(&(above, below))?;
        // All looks hold together, so their common interval does, and a wider one as well.
        Some(Ratio { ratio: estimate.exp(), ci: [low.min(estimate), high.max(estimate)].map(f64::exp) })
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// A normal variable: the sum of twelve uniform ones.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    fn rows(figures: &[Vec<Option<f64>>]) -> Vec<Row<'_>> {
        let row = |throughput_per_s| Row {
            throughput_per_s,
            at_least_per_s: &[],
            cpu_us: &[],
            speed: &[],
            lower_bound: false,
            generator_bound: false,
        };
        figures.iter().map(|figures| row(figures.as_slice())).collect()
    }

    /// An experiment on variants of these true figures, whose rounds drift by 30 % and whose trials scatter by `scatter`.
    /// What is settled gets no more rounds; the others go on until so many trials have been made.
    fn experiment(
        truth: &[f64],
        scatter: f64,
        trials: usize,
        random: &mut Rng,
        points: &mut CriticalPoints,
    ) -> (Vec<Vec<Option<f64>>>, Standing) {
        let mut figures: Vec<Vec<Option<f64>>> = vec![Vec::new(); truth.len()];
        let mut open: Vec<usize> = (0..truth.len()).collect();
        let mut left = trials;
        while left >= open.len() && !open.is_empty() {
            left -= open.len();
            let drift = 0.3 * normal(random);
            for &variant in &open {
                figures[variant].push(Some(truth[variant] * (drift + scatter * normal(random)).exp()));
            }
            if let Some(seen) = standing(&rows(&figures), None, Progress::UnderWay, points) {
                open.retain(|variant| !seen.is_settled(*variant));
            }
        }
        let seen = standing(&rows(&figures), None, Progress::Ended, points).expect("three rounds");
        (figures, seen)
    }

    fn pairs(variants: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..variants).flat_map(move |one| (0..variants).map(move |other| (one, other)))
    }

    /// A program against itself, looked at again and again: an order is claimed in at most 5 of 100.
    #[test]
    fn the_same_ten_times_is_seldom_put_in_order_however_often_it_is_looked() {
        let (mut random, mut points) = (Rng::with_seed(1), CriticalPoints::default());
        let wrong = (0..1_000)
            .filter(|_| {
                let (_, seen) = experiment(&[100.0; 10], 0.05, 200, &mut random, &mut points);
                pairs(10).any(|(one, other)| seen.behind(one, other).is_some())
            })
            .count();
        assert!(wrong <= 50, "{wrong} of 1000");
    }

    /// Four that are far apart are settled early; that does not make orders among the six that are the same.
    #[test]
    fn what_is_settled_makes_no_order_among_the_rest() {
        let (mut random, mut points) = (Rng::with_seed(2), CriticalPoints::default());
        let truth = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 130.0, 170.0, 70.0, 50.0];
        let wrong = (0..1_000)
            .filter(|_| {
                let (_, seen) = experiment(&truth, 0.03, 150, &mut random, &mut points);
                pairs(6).any(|(one, other)| seen.behind(one, other).is_some())
            })
            .count();
        assert!(wrong <= 50, "{wrong} of 1000");
    }

    /// Ten variants 15 % apart are all told apart, with far fewer trials than there are.
    #[test]
    fn differences_are_found_and_then_no_more_rounds_are_made() {
        let (mut random, mut points) = (Rng::with_seed(3), CriticalPoints::default());
        let truth: Vec<f64> = (0..10).map(|n| 100.0 * 1.15_f64.powi(n)).collect();
        let mut found = 0;
        for _ in 0..100 {
            let (figures, seen) = experiment(&truth, 0.04, 400, &mut random, &mut points);
            let right = pairs(10).filter(|(one, other)| one < other);
            let right = right.filter(|(one, other)| seen.behind(*one, *other) == Some(Criterion::Throughput));
            found += usize::from(right.count() == 45);
            assert!(figures.iter().map(Vec::len).sum::<usize>() <= 130, "{figures:?}");
        }
        assert!(found >= 95, "{found} of 100");
    }

    /// The rounds go to the two that are close to each other.
    #[test]
    fn close_pairs_get_the_rounds() {
        let (mut random, mut points) = (Rng::with_seed(4), CriticalPoints::default());
        let mut found = 0;
        for _ in 0..100 {
            let (figures, seen) =
                experiment(&[100.0, 60.0, 104.0, 150.0, 200.0], 0.03, 100, &mut random, &mut points);
            let rounds: Vec<usize> = figures.iter().map(Vec::len).collect();
            assert!(rounds[0] == rounds[2] && [1, 3, 4].iter().all(|far| rounds[*far] <= 6), "{rounds:?}");
            found += usize::from(seen.behind(0, 2).is_some());
        }
        assert!(found >= 80, "{found} of 100");
    }

    /// Every ratio is within its interval, all together, 95 times in 100, also of those that are settled early; and
    /// decisions, ratios and intervals agree.
    #[test]
    fn the_intervals_hold_together_and_agree_with_the_order() {
        let (mut random, mut points) = (Rng::with_seed(5), CriticalPoints::default());
        let truth = [100.0, 103.0, 112.0, 130.0, 131.0];
        let held = (0..400)
            .filter(|_| {
                let (_, seen) = experiment(&truth, 0.03, 80, &mut random, &mut points);
                pairs(5).all(|(one, other)| {
                    let Ratio { ratio, ci: [low, high] } = seen.ratio(one, other).expect("compared");
                    assert!(low <= ratio && ratio <= high);
                    let claimed = seen.behind(one, other).is_some() || seen.behind(other, one).is_some();
                    assert_eq!(claimed, low > 1.0 || high < 1.0, "{ratio} {low} {high}");
                    let truth = truth[one] / truth[other];
                    low <= truth && truth <= high
                })
            })
            .count();
        assert!(held >= 370, "{held} of 400");
    }

    #[test]
    fn the_looks_share_the_errors_out() {
        let rounds =
            |made, progress| looks(made, progress).iter().map(|look| look.rounds).collect::<Vec<_>>();
        assert_eq!(rounds(10, Progress::UnderWay), [3, 4, 6, 9]);
        assert_eq!(rounds(10, Progress::Ended), [3, 4, 6, 9, 10]);
        assert_eq!(rounds(9, Progress::Ended), [3, 4, 6, 9]);
        assert_eq!(rounds(2, Progress::Ended), [0; 0]);
        for made in 3..40 {
            let spent: f64 = looks(made, Progress::Ended).iter().map(|look| look.wrong).sum();
            assert!((spent - WRONG).abs() < 1e-12);
            let under_way: f64 = looks(made, Progress::UnderWay).iter().map(|look| look.wrong).sum();
            assert!(under_way < WRONG);
        }
    }

    /// Half of a percent of scatter tells that two variants differ by less than 10 %, and not that they differ by 1 %.
    #[test]
    fn what_cannot_differ_much_is_known_before_the_order() {
        let (mut random, mut points) = (Rng::with_seed(6), CriticalPoints::default());
        let mut of = |truth: [f64; 3], scatter: f64| {
            let row =
                |truth: f64| (0..6).map(|_| Some(truth * (scatter * normal(&mut random)).exp())).collect();
            let figures: Vec<Vec<Option<f64>>> = truth.map(row).into();
            standing(&rows(&figures), None, Progress::UnderWay, &mut points).expect("six rounds")
        };
        let close = of([100.0, 100.1, 150.0], 0.005);
        assert!(close.behind(0, 2).is_some() && !close.is_settled(0));
        assert!(!close.may_differ_by(1.1) && close.may_differ_by(1.0001));
        assert!(of([100.0, 100.1, 150.0], 0.1).may_differ_by(1.1), "nothing is known of the first two");
    }

    /// Where the generator was the limit, CPU time per request tells apart what throughput cannot.
    #[test]
    fn lower_bounds_are_in_order_by_cpu_time() {
        let around = |figure: f64, scatter: f64| {
            [1.0, -1.0, 0.5, -0.5, 0.0].map(|off| Some(figure * (1.0 + off * scatter))).to_vec()
        };
        let (bound, faster) = (around(100.0, 0.01), around(101.0, -0.01));
        let (costly, cheap) = (around(20.0, 0.01), around(10.0, -0.01));
        let row = |throughput_per_s, cpu_us| Row {
            throughput_per_s,
            at_least_per_s: &[],
            cpu_us,
            speed: &[],
            lower_bound: true,
            generator_bound: true,
        };
        let (one, other) = (row(&bound, &costly), row(&faster, &cheap));
        let see = |one, other| {
            standing(&[one, other], None, Progress::Ended, &mut CriticalPoints::default()).expect("rounds")
        };
        let seen = see(one, other);
        assert_eq!((seen.behind(0, 1), seen.behind(1, 0)), (Some(Criterion::CpuTime), None));
        assert!((seen.cpu_ratio(0, 1).expect("a ratio").ratio - 2.0).abs() < 0.1);
        // Other work beside it says nothing of the cost of a request.
        let disturbed = |row| Row { generator_bound: false, ..row };
        let seen = see(disturbed(one), disturbed(other));
        assert_eq!((seen.behind(0, 1), seen.behind(1, 0)), (None, None));
    }

    /// A model that scatters was in order with one seven times as fast, and got no more rounds; then the generator became the limit
    /// of another, the errors were shared out anew, and the order was lost.
    #[test]
    fn what_was_decided_stays_when_the_generator_becomes_the_limit() {
        let figures: [Vec<Option<f64>>; 4] = [
            [5_018.0, 4_420.0, 4_724.0].map(Some).to_vec(),
            [731.0, 711.0, 840.0].map(Some).to_vec(),
            [9_198.0, 9_682.0, 9_706.0, 7_658.0].map(Some).to_vec(),
            [10_000.0, 9_662.0, 8_872.0, 9_850.0].map(Some).to_vec(),
        ];
        let rows = rows(&figures);
        let see = |rows: &[Row<'_>]| {
            standing(rows, None, Progress::Ended, &mut CriticalPoints::default()).expect("rounds")
        };
        let limited: Vec<_> = rows.iter().map(|row| Row { generator_bound: true, ..*row }).collect();
        for pair in pairs(4) {
            assert_eq!(see(&rows).behind(pair.0, pair.1), see(&limited).behind(pair.0, pair.1), "{pair:?}");
        }
    }

    /// A slow variant was in order with one ten times as fast and needed no more rounds; later rounds of the fast one showed the
    /// limit of the generator, were set aside, and the order was lost.
    #[test]
    fn rounds_that_only_bound_a_variant_from_below_put_it_ahead_and_never_behind() {
        let bounds = [1_000.0, 990.0, 1_010.0, 1_000.0].map(Some);
        let slow = [100.0, 101.0, 99.0, 100.0].map(Some);
        let fast = slow.map(|figure| figure.map(|figure| 100.0 * figure));
        let [slow, fast] = [&slow, &fast].map(|other| {
            let figures = [Vec::new(), other.to_vec()];
            let mut rows = rows(&figures);
            rows[0].at_least_per_s = &bounds;
            standing(&rows, None, Progress::Ended, &mut CriticalPoints::default()).expect("rounds")
        });
        assert_eq!(slow.behind(1, 0), Some(Criterion::Throughput));
        assert_eq!((fast.behind(0, 1), fast.behind(1, 0)), (None, None));
    }

    /// The same six times, each of which the generator limits in those rounds in which it is faster by chance. What is left of
    /// each is slower than it is: compared with all rounds of the others, it was behind them in most experiments.
    #[test]
    fn rounds_that_are_set_aside_for_being_fast_make_no_orders() {
        let (mut random, mut points) = (Rng::with_seed(7), CriticalPoints::default());
        let wrong = (0..100)
            .filter(|_| {
                let (mut exact, mut bounds) = (vec![Vec::new(); 6], vec![Vec::new(); 6]);
                for _ in 0..60 {
                    let drift = 0.1 * normal(&mut random);
                    for variant in 0..6 {
                        let chance = 0.05 * normal(&mut random);
                        let figure = Some(100.0 * (drift + chance.min(0.015)).exp());
                        let limited = chance > 0.015;
                        exact[variant].push(figure.filter(|_| !limited));
                        bounds[variant].push(figure.filter(|_| limited));
                    }
                }
                let mut rows = rows(&exact);
                for (row, bounds) in rows.iter_mut().zip(&bounds) {
                    (row.at_least_per_s, row.generator_bound) = (bounds, true);
                    row.lower_bound = 2 * bounds.iter().flatten().count() >= 60;
                }
                let seen = standing(&rows, None, Progress::Ended, &mut points).expect("rounds");
                pairs(6).any(|(one, other)| seen.behind(one, other).is_some())
            })
            .count();
        assert!(wrong <= 9, "{wrong} of 100");
    }

    #[test]
    fn a_variant_that_stops_early_costs_the_others_nothing() {
        let of = |figure: f64, rounds| {
            (0..rounds).map(|round| Some(figure * (1.0 + 0.01 * f64::from(round % 3)))).collect::<Vec<_>>()
        };
        let figures = [of(100.0, 3), of(100.5, 9), of(101.5, 9)];
        let seen =
            standing(&rows(&figures), None, Progress::Ended, &mut CriticalPoints::default()).expect("rounds");
        assert_eq!(seen.behind(1, 2), Some(Criterion::Throughput));
    }

    #[test]
    fn a_baseline_settles_a_variant_that_is_in_order_with_it() {
        let of = |figure: f64| [0.99, 1.0, 1.01].map(|off| Some(figure * off)).to_vec();
        let mut figures = [of(100.0), of(150.0), of(150.1)];
        figures[1][0] = Some(149.5);
        let see = |baseline| {
            standing(&rows(&figures), baseline, Progress::UnderWay, &mut CriticalPoints::default())
                .expect("rounds")
        };
        assert_eq!([0, 1, 2].map(|variant| see(Some(0)).is_settled(variant)), [true; 3]);
        assert_eq!([0, 1, 2].map(|variant| see(None).is_settled(variant)), [true, false, false]);
    }
}
