//! The order of variants, as far as the intervals support it.

use super::blocks::CriticalPoints;
use super::looks::{Criterion, Progress, Row, Standing, standing};
use super::ratio::{Ratio, ratio};
use super::{Entry, OfFastest, OrderFinding, Workload};
use crate::statistics::{mean::standard_deviation, normal_two_sided};
use crate::ticks::{failed_share, failures, many_failed};

/// A speed of the processors that varied by less is not worth a word.
const VARIED: f64 = 0.02;

/// Gives every entry of a workload its places and its share of the fastest, and sets the workload's findings.
///
/// Two entries are in order if the interval of their ratio excludes 1. With many pairs some would do so by chance, so the
/// intervals are wide enough that all of them hold together 95 times in 100. With three rounds or more, they come from
/// randomised blocks, looked at while rounds were being made ([`super::looks`]). With one or two, what differs from one round
/// to the next is not known, so no order is claimed. Figures without rounds, of older files, have the interval of each
/// figure, widened (Bonferroni). An entry whose figure is a lower bound is never placed behind another by its throughput;
/// where the generator was the limit, CPU time per request is compared. One whose requests mostly failed has no place.
pub fn order(work: &mut Workload) {
    let points = &mut CriticalPoints::default();
    let compared = compared(work);
    let order = Order::of(work, &compared, None, points);
    let placed: Vec<_> =
        compared.iter().map(|&index| (index, order.place(index), order.share(index))).collect();
    let mut findings = order.findings();
    let in_order = order.pairs_in_order();
    let baseline = baseline_of(work, &compared);
    let against = baseline.map(|place| (compared[place], Order::of(work, &compared, Some(place), points)));
    let shares: Vec<_> = against
        .iter()
        .flat_map(|(baseline, order)| compared.iter().map(|&index| (index, order.ratio(index, *baseline))))
        .collect();
    findings.extend(against.iter().map(|(baseline, order)| order.against(*baseline)));
    for (index, place, share) in placed {
        work.entries[index].place = Some(place);
        work.entries[index].of_fastest = share;
    }
    for (index, share) in shares {
        work.entries[index].of_baseline = share;
    }
    (work.ranking, work.in_order) = (findings, in_order);
}

/// The place of the baseline among the entries that can be compared.
fn baseline_of(work: &Workload, compared: &[usize]) -> Option<usize> {
    let baseline = work.baseline.as_ref()?;
    compared.iter().position(|&index| work.entries[index].variant == *baseline)
}

/// What further rounds of a workload may yet put in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StillOpen {
    /// The variants that are not in order with every other.
    pub variants: Vec<String>,
    /// Half the width of an interval of the logarithm of the ratio of two of them, if there were one round; after n rounds it is
    /// this over the square root of n. `None` where rounds are too few to tell.
    pub scatter: Option<f64>,
    /// Whether two of them may differ by [`WORTH_FINDING`] or more, as far as is known.
    pub may_differ_much: bool,
}

/// Variants that differ by this factor are to be told apart before rounds go to those that differ by less: an indifference zone
/// (Bechhofer 1954).
const WORTH_FINDING: f64 = 1.1;

/// What further rounds of a workload may yet put in order.
pub fn still_open(work: &Workload) -> StillOpen {
    let compared = compared(work);
    let baseline = baseline_of(work, &compared);
    let seen = standing_of(work, &compared, baseline, Progress::UnderWay, &mut CriticalPoints::default());
    let is_open = |place: usize| seen.as_ref().is_none_or(|seen| !seen.is_settled(place));
    let open = compared.iter().enumerate().filter(|(place, _)| compared.len() > 1 && is_open(*place));
    StillOpen {
        variants: open.map(|(_, index)| work.entries[*index].variant.clone()).collect(),
        scatter: seen.as_ref().and_then(Standing::scatter),
        may_differ_much: seen.as_ref().is_none_or(|seen| seen.may_differ_by(WORTH_FINDING)),
    }
}

/// The places in the list of the entries that can be compared.
fn compared(work: &Workload) -> Vec<usize> {
    let is_compared = |index: &usize| comparable(&work.entries[*index], work.overload);
    (0..work.entries.len()).filter(is_compared).collect()
}

