//! The same slice of several generators, as one tick.

use std::sync::Arc;

use analysis::ticks::{GeneratorPart, GeneratorTick, Tick};

use super::by_kind::merge_kinds;
use super::merger::merge_all;

/// One generator's tick, with its name and how many users it had.
#[derive(Debug, Clone)]
pub struct Part {
    /// The name, which no other generator has.
    pub name: Arc<str>,
    /// Its users.
    pub users: u32,
    /// What it counted.
    pub tick: Tick,
}

/// Merges what several generators counted in the same slice, which begins at this time and is as long as the longest of
/// theirs. Counts and histograms add up; nothing is averaged. The 99th percentile of the lag is that of the generator where it
/// was longest: that of all together is never longer.
#[must_use]
pub fn joined(start_us: u64, parts: Vec<Part>) -> Tick {
    let mut all = Tick { start_us, ..Tick::default() };
    let in_flight = parts.iter().map(|part| part.tick.generator.in_flight);
    all.generator.in_flight = in_flight.reduce(|a, b| Some(a?.saturating_add(b?))).flatten();
    let [mut response_times, mut timed_out] = [Vec::new(), Vec::new()];
    let mut by_kind = Vec::new();
    for Part { name, users, tick } in parts {
        all.parts.push(GeneratorPart { name, users, completed: tick.completed, generator: tick.generator });
        all.length_us = all.length_us.max(tick.length_us);
        add(&mut all.completed, tick.completed);
        add(&mut all.response_time_ns_sum, tick.response_time_ns_sum);
        add(&mut all.bytes_received, tick.bytes_received);
        add(&mut all.bytes_sent, tick.bytes_sent);
        add(&mut all.connected, tick.connected);
        add(&mut all.connecting_ns_sum, tick.connecting_ns_sum);
        add(&mut all.held_back, tick.held_back);
        add(&mut all.held_back_ns_sum, tick.held_back_ns_sum);
        add_generator(&mut all.generator, &tick.generator);
        tick.errors.into_iter().for_each(|(kind, count)| add(all.errors.entry(kind).or_default(), count));
        for (status, count) in tick.unexpected_statuses {
            add(all.unexpected_statuses.entry(status).or_default(), count);
        }
        response_times.push(tick.response_times);
        timed_out.push(tick.timed_out);
        by_kind.push(tick.by_kind);
    }
    all.response_times = merge_all(response_times);
    all.timed_out = merge_all(timed_out);
    all.by_kind = merge_kinds(by_kind);
    all
}

/// Counts of others may be anything.
fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

fn add_generator(all: &mut GeneratorTick, one: &GeneratorTick) {
    add(&mut all.busy_us, one.busy_us);
    add(&mut all.thinking_user_us, one.thinking_user_us);
    add(&mut all.late_starts, one.late_starts);
    all.threads = all.threads.saturating_add(one.threads);
    all.lag_us_p99 = all.lag_us_p99.max(one.lag_us_p99);
    all.lag_us_max = all.lag_us_max.max(one.lag_us_max);
}

#[cfg(test)]
mod tests {
    use analysis::estimate::percentiles::Distribution;
    use analysis::ticks::{Counts, ErrorKind, KindTick};
    use proptest::prelude::*;

    use super::*;
    use crate::ticks::recorder::{Recorder, SLICE_NS};

    fn part(name: &str, tick: Tick) -> Part {
        Part { name: name.into(), users: 2, tick }
    }

    #[test]
    fn counts_add_up_and_each_generator_keeps_its_own() {
        let tick = |completed, lag_us_p99, in_flight| Tick {
            start_us: 7,
            length_us: 20_000,
            completed,
            errors: [(ErrorKind::Reset, completed)].into(),
            unexpected_statuses: [(500, 1)].into(),
            response_times: Counts { values_us: vec![(10, 1), (completed, 2)], beyond: 1 },
            by_kind: vec![KindTick { kind: 1, response_time_ns_sum: completed, ..KindTick::default() }],
            generator: GeneratorTick {
                busy_us: 100,
                threads: 2,
                lag_us_p99,
                in_flight,
                ..GeneratorTick::default()
            },
            ..Tick::default()
        };
        let all = joined(40_000, vec![part("a", tick(20, 5, Some(1))), part("b", tick(30, 90, Some(4)))]);
        assert_eq!((all.start_us, all.length_us, all.completed), (40_000, 20_000, 50));
        assert_eq!((all.errors[&ErrorKind::Reset], all.unexpected_statuses[&500]), (50, 2));
        assert_eq!(all.response_times, Counts { values_us: vec![(10, 2), (20, 2), (30, 2)], beyond: 2 });
        assert_eq!(all.by_kind, [KindTick { kind: 1, response_time_ns_sum: 50, ..KindTick::default() }]);
        let fared = all.generator;
        assert_eq!((fared.busy_us, fared.threads, fared.lag_us_p99, fared.in_flight), (200, 4, 90, Some(5)));
        let of = |index: usize| (&*all.parts[index].name, all.parts[index].completed, all.parts[index].users);
        assert_eq!((of(0), of(1)), (("a", 20, 2), ("b", 30, 2)));
        let one_did_not_count = vec![part("a", tick(1, 1, None)), part("b", tick(1, 1, Some(4)))];
        assert_eq!(joined(0, one_did_not_count).generator.in_flight, None);
    }

    /// Response times as a generator records them in one slice.
    fn recorded(response_us: &[u64]) -> Tick {
        let mut recorder = Recorder::new(0);
        response_us.iter().for_each(|us| recorder.completed(0, us * 1_000));
        recorder.roll(SLICE_NS);
        let slice = recorder.take_finished().next().unwrap();
        let response_times = Counts { values_us: slice.response_times, beyond: slice.beyond };
        Tick { completed: slice.completed, response_times, ..Tick::default() }
    }

    fn nearest_rank(sorted: &[u64], share: f64) -> f64 {
        sorted[((share * sorted.len() as f64).ceil() as usize).max(1) - 1] as f64
    }

    proptest! {
        /// Percentiles of what several generators recorded are those of all raw response times together, to the three
        /// digits that a histogram has.
        #[test]
        fn merged_percentiles_are_those_of_the_joined_samples(
            samples in prop::collection::vec(prop::collection::vec(1u64..3_000_000, 0..800), 1..6),
        ) {
            let mut raw: Vec<u64> = samples.concat();
            raw.sort_unstable();
            prop_assume!(!raw.is_empty());
            let parts = samples.iter().map(|one| part("g", recorded(one))).collect();
            let merged = Distribution::of(&[joined(0, parts)]);
            prop_assert_eq!(merged.total(), raw.len() as u64);
            for share in [0.5, 0.9, 0.99, 0.999] {
                let (expected, found) = (nearest_rank(&raw, share), merged.percentile_us(share));
                prop_assert!((found - expected).abs() <= 0.001 * expected, "{share}: {found}, not {expected}");
            }
        }
    }
}
