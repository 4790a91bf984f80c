//! Merges the slices of all threads into ticks.

use std::collections::VecDeque;

use analysis::ticks::{Counts, GeneratorTick, Tick};

use super::by_kind::merge_kinds;
use super::recorder::{SLICE_US, Slice};

/// Collects slices by thread. Returns a tick once every thread has delivered its slice.
#[derive(Debug)]
pub(crate) struct Merger {
    threads: Vec<VecDeque<Slice>>,
    /// Attempts to connect so far.
    connects: u64,
}

/// A tick and the index of its slices.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) index: u64,
    pub(crate) tick: Tick,
}

impl Merger {
    pub(crate) fn new(threads: usize) -> Self {
        Merger { threads: (0..threads).map(|_| VecDeque::new()).collect(), connects: 0 }
    }

    /// Attempts to connect in all slices merged so far.
    pub(crate) fn connects(&self) -> u64 {
        self.connects
    }

    /// Adds a slice of a thread; each thread delivers its slices in order.
    pub(crate) fn add(&mut self, thread: usize, slice: Slice) {
        if let Some(queue) = self.threads.get_mut(thread) {
            queue.push_back(slice);
        }
    }

    /// Returns the next tick for which every thread has delivered its slice.
    pub(crate) fn next(&mut self) -> Option<Merged> {
        let mut index = 0;
        for queue in &self.threads {
            index = index.max(queue.front()?.index);
        }
        // A thread that started later has no earlier slices.
        for queue in &mut self.threads {
            while queue.front().is_some_and(|slice| slice.index < index) {
                queue.pop_front();
            }
        }
        if self.threads.iter().any(VecDeque::is_empty) {
            return None;
        }
        let parts: Vec<Slice> = self.threads.iter_mut().filter_map(VecDeque::pop_front).collect();
        self.connects += parts.iter().map(|part| u64::from(part.connects)).sum::<u64>();
        Some(Merged { index, tick: merge(index, parts) })
    }
}

fn merge(index: u64, parts: Vec<Slice>) -> Tick {
    let mut tick = Tick { start_us: index * SLICE_US, length_us: SLICE_US, ..Tick::default() };
    let mut response_times = Vec::new();
    let mut timed_out = Vec::new();
    let mut by_kind = Vec::new();
    let mut lags = Vec::new();
    let mut busy_ns = 0;
    let mut thinking_user_ns = 0;
    tick.generator.threads = parts.len() as u32;
    tick.generator.in_flight = parts.iter().map(|part| part.in_flight.map(u64::from)).sum();
    for part in parts {
        tick.completed += part.completed;
        tick.response_time_ns_sum += part.response_time_ns_sum;
        tick.response_times.beyond += part.beyond;
        tick.bytes_received += part.bytes_received;
        tick.bytes_sent += part.bytes_sent;
        tick.connected += u64::from(part.connected);
        tick.connecting_ns_sum += part.connecting_ns_sum;
        tick.held_back += part.held_back;
        tick.held_back_ns_sum += part.held_back_ns_sum;
        tick.generator.late_starts += part.late_starts;
        part.errors.into_iter().for_each(|(kind, count)| *tick.errors.entry(kind).or_default() += count);
        let statuses = part.unexpected_statuses;
        statuses
            .into_iter()
            .for_each(|(status, n)| *tick.unexpected_statuses.entry(status).or_default() += n);
        response_times.push(part.response_times);
        timed_out.push(part.timed_out);
        by_kind.push(part.by_kind);
        lags.push(part.lags);
        busy_ns += part.busy_ns;
        thinking_user_ns += part.thinking_user_ns;
    }
    tick.response_times = Counts { values_us: merge_counts(response_times), ..tick.response_times };
    tick.timed_out.values_us = merge_counts(timed_out);
    tick.by_kind = merge_kinds(by_kind);
    tick.generator = GeneratorTick {
        busy_us: busy_ns / 1_000,
        thinking_user_us: thinking_user_ns / 1_000,
        ..with_lags(tick.generator, &merge_counts(lags))
    };
    tick
}

fn with_lags(generator: GeneratorTick, lags: &[(u64, u64)]) -> GeneratorTick {
    let total: u64 = lags.iter().map(|(_, count)| count).sum();
    let rank = (total * 99).div_ceil(100);
    let mut seen = 0;
    let p99 = lags.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    GeneratorTick {
        lag_us_p99: p99.map_or(0, |(value, _)| *value),
        lag_us_max: lags.last().map_or(0, |(value, _)| *value),
        ..generator
    }
}

/// Merges counts of several threads or generators. Those of others may be anything.
pub(super) fn merge_all(parts: Vec<Counts>) -> Counts {
    let beyond = parts.iter().fold(0, |all: u64, part| all.saturating_add(part.beyond));
    Counts { values_us: merge_counts(parts.into_iter().map(|part| part.values_us).collect()), beyond }
}

/// Merges sparse counts. Ascending by value.
pub(super) fn merge_counts(parts: Vec<Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = parts.into_iter().flatten().collect();
    all.sort_unstable();
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    // Ticks are kept until a run ends, and threads count much the same values.
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use analysis::ticks::KindTick;

    use super::*;

    /// A slice of requests of one of several kinds.
    fn slice(index: u64, response_times: &[(u64, u64)]) -> Slice {
        let completed = response_times.iter().map(|(_, count)| count).sum();
        let response_times = response_times.to_vec();
        let counts = Counts { values_us: response_times.clone(), beyond: 0 };
        let by_kind = vec![KindTick { kind: 1, response_times: counts, ..KindTick::default() }];
        Slice { index, completed, response_times, by_kind, ..Slice::default() }
    }

    #[test]
    fn a_tick_needs_every_thread_and_counts_add_up() {
        let mut merger = Merger::new(2);
        merger.add(0, slice(7, &[(10, 1), (20, 2)]));
        assert!(merger.next().is_none());
        merger.add(1, slice(7, &[(15, 4), (20, 3)]));
        let merged = merger.next().unwrap();
        assert_eq!((merged.index, merged.tick.start_us, merged.tick.completed), (7, 140_000, 10));
        assert_eq!(merged.tick.response_times.values_us, [(10, 1), (15, 4), (20, 5)]);
        let [of_kind] = &merged.tick.by_kind[..] else { panic!("{merged:?}") };
        assert_eq!((of_kind.kind, &of_kind.response_times), (1, &merged.tick.response_times));
        assert!(merger.next().is_none());
    }

    #[test]
    fn merged_counts_hold_no_room_for_what_was_joined() {
        let merged = merge_counts(vec![vec![(10, 1), (20, 1)]; 50]);
        assert_eq!(merged, [(10, 50), (20, 50)]);
        assert!(merged.capacity() < 10, "{}", merged.capacity());
    }

    #[test]
    fn slices_from_before_a_thread_started_are_left_out() {
        let mut merger = Merger::new(2);
        (5..8).for_each(|index| merger.add(0, slice(index, &[(1, 1)])));
        merger.add(1, slice(7, &[]));
        assert_eq!(merger.next().unwrap().index, 7);
    }

    #[test]
    fn lag_percentiles() {
        let lags = [(1, 98), (5, 1), (900, 1)];
        let tick = with_lags(GeneratorTick::default(), &lags);
        assert_eq!((tick.lag_us_p99, tick.lag_us_max), (5, 900));
        assert_eq!(with_lags(GeneratorTick::default(), &[]).lag_us_max, 0);
    }
}