fn standing_of(
    work: &Workload,
    compared: &[usize],
    baseline: Option<usize>,
    progress: Progress,
    points: &mut CriticalPoints,
) -> Option<Standing> {
    let row = |&index: &usize| {
        let entry = &work.entries[index];
        Row {
            throughput_per_s: &entry.throughput_by_round_per_s,
            at_least_per_s: &entry.at_least_by_round_per_s,
            cpu_us: &entry.cpu_us_per_request_by_round,
            speed: &entry.processor_speed_by_round,
            lower_bound: entry.lower_bound,
            generator_bound: entry.generator_was_limit(),
        }
    };
    standing(&compared.iter().map(row).collect::<Vec<_>>(), baseline, progress, points)
}

/// The order of entries that can be compared.
struct Order<'a> {
    entries: &'a [Entry],
    compared: &'a [usize],
    /// By rounds, if there are enough; its variants are those compared.
    seen: Option<Standing>,
    /// How many ratios hold together.
    pairs: usize,
}

impl<'a> Order<'a> {
    /// With a baseline (its place among those compared), its pairs alone are looked at.
    fn of(
        work: &'a Workload,
        compared: &'a [usize],
        baseline: Option<usize>,
        points: &mut CriticalPoints,
    ) -> Self {
        let others = compared.len().saturating_sub(1);
        let pairs = if baseline.is_some() { others } else { compared.len() * others / 2 };
        let seen = standing_of(work, compared, baseline, Progress::Ended, points);
        Order { entries: &work.entries, compared, seen, pairs }
    }

    /// How many rounds there are, if they are too few to compare by.
    fn few_rounds(&self) -> Option<u32> {
        let rounds = self.compared.iter().map(|&index| self.entries[index].throughput_by_round_per_s.len());
        let most = rounds.max().filter(|rounds| *rounds > 0 && self.seen.is_none())?;
        Some(most as u32)
    }

    fn over(&self, a: usize, b: usize) -> Option<Ratio> {
        match &self.seen {
            Some(seen) => seen.ratio(self.row(a)?, self.row(b)?),
            None if self.few_rounds().is_some() => None,
            None => {
                let z = normal_two_sided(1.0 - 0.05 / self.pairs.max(1) as f64);
                ratio_of(&self.entries[a], &self.entries[b], z)
            }
        }
    }

    fn row(&self, index: usize) -> Option<usize> {
        self.compared.iter().position(|&other| other == index)
    }

    fn behind(&self, a: usize, b: usize) -> Option<Criterion> {
        match &self.seen {
            Some(seen) => seen.behind(self.row(a)?, self.row(b)?),
            None => {
                let slower =
                    !self.entries[a].lower_bound && self.over(a, b).is_some_and(|ratio| ratio.ci[1] < 1.0);
                slower.then_some(Criterion::Throughput)
            }
        }
    }

    /// The best place and the worst.
    fn place(&self, index: usize) -> [u32; 2] {
        let before = self.compared.iter().filter(|&&other| self.behind(index, other).is_some()).count();
        let behind = self.compared.iter().filter(|&&other| self.behind(other, index).is_some()).count();
        [before + 1, self.compared.len() - behind].map(|place| place as u32)
    }

    /// Every pair in order, the variant that is ahead first.
    fn pairs_in_order(&self) -> Vec<[String; 2]> {
        let pairs =
            self.compared.iter().flat_map(|&ahead| self.compared.iter().map(move |&other| (ahead, other)));
        let decided = pairs.filter(|(ahead, other)| self.behind(*other, *ahead).is_some());
        decided.map(|(ahead, other)| [ahead, other].map(|one| self.entries[one].variant.clone())).collect()
    }

    fn share(&self, index: usize) -> Option<OfFastest> {
        let throughput = |index: usize| self.entries[index].throughput_per_s;
        // By what is compared, which allows for the speed of the processors, where that is known.
        let is_faster = |one: usize, other: usize| {
            let over = self.over(one, other).map(|over| over.ratio);
            over.unwrap_or(throughput(one) / throughput(other)) > 1.0
        };
        let fastest = self
            .compared
            .iter()
            .copied()
            .reduce(|best, one| if is_faster(one, best) { one } else { best })?;
        self.ratio(index, fastest)
    }

    /// The ratio of two throughputs; `None` where one of them is only a lower bound: the true ratio may be far from its interval.
    fn ratio(&self, above: usize, below: usize) -> Option<OfFastest> {
        let is_bound = |index: usize| self.entries[index].lower_bound;
        if above != below && (is_bound(above) || is_bound(below)) {
            return None;
        }
        let Ratio { ratio, ci } = self.over(above, below).filter(is_known)?;
        Some(OfFastest { ratio, ci })
    }

