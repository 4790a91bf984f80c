//! Response times of each kind of request, where a load has several.
//!
//! A histogram for each kind would be large, and mostly empty after 20 ms. So the times of a slice are kept one by one, each
//! with its kind in one number, and are sorted and counted when the slice ends. How many there are is bounded by what a thread
//! can do in a slice.

use std::collections::BTreeMap;

use analysis::ticks::{KINDS_APART, KindTick};

use super::merger::merge_all;
use super::recorder::LONGEST_US;

/// The lowest bits hold a time, microseconds; those above hold the kind.
const TIME_BITS: u32 = 40;

const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

const _: () = assert!(LONGEST_US <= TIME_MASK);

/// Binary digits of a time that are kept: three decimal ones, as in the histogram of all kinds together.
const DIGITS: u32 = 11;

/// What one thread keeps of each kind in the current slice.
#[derive(Debug)]
pub(super) struct ByKind {
    /// Sums of the response times of each kind, nanoseconds; of all kinds that are not told apart in the last.
    sums_ns: Vec<u64>,
    /// Response times of completed requests, each with its kind; in no order.
    completed: Vec<u64>,
    /// How long requests waited that timed out, each with its kind; in no order.
    timed_out: Vec<u64>,
}

impl ByKind {
    /// For a load of so many kinds of request. `None` where there is only one, which needs no second account.
    pub(super) fn of(kinds: usize) -> Option<Box<Self>> {
        let kept = kinds.min(usize::from(KINDS_APART) + 1);
        (kinds > 1)
            .then(|| Box::new(Self { sums_ns: vec![0; kept], completed: Vec::new(), timed_out: Vec::new() }))
    }

    /// Keeps the response time of a completed request. One of more than an hour counts as an hour.
    #[inline]
    pub(super) fn completed(&mut self, kind: usize, response_ns: u64, response_us: u64) {
        let kind = kind.min(usize::from(KINDS_APART));
        if let Some(sum_ns) = self.sums_ns.get_mut(kind) {
            *sum_ns += response_ns;
        }
        self.completed.push(packed(kind, bucket(response_us)));
    }

    /// Keeps how long a request waited that timed out.
    pub(super) fn timed_out(&mut self, kind: usize, waited_us: u64) {
        self.timed_out.push(packed(kind.min(usize::from(KINDS_APART)), waited_us));
    }

    /// What the slice has of each kind, ascending by kind, without those that it has nothing of. Begins the next slice.
    pub(super) fn take(&mut self) -> Vec<KindTick> {
        let of_kind = |(sum_ns, kind): (&mut u64, u16)| KindTick {
            kind,
            response_time_ns_sum: std::mem::take(sum_ns),
            ..KindTick::default()
        };
        let mut kinds: Vec<KindTick> = self.sums_ns.iter_mut().zip(0..).map(of_kind).collect();
        count(&mut self.completed, |kind, times| {
            if let Some(of) = kinds.get_mut(kind) {
                of.response_times.values_us.push(times);
            }
        });
        count(&mut self.timed_out, |kind, times| {
            if let Some(of) = kinds.get_mut(kind) {
                of.timed_out.values_us.push(times);
            }
        });
        kinds.retain(|of| of.completed() > 0 || of.timed_out.total() > 0);
        kinds
    }
}

fn packed(kind: usize, us: u64) -> u64 {
    (kind as u64) << TIME_BITS | us
}

/// The middle of all times that are kept as one with this, as [`hdrhistogram`] has it with three digits.
fn bucket(us: u64) -> u64 {
    let us = us.clamp(1, LONGEST_US);
    let dropped = (us.ilog2() + 1).saturating_sub(DIGITS);
    (us >> dropped << dropped) + (1 << dropped >> 1)
}

/// Sorts what was kept, tells how often each time is there of each kind, ascending, and empties it.
fn count(kept: &mut Vec<u64>, mut found: impl FnMut(usize, (u64, u64))) {
    kept.sort_unstable();
    for same in kept.chunk_by(|one, next| one == next) {
        if let Some(first) = same.first() {
            found((first >> TIME_BITS) as usize, (first & TIME_MASK, same.len() as u64));
        }
    }
    kept.clear();
}

/// Merges what several threads or generators counted of each kind in the same slice. Ascending by kind.
pub(super) fn merge_kinds(parts: Vec<Vec<KindTick>>) -> Vec<KindTick> {
    let mut by_kind = BTreeMap::<u16, Vec<KindTick>>::new();
    for part in parts.into_iter().flatten() {
        by_kind.entry(part.kind.min(KINDS_APART)).or_default().push(part);
    }
    by_kind.into_iter().map(|(kind, parts)| merge_kind(kind, parts)).collect()
}

fn merge_kind(kind: u16, parts: Vec<KindTick>) -> KindTick {
    let sum_ns = parts.iter().fold(0, |all: u64, part| all.saturating_add(part.response_time_ns_sum));
    let (completed, timed_out) = parts.into_iter().map(|part| (part.response_times, part.timed_out)).unzip();
    KindTick {
        kind,
        response_time_ns_sum: sum_ns,
        response_times: merge_all(completed),
        timed_out: merge_all(timed_out),
    }
}

