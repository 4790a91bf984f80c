//! The order of variants, as far as the intervals support it.

use super::blocks::Blocks;
use super::ratio::{Ratio, ratio};
use super::{Entry, OfFastest, OrderFinding, Workload};
use crate::statistics::normal_two_sided;
use crate::ticks::{failed_share, failures, many_failed};

/// Gives every entry of a workload its places and its share of the fastest, and sets the workload's findings.
///
/// Two entries are in order if the interval of their ratio excludes 1. With many pairs some would do so by chance, so the
/// intervals are wide enough that all of them hold together 95 times in 100. Where every entry was measured in the same
/// two rounds or more, they come from these randomised blocks ([`Blocks`]); otherwise from the interval of each figure,
/// widened (Bonferroni). An entry whose figure is a lower bound
/// is never placed behind another; one whose requests mostly failed has no place.
pub fn order(work: &mut Workload) {
    let overload = work.overload;
    let entries = &mut work.entries;
    let compared: Vec<usize> =
        (0..entries.len()).filter(|&index| comparable(&entries[index], overload)).collect();
    let pairs = compared.len() * compared.len().saturating_sub(1) / 2;
    let z = normal_two_sided(1.0 - 0.05 / pairs.max(1) as f64);
    let fastest = compared
        .iter()
        .copied()
        .max_by(|&a, &b| entries[a].throughput_per_s.total_cmp(&entries[b].throughput_per_s));
    let by_round = |&index: &usize| entries[index].throughput_by_round_per_s.as_slice();
    let blocks = Blocks::of_common_rounds(&compared.iter().map(by_round).collect::<Vec<_>>());
    let place_in_blocks = |index: usize| compared.iter().position(|&other| other == index);
    let over = |a: usize, b: usize| match &blocks {
        Some(blocks) => blocks.ratio(place_in_blocks(a)?, place_in_blocks(b)?),
        None => ratio_of(&entries[a], &entries[b], z),
    };
    let slower =
        |a: usize, b: usize| !entries[a].lower_bound && over(a, b).is_some_and(|ratio| ratio.ci[1] < 1.0);
    let found: Vec<(usize, [u32; 2], Option<OfFastest>)> = compared
        .iter()
        .map(|&index| {
            let before = compared.iter().filter(|&&other| slower(index, other)).count();
            let behind = compared.iter().filter(|&&other| slower(other, index)).count();
            let place = [before + 1, compared.len() - behind].map(|place| place as u32);
            let share = fastest.and_then(|fastest| over(index, fastest)).filter(is_known);
            let share = share.map(|r| OfFastest { ratio: r.ratio, ci: r.ci });
            (index, place, share)
        })
        .collect();
    for (index, place, share) in found {
        entries[index].place = Some(place);
        entries[index].of_fastest = share;
    }
    work.ranking = findings(work);
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

/// Findings about the places: the first, then the last.
fn findings(work: &Workload) -> Vec<OrderFinding> {
    let mut placed: Vec<&Entry> = work.entries.iter().filter(|entry| entry.place.is_some()).collect();
    placed.sort_by(|a, b| b.throughput_per_s.total_cmp(&a.throughput_per_s));
    let first: Vec<&Entry> = placed.iter().copied().filter(|entry| best(entry) == Some(1)).collect();
    let mut findings = Vec::new();
    match (first.as_slice(), placed.as_slice()) {
        (_, []) => return vec![OrderFinding::NothingComparable],
        (_, [only]) => return vec![OrderFinding::OnlyOne { variant: only.variant.clone() }],
        ([_], [fastest, next, ..]) => findings.push(OrderFinding::First {
            variant: fastest.variant.clone(),
            throughput_per_s: fastest.throughput_per_s,
            next: next.variant.clone(),
            times_next: fastest.throughput_per_s / next.throughput_per_s,
        }),
        (several, _) if several.len() == placed.len() => return vec![undecided(&placed)],
        (several, _) => {
            let variants = several.iter().map(|entry| entry.variant.clone()).collect();
            findings.push(OrderFinding::SeveralMayBeFirst { variants });
        }
    }
    findings.extend(last(&placed, placed.len() < work.entries.len()));
    findings
}

/// The one variant that is last, if there is one.
fn last(placed: &[&Entry], of_compared: bool) -> Option<OrderFinding> {
    let mut last = placed.iter().filter(|entry| worst(entry) == Some(placed.len() as u32));
    let (only, None) = (last.next()?, last.next()) else { return None };
    Some(OrderFinding::Last { variant: only.variant.clone(), of_fastest: only.of_fastest, of_compared })
}

/// The reason why no variant is ahead of another.
fn undecided(placed: &[&Entry]) -> OrderFinding {
    match placed.iter().filter(|entry| entry.lower_bound).count() {
        0 => OrderFinding::WithinIntervals,
        bounds => OrderFinding::LowerBounds { bounds: bounds as u32, figures: placed.len() as u32 },
    }
}

fn best(entry: &Entry) -> Option<u32> {
    entry.place.map(|[best, _]| best)
}

fn worst(entry: &Entry) -> Option<u32> {
    entry.place.map(|[_, worst]| worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ResponseTime;
    use crate::ticks::{ErrorCounts, ErrorKind};

    /// A variant whose throughput is known to this share either way.
    fn entry(variant: &str, throughput_per_s: f64, known_to: f64) -> Entry {
        Entry {
            variant: variant.to_owned(),
            place: None,
            throughput_per_s,
            throughput_ci_per_s: [1.0 - known_to, 1.0 + known_to].map(|end| end * throughput_per_s),
            throughput_by_round_per_s: Vec::new(),
            of_fastest: None,
            lower_bound: false,
            users: Some(100),
            response_time_us: ResponseTime::default(),
            cpu_us_per_request: None,
            received_bytes_per_s: 0.0,
            completed: 10_000,
            errors: ErrorCounts::new(),
            bottleneck: Vec::new(),
            busiest: None,
            steps: Vec::new(),
            proofs: Vec::new(),
            inconclusive: Vec::new(),
            doubts: Vec::new(),
            runs: Vec::new(),
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