    /// What all others are beside a baseline.
    fn against(&self, baseline: usize) -> OrderFinding {
        let named = |is_it: &dyn Fn(usize) -> bool| {
            let others = self.compared.iter().filter(|index| **index != baseline);
            let found = others.filter(|index| is_it(**index));
            found.map(|index| self.entries[*index].variant.clone()).collect()
        };
        let ahead = |index: usize| self.behind(baseline, index).is_some();
        let behind = |index: usize| self.behind(index, baseline).is_some();
        OrderFinding::AgainstBaseline {
            baseline: self.entries[baseline].variant.clone(),
            ahead: named(&ahead),
            behind: named(&behind),
            open: named(&|index| !ahead(index) && !behind(index)),
        }
    }

    /// Findings about the places: the first, then the last, then what was compared by another figure than throughput.
    fn findings(&self) -> Vec<OrderFinding> {
        let mut placed: Vec<Placed<'_>> = self.compared.iter().map(|&index| self.placed(index)).collect();
        placed.sort_by(|a, b| b.entry.throughput_per_s.total_cmp(&a.entry.throughput_per_s));
        let all = placed.len() as u32;
        let first: Vec<&Placed<'_>> = placed.iter().filter(|one| one.place[0] == 1).collect();
        let mut findings = match (first.as_slice(), placed.as_slice()) {
            (_, []) => return vec![OrderFinding::NothingComparable],
            (_, [only]) => return vec![OrderFinding::OnlyOne { variant: only.entry.variant.clone() }],
            ([first], _) => vec![self.first(first, &placed)],
            (several, _) if several.len() == placed.len() => {
                return std::iter::once(self.undecided(&placed)).chain(self.processor_speed()).collect();
            }
            (several, _) => {
                let variants = several.iter().map(|one| one.entry.variant.clone()).collect();
                vec![OrderFinding::SeveralMayBeFirst { variants }]
            }
        };
        let mut last = placed.iter().filter(|one| one.place[1] == all);
        if let (Some(last), None) = (last.next(), last.next()) {
            findings.push(OrderFinding::Last {
                variant: last.entry.variant.clone(),
                of_fastest: self.share(last.index),
                of_compared: placed.len() < self.entries.len(),
            });
        }
        findings.extend(self.by_cpu_time(&placed));
        findings.extend(self.processor_speed());
        findings
    }

    /// The reason why no variant is ahead of another.
    fn undecided(&self, placed: &[Placed<'_>]) -> OrderFinding {
        if let Some(rounds) = self.few_rounds() {
            return OrderFinding::FewRounds { rounds };
        }
        match placed.iter().filter(|one| one.entry.lower_bound).count() {
            0 => OrderFinding::WithinIntervals,
            bounds => OrderFinding::LowerBounds { bounds: bounds as u32, figures: placed.len() as u32 },
        }
    }

    fn placed(&self, index: usize) -> Placed<'_> {
        Placed { index, entry: &self.entries[index], place: self.place(index) }
    }

    /// The one that is first, and the fastest of those that may be next.
    fn first(&self, first: &Placed<'_>, placed: &[Placed<'_>]) -> OrderFinding {
        let variant = first.entry.variant.clone();
        let others = placed.iter().filter(|one| one.index != first.index);
        // Of equals the first, which is the fastest.
        let Some(next) = others.min_by_key(|one| one.place[0]) else {
            return OrderFinding::OnlyOne { variant };
        };
        let next_name = next.entry.variant.clone();
        match (self.behind(next.index, first.index), self.cpu_over(next.index, first.index)) {
            (Some(Criterion::CpuTime), Some(ratio)) => {
                OrderFinding::Cheapest { variant, next: next_name, times_cpu: ratio.ratio }
            }
            _ => OrderFinding::First {
                variant,
                throughput_per_s: first.entry.throughput_per_s,
                next: next_name,
                times_next: self.over(first.index, next.index).map_or_else(
                    || first.entry.throughput_per_s / next.entry.throughput_per_s,
                    |over| over.ratio,
                ),
                at_least: first.entry.lower_bound,
            },
        }
    }

    fn cpu_over(&self, a: usize, b: usize) -> Option<Ratio> {
        self.seen.as_ref()?.cpu_ratio(self.row(a)?, self.row(b)?)
    }

    /// That the comparison allows for the speed of the processors, if that varied.
    fn processor_speed(&self) -> Option<OrderFinding> {
        self.seen.as_ref().filter(|seen| seen.allows_for_speed())?;
        let speeds = self.compared.iter().flat_map(|&index| &self.entries[index].processor_speed_by_round);
        let logs: Vec<f64> = speeds.flatten().map(|speed| speed.ln()).collect();
        let varied = standard_deviation(&logs);
        (varied >= VARIED).then_some(OrderFinding::ProcessorSpeed { varied })
    }

    /// Those that CPU time per request put in order with another, fastest first.
    fn by_cpu_time(&self, placed: &[Placed<'_>]) -> Option<OrderFinding> {
        let by_cpu = |one: usize, other: usize| self.behind(one, other) == Some(Criterion::CpuTime);
        let limited = placed.iter().filter(|one| {
            let others = placed.iter().map(|other| other.index);
            one.entry.generator_was_limit()
                && others.into_iter().any(|other| by_cpu(one.index, other) || by_cpu(other, one.index))
        });
        let variants: Vec<String> = limited.map(|one| one.entry.variant.clone()).collect();
        (!variants.is_empty()).then_some(OrderFinding::ByCpuTime { variants })
    }
}

