//! Who is first: the order that the intervals bear out, and no more.

use super::{Entry, Share, Workload};
use crate::compare::{Ratio, ratio};
use crate::sample::{MANY_FAILED, failed_share};
use crate::statistics::student::normal_two_sided;
use crate::words::{count, percent};

/// Gives every entry of a work its places and its share of the fastest, and says the order in words.
///
/// Two entries are in order where the interval of their ratio excludes 1. With many pairs some would do so by
/// chance, so each interval is widened until all of them hold together 95 times in 100 (Bonferroni). An entry whose
/// figure is a lower bound is never called slower than another; one that failed has no place.
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
    let over = |a: usize, b: usize| ratio_of(&entries[a], &entries[b], z);
    let slower =
        |a: usize, b: usize| !entries[a].lower_bound && over(a, b).is_some_and(|ratio| ratio.ci[1] < 1.0);
    let found: Vec<(usize, [u32; 2], Option<Share>)> = compared
        .iter()
        .map(|&index| {
            let before = compared.iter().filter(|&&other| slower(index, other)).count();
            let behind = compared.iter().filter(|&&other| slower(other, index)).count();
            let place = [before + 1, compared.len() - behind].map(|place| place as u32);
            let share = fastest.and_then(|fastest| over(index, fastest)).filter(is_known);
            let share = share.map(|r| Share { ratio: r.ratio, ci: r.ci });
            (index, place, share)
        })
        .collect();
    for (index, place, share) in found {
        entries[index].place = Some(place);
        entries[index].of_fastest = share;
    }
    work.order = said(work);
}

/// A throughput made of failures is no capacity, unless failing is what was asked for.
fn comparable(entry: &Entry, overload: bool) -> bool {
    let measured = entry.throughput_per_s > 0.0 && entry.throughput_per_s.is_finite();
    measured && (overload || failed_share(entry.completed, &entry.errors) <= MANY_FAILED)
}

fn ratio_of(above: &Entry, below: &Entry, z: f64) -> Option<Ratio> {
    let figure = |entry: &Entry| (entry.throughput_per_s, entry.throughput_ci_per_s);
    ratio(figure(above), figure(below), z)
}

/// Whether a ratio says anything: one that may be ten times as much does not.
fn is_known(ratio: &Ratio) -> bool {
    ratio.ci[1] <= 10.0 * ratio.ratio
}

/// The order in words.
fn said(work: &Workload) -> Vec<String> {
    let mut placed: Vec<&Entry> = work.entries.iter().filter(|entry| entry.place.is_some()).collect();
    placed.sort_by(|a, b| b.throughput_per_s.total_cmp(&a.throughput_per_s));
    let first: Vec<&Entry> = placed.iter().copied().filter(|entry| best(entry) == Some(1)).collect();
    let last: Vec<&Entry> =
        placed.iter().copied().filter(|entry| worst(entry) == Some(placed.len() as u32)).collect();
    let mut sentences = Vec::new();
    match (first.as_slice(), placed.as_slice()) {
        (_, []) => return vec!["Nothing was measured that can be compared.".to_owned()],
        (_, [only]) => return vec![format!("Only {} was measured, so there is no order.", only.variant)],
        ([_], [fastest, next, ..]) => sentences.push(format!(
            "{} is first with {} req/s, {} times the next, {}.",
            fastest.variant,
            count(fastest.throughput_per_s),
            count((fastest.throughput_per_s / next.throughput_per_s * 100.0).round() / 100.0),
            next.variant
        )),
        (several, _) if several.len() == placed.len() => {
            return vec![undecided(&placed)];
        }
        (several, _) => sentences.push(format!(
            "{} may each be first: their differences are within the intervals.",
            listed(several)
        )),
    }
    if let [only] = last.as_slice() {
        let share = only.of_fastest.map_or_else(String::new, |of| {
            format!(
                ", at {} of the fastest ({} to {})",
                percent(of.ratio),
                percent(of.ci[0]),
                percent(of.ci[1])
            )
        });
        let among = if placed.len() < work.entries.len() { " of those compared" } else { "" };
        sentences.push(format!("{} is last{among}{share}.", only.variant));
    }
    sentences
}

/// Why nobody is first.
fn undecided(placed: &[&Entry]) -> String {
    match placed.iter().filter(|entry| entry.lower_bound).count() {
        0 => "The differences are within the intervals: no order is claimed.".to_owned(),
        unsure => format!(
            "{unsure} of the {} figures are lower bounds: no order is claimed. The doubts say why.",
            placed.len()
        ),
    }
}

fn best(entry: &Entry) -> Option<u32> {
    entry.place.map(|[best, _]| best)
}

fn worst(entry: &Entry) -> Option<u32> {
    entry.place.map(|[_, worst]| worst)
}

/// `epoll, uring and poll`.
fn listed(entries: &[&Entry]) -> String {
    let names: Vec<&str> = entries.iter().map(|entry| entry.variant.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ResponseTime;
    use crate::sample::{ErrorCounts, ErrorKind};

    /// A variant whose throughput is known to this share either way.
    fn entry(variant: &str, throughput_per_s: f64, known_to: f64) -> Entry {
        Entry {
            variant: variant.to_owned(),
            place: None,
            throughput_per_s,
            throughput_ci_per_s: [1.0 - known_to, 1.0 + known_to].map(|end| end * throughput_per_s),
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
            doubts: Vec::new(),
            reasons: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn ordered(entries: Vec<Entry>) -> Workload {
        let mut work = Workload {
            name: "100 KB".to_owned(),
            overload: false,
            order: Vec::new(),
            laws: Vec::new(),
            entries,
        };
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
        assert_eq!(work.order[0], "epoll is first with 1 200 req/s, 1.2 times the next, uring.");
        assert!(work.order[1].starts_with("poll is last, at 42 % of the fastest (4"), "{:?}", work.order);
    }

    #[test]
    fn no_order_is_claimed_within_the_intervals() {
        let work = ordered(vec![entry("epoll", 1_000.0, 0.03), entry("uring", 1_020.0, 0.03)]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2])]);
        assert_eq!(work.order, ["The differences are within the intervals: no order is claimed."]);
    }

    #[test]
    fn two_may_share_the_first_place() {
        let work = ordered(vec![
            entry("epoll", 1_000.0, 0.03),
            entry("uring", 1_020.0, 0.03),
            entry("polling", 300.0, 0.03),
        ]);
        assert_eq!(places(&work), [Some([1, 2]), Some([1, 2]), Some([3, 3])]);
        assert!(work.order[0].starts_with("uring and epoll may each be first"), "{:?}", work.order);
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
        assert!(work.order[0].starts_with("2 of the 2 figures are lower bounds"), "{:?}", work.order);
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
            || entry("same", 1_000.0 * (1.0 + 0.02 * noise()), 0.02 * crate::statistics::student::NORMAL_95);
        let claimed = (0..1_000)
            .map(|_| ordered((0..10).map(|_| alike()).collect()))
            .filter(|work| places(work).iter().any(|place| *place != Some([1, 10])))
            .count();
        assert!(claimed <= 60, "{claimed} of 1000");
    }
}