#[cfg(test)]
mod tests {
    use analysis::ticks::Counts;
    use proptest::prelude::*;

    use super::*;
    use crate::ticks::recorder::{Recorder, SLICE_NS, Slice};

    fn counts(values_us: &[(u64, u64)]) -> Counts {
        Counts { values_us: values_us.to_vec(), beyond: 0 }
    }

    /// The first slice of a load of so many kinds.
    fn slice(kinds: usize, record: impl Fn(&mut Recorder)) -> Slice {
        let mut recorder = Recorder::new(0).with_kinds(kinds);
        record(&mut recorder);
        recorder.roll(2 * SLICE_NS);
        let mut slices = recorder.take_finished();
        let first = slices.next().expect("a slice");
        assert!(slices.all(|later| later.by_kind.is_empty()), "what was counted comes again");
        first
    }

    #[test]
    fn each_kind_has_its_own_times_and_an_exact_sum() {
        let found = slice(3, |recorder| {
            recorder.completed(2, 12_345_678);
            recorder.completed(0, 1_500_400);
            recorder.completed(2, 12_346_400);
            recorder.timed_out(2, 2_005_999_000);
            recorder.completed(2, 700_000);
        });
        let first = KindTick {
            kind: 0,
            response_time_ns_sum: 1_500_400,
            response_times: counts(&[(1_500, 1)]),
            timed_out: Counts::default(),
        };
        let last = KindTick {
            kind: 2,
            response_time_ns_sum: 12_345_678 + 12_346_400 + 700_000,
            response_times: counts(&[(700, 1), (12_348, 2)]),
            timed_out: counts(&[(2_000_000, 1)]),
        };
        assert_eq!(found.by_kind, [first, last]);
        assert_eq!((found.completed, found.timed_out), (4, vec![(2_000_000, 1)]));
    }

    #[test]
    fn one_kind_is_not_counted_twice() {
        let found = slice(1, |recorder| {
            recorder.completed(0, 1_500_400);
            recorder.timed_out(0, 1_000_000);
        });
        assert_eq!((found.completed, found.by_kind), (1, Vec::new()));
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted_together() {
        let found = slice(40, |recorder| (0..40).for_each(|kind| recorder.completed(kind, 5_000)));
        assert_eq!(found.by_kind.len(), usize::from(KINDS_APART) + 1);
        let last = found.by_kind.last().expect("the others");
        assert_eq!((last.kind, last.completed(), last.response_time_ns_sum), (KINDS_APART, 8, 40_000));
    }

    #[test]
    fn a_time_of_hours_counts_as_one_hour() {
        let found = slice(2, |recorder| recorder.completed(1, u64::MAX / 2));
        let hour = f64::from(u32::try_from(LONGEST_US).expect("it fits"));
        let [(value_us, 1)] = found.by_kind[0].response_times.values_us[..] else { panic!("{found:?}") };
        assert!((value_us as f64 / hour - 1.0).abs() < 0.001, "{value_us}");
    }

    #[test]
    fn what_threads_and_generators_counted_adds_up_by_kind() {
        let of = |kind, sum, values_us: &[(u64, u64)]| KindTick {
            kind,
            response_time_ns_sum: sum,
            response_times: counts(values_us),
            timed_out: counts(&[(9, 1)]),
        };
        let merged = merge_kinds(vec![
            vec![of(0, 30, &[(10, 3)]), of(1, u64::MAX, &[(70, 1)])],
            Vec::new(),
            vec![of(1, 140, &[(60, 1), (70, 1)]), of(KINDS_APART, 1, &[(1, 1)]), of(u16::MAX, 2, &[(2, 1)])],
        ]);
        let kinds: Vec<_> = merged.iter().map(|of| (of.kind, of.response_time_ns_sum)).collect();
        assert_eq!(kinds, [(0, 30), (1, u64::MAX), (KINDS_APART, 3)]);
        assert_eq!(merged[1].response_times, counts(&[(60, 1), (70, 2)]));
        assert_eq!(merged[1].timed_out, counts(&[(9, 2)]));
        assert_eq!(merged[2].response_times, counts(&[(1, 1), (2, 1)]));
    }

    proptest! {
        /// A kind that makes all requests has the same times as all kinds together.
        #[test]
        fn times_are_rounded_as_those_of_all_kinds_are(
            times_us in prop::collection::vec(prop_oneof![1u64..5_000, 1u64..3_600_000_000], 1..200),
        ) {
            let found = slice(2, |recorder| {
                times_us.iter().for_each(|us| recorder.completed(1, us * 1_000));
            });
            prop_assert_eq!(&found.by_kind[0].response_times.values_us, &found.response_times);
            prop_assert_eq!(found.by_kind[0].response_time_ns_sum, found.response_time_ns_sum);
        }
    }
}