/// An entry and its places.
struct Placed<'a> {
    index: usize,
    entry: &'a Entry,
    place: [u32; 2],
}

/// Whether a figure can be compared. The throughput beside many failures is no capacity, unless overload was asked for.
fn comparable(entry: &Entry, overload: bool) -> bool {
    let measured = entry.throughput_per_s > 0.0 && entry.throughput_per_s.is_finite();
    measured && (overload || !many_failed(failed_share(entry.completed, failures(&entry.errors))))
}

fn ratio_of(above: &Entry, below: &Entry, z: f64) -> Option<Ratio> {
    let figure = |entry: &Entry| (entry.throughput_per_s, entry.throughput_ci_per_s);
    ratio(figure(above), figure(below), z)
}

/// Whether a ratio is known well enough to show: within a factor of ten.
fn is_known(ratio: &Ratio) -> bool {
    ratio.ci[1] <= 10.0 * ratio.ratio
}

#[cfg(test)]
mod tests {
    use super::super::Limit;
    use super::*;
    use crate::run::{ResourceKind, Words};
    use crate::ticks::ErrorKind;

    /// A variant whose throughput is known to this share either way.
    fn entry(variant: &str, throughput_per_s: f64, known_to: f64) -> Entry {
        Entry {
            variant: variant.to_owned(),
            throughput_per_s,
            throughput_ci_per_s: [1.0 - known_to, 1.0 + known_to].map(|end| end * throughput_per_s),
            users: Some(100),
            completed: 10_000,
            ..Entry::default()
        }
    }

    fn ordered(entries: Vec<Entry>) -> Workload {
        let mut work = Workload { name: "100 KB".to_owned(), entries, ..Workload::default() };
        order(&mut work);
        work
    }

    fn places(work: &Workload) -> Vec<Option<[u32; 2]>> {
        work.entries.iter().map(|entry| entry.place).collect()
    }

    #[test]
    fn clear_differences_make_an_order() {
        let work = ordered(vec![
            entry("poll", 500.0, 0.01),
            entry("epoll", 1_200.0, 0.01),
            entry("uring", 1_000.0, 0.01),
        ]);
        assert_eq!(places(&work), [Some([3, 3]), Some([1, 1]), Some([2, 2])]);
        let first = OrderFinding::First {
            variant: "epoll".to_owned(),
            throughput_per_s: 1_200.0,
            next: "uring".to_owned(),
            times_next: 1.2,
            at_least: false,
        };
        assert_eq!(work.ranking[0], first);
        let OrderFinding::Last { variant, of_fastest: Some(share), of_compared: false } = &work.ranking[1]
        else {
            panic!("{:?}", work.ranking)
        };
        assert!(variant == "poll" && (share.ratio - 500.0 / 1_200.0).abs() < 1e-9, "{:?}", work.ranking);
        assert!(share.ci[0] > 0.4 && share.ci[1] < 0.44, "{share:?}");
    }

    /// Rounds that drift together: within each, one variant is a tenth ahead, though their own intervals overlap.
    #[test]
    fn rounds_tell_apart_what_drifts_together() {
        let measured = |variant, factor: f64| Entry {
            throughput_by_round_per_s: [900.0, 1_000.0, 1_200.0, 800.0]
                .map(|round| Some(round * factor))
                .into(),
            ..entry(variant, 1_000.0 * factor, 0.3)
        };
        let mut entries = vec![measured("epoll", 1.1), measured("poll", 1.0)];
        entries[0].throughput_by_round_per_s[1] = Some(1_111.0);
        let work = ordered(entries.clone());
        assert_eq!(places(&work), [Some([1, 1]), Some([2, 2])]);
        entries.iter_mut().for_each(|entry| entry.throughput_by_round_per_s.truncate(1));
        assert_eq!(places(&ordered(entries)), [Some([1, 2]), Some([1, 2])]);
    }

    #[test]
    fn no_order_is_claimed_within_the_intervals() {
        let work = ordered(vec![entry("epoll", 1_000.0, 0.03), entry("uring", 1_020.0, 0.03)]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2])]);
        assert_eq!(work.ranking, [OrderFinding::WithinIntervals]);
    }

    #[test]
    fn two_may_share_the_first_place() {
        let work = ordered(vec![
            entry("epoll", 1_000.0, 0.03),
            entry("uring", 1_020.0, 0.03),
            entry("polling", 300.0, 0.03),
        ]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2]), Some([3, 3])]);
        let variants = ["uring", "epoll"].map(str::to_owned).to_vec();
        assert_eq!(work.ranking[0], OrderFinding::SeveralMayBeFirst { variants });
    }

    /// Against a baseline a difference shows that is lost among all pairs.
    #[test]
    fn variants_are_compared_with_a_baseline() {
        let measured = |variant, factor: f64, off: [f64; 3]| Entry {
            throughput_by_round_per_s: off.map(|off| Some(1_000.0 * factor * (1.0 + off))).into(),
            ..entry(variant, 1_000.0 * factor, 0.1)
        };
        let entries = vec![
            measured("old", 1.0, [0.01, -0.01, 0.0]),
            measured("new", 1.3, [-0.01, 0.0, 0.01]),
            measured("same", 1.0, [0.0, 0.01, -0.01]),
            measured("slow", 0.7, [0.005, 0.0, -0.005]),
        ];
        let mut work =
            Workload { baseline: Some("old".to_owned()), entries: entries.clone(), ..Workload::default() };
        order(&mut work);
        let [ahead, behind, open] = ["new", "slow", "same"].map(|name| vec![name.to_owned()]);
        let against = OrderFinding::AgainstBaseline { baseline: "old".to_owned(), ahead, behind, open };
        assert_eq!(work.ranking.last(), Some(&against));
        let share = work.entries[1].of_baseline.expect("compared");
        assert!((share.ratio - 1.3).abs() < 0.01 && share.ci[0] > 1.2 && share.ci[1] < 1.4, "{share:?}");
        assert_eq!(work.entries[0].of_baseline, Some(OfFastest { ratio: 1.0, ci: [1.0, 1.0] }));
        let open = still_open(&work);
        assert_eq!(open.variants, ["old", "same"]);
        assert!(open.scatter.is_some_and(|scatter| scatter > 0.0), "{open:?}");
        // Too few rounds to compare within them: the intervals of the figures are taken.
        work.entries.iter_mut().for_each(|entry| entry.throughput_by_round_per_s.clear());
        order(&mut work);
        assert!(matches!(work.ranking.last(), Some(OrderFinding::AgainstBaseline { .. })));
        assert!(work.entries[1].of_baseline.is_some());
        work.baseline = None;
        order(&mut work);
        assert!(!work.ranking.iter().any(|found| matches!(found, OrderFinding::AgainstBaseline { .. })));
    }

    /// What the generator could not drive further may be faster than anything.
    #[test]
    fn a_lower_bound_is_never_called_slower() {
        let limited = Entry { lower_bound: true, ..entry("uring", 800.0, 0.01) };
        let work = ordered(vec![limited, entry("epoll", 1_000.0, 0.01), entry("poll", 500.0, 0.01)]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2]), Some([3, 3])]);
    }

    #[test]
    fn an_order_that_lower_bounds_prevent_is_not_put_down_to_intervals() {
        let bound = |variant, throughput| Entry { lower_bound: true, ..entry(variant, throughput, 0.01) };
        let work = ordered(vec![bound("1", 500.0), bound("2", 1_000.0)]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2])]);
        assert_eq!(work.ranking, [OrderFinding::LowerBounds { bounds: 2, figures: 2 }]);
    }

    /// The generator was the limit of the first, which may be twice as fast: the last was said to have 48 to 52 % of it.
    #[test]
    fn there_is_no_share_of_a_lower_bound() {
        let limited = Entry { lower_bound: true, ..entry("uring", 1_000.0, 0.01) };
        let work = ordered(vec![limited, entry("poll", 500.0, 0.01), entry("aio", 400.0, 0.01)]);
        let shares: Vec<_> = work.entries.iter().map(|entry| entry.of_fastest.map(|of| of.ratio)).collect();
        assert_eq!(shares, [Some(1.0), None, None]);
        assert!(matches!(&work.ranking[0], OrderFinding::First { at_least: true, .. }), "{:?}", work.ranking);
        assert_eq!(
            work.entries.iter().map(|entry| entry.place).collect::<Vec<_>>(),
            [1, 2, 3].map(|n| Some([n, n]))
        );
        assert!(
            matches!(&work.ranking[1], OrderFinding::Last { of_fastest: None, .. }),
            "{:?}",
            work.ranking
        );
    }

    #[test]
    fn a_share_that_may_be_anything_is_left_out() {
        let work = ordered(vec![entry("epoll", 1_000.0, 0.05), entry("aio", 370.0, 5.0)]);
        assert_eq!(work.entries[1].of_fastest, None);
        assert!(work.entries[0].of_fastest.is_some());
    }

    #[test]
    fn a_throughput_made_of_failures_has_no_place() {
        let mut refusing = entry("select", 9_000.0, 0.01);
        refusing.errors.insert(ErrorKind::Reset, 90_000);
        let entries = vec![refusing, entry("epoll", 1_000.0, 0.01)];
        let work = ordered(entries.clone());
        assert_eq!(places(&work), [None, Some([1, 1])]);
        let mut overload = Workload { overload: true, ..Workload { entries, ..work } };
        order(&mut overload);
        assert_eq!(places(&overload), [Some([1, 1]), Some([2, 2])]);
    }

    /// The first is ahead of the last, though either may share its place with the one between.
    #[test]
    fn a_pair_in_order_is_kept_where_places_overlap() {
        let work = ordered(vec![
            entry("epoll", 1_000.0, 0.02),
            entry("uring", 950.0, 0.08),
            entry("poll", 900.0, 0.02),
        ]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 3]), Some([2, 3])]);
        assert_eq!(work.in_order, [["epoll", "poll"].map(str::to_owned)]);
    }

    /// One of the models filled the generator in three rounds of fourteen: its throughput in the others told little, and was
    /// all that it was compared by.
    #[test]
    fn a_generator_that_was_the_limit_in_one_round_makes_cpu_time_count() {
        let off = [0.0, 0.2, -0.2, 0.1, -0.1, 0.05];
        let measured = |variant, cpu_us: f64| Entry {
            throughput_by_round_per_s: off.map(|off| Some(1_000.0 * (1.0 + off))).into(),
            cpu_us_per_request_by_round: off.map(|off| Some(cpu_us * (1.0 + off / 20.0))).into(),
            ..entry(variant, 1_000.0, 0.1)
        };
        let mut uring = measured("uring", 20.0);
        uring.throughput_by_round_per_s.reverse();
        let epoll = measured("epoll", 30.0);
        assert_eq!(places(&ordered(vec![uring.clone(), epoll.clone()])), [Some([1, 2]); 2]);
        uring.bottleneck =
            vec![Limit { kind: ResourceKind::Generator, holder: Words::default(), identity: None }];
        let found = ordered(vec![uring, epoll]);
        assert_eq!(places(&found), [Some([1, 1]), Some([2, 2])]);
        assert_eq!(
            found.ranking.last(),
            Some(&OrderFinding::ByCpuTime { variants: vec!["uring".to_owned()] })
        );
    }

    /// Ten variants that are the same: at most one comparison in twenty claims any order.
    #[test]
    fn many_pairs_do_not_make_differences() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut noise = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut alike =
            || entry("same", 1_000.0 * (1.0 + 0.02 * noise()), 0.02 * crate::statistics::NORMAL_95);
        let claimed = (0..1_000)
            .map(|_| ordered((0..10).map(|_| alike()).collect()))
            .filter(|work| places(work).iter().any(|place| *place != Some([1, 10])))
            .count();
        assert!(claimed <= 60, "{claimed} of 1000");
    }
}
