//! Completions of each kind of request over time, where a load has several.

use super::{Tick, sum};

/// Completions of each kind of request over one measurement, as they added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KindCounts {
    /// When it began, microseconds of the monotonic clock.
    start_us: u64,
    /// Mean number of requests under way.
    under_way: f64,
    /// The end of each slice, microseconds, and how many of each kind had completed by then.
    so_far: Vec<(u64, Vec<u64>)>,
}

impl KindCounts {
    /// Adds up the completions of consecutive slices. `None` where kinds were not told apart.
    pub fn of(ticks: &[Tick]) -> Option<Self> {
        let places = ticks.iter().flat_map(|tick| &tick.by_kind).map(|of| of.place() + 1);
        let mut completed = vec![0u64; places.max()?];
        let so_far = ticks.iter().map(|tick| {
            for of in &tick.by_kind {
                if let Some(count) = completed.get_mut(of.place()) {
                    *count = count.saturating_add(of.completed());
                }
            }
            (tick.start_us.saturating_add(tick.length_us), completed.clone())
        });
        let so_far = so_far.collect();
        let length_us = sum(ticks, |tick| tick.length_us).max(1);
        // Little's law: what was begun before the measurement and what is not ended after it even out.
        let response_ns = sum(ticks, |tick| tick.response_time_ns_sum);
        Some(Self {
            start_us: ticks.first()?.start_us,
            under_way: response_ns as f64 / 1e3 / length_us as f64,
            so_far,
        })
    }

    /// Start and end of the measurement, microseconds of the monotonic clock.
    pub fn window(&self) -> (u64, u64) {
        (self.start_us, self.so_far.last().map_or(self.start_us, |(end_us, _)| *end_us))
    }

    /// Mean number of requests under way, by Little's law.
    pub fn under_way(&self) -> f64 {
        self.under_way
    }

    /// Completions of each kind between two instants, microseconds; those of a slice are spread over it evenly.
    pub fn between(&self, from_us: u64, to_us: u64) -> Vec<f64> {
        let (before, after) = (self.by(from_us), self.by(to_us));
        after.iter().zip(before).map(|(after, before)| (after - before).max(0.0)).collect()
    }

    /// Completions of each kind by an instant.
    fn by(&self, at_us: u64) -> Vec<f64> {
        let next = self.so_far.partition_point(|(end_us, _)| *end_us <= at_us);
        let (start_us, before) = match next.checked_sub(1).and_then(|last| self.so_far.get(last)) {
            Some((end_us, completed)) => (*end_us, completed.clone()),
            None => (self.start_us, self.so_far.first().map_or_else(Vec::new, |(_, all)| vec![0; all.len()])),
        };
        let Some((end_us, after)) = self.so_far.get(next) else {
            return before.into_iter().map(|count| count as f64).collect();
        };
        let passed_us = at_us.saturating_sub(start_us) as f64;
        let share = passed_us / end_us.saturating_sub(start_us).max(1) as f64;
        let by = |(before, after): (u64, &u64)| before as f64 + share * after.saturating_sub(before) as f64;
        before.into_iter().zip(after).map(by).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::{Counts, KindTick};

    fn tick(start_us: u64, counts: &[(u16, u64)]) -> Tick {
        let of_kind = |&(kind, count): &(u16, u64)| KindTick {
            kind,
            response_times: Counts { values_us: vec![(500, count)], beyond: 0 },
            ..KindTick::default()
        };
        let by_kind = counts.iter().map(of_kind).collect();
        Tick { start_us, length_us: 100, response_time_ns_sum: 300_000, by_kind, ..Tick::default() }
    }

    #[test]
    fn completions_between_two_instants_are_those_of_the_slices_in_proportion() {
        let ticks = [tick(1_000, &[(0, 10)]), tick(1_100, &[(0, 20), (2, 4)]), tick(1_200, &[])];
        let counts = KindCounts::of(&ticks).expect("several kinds");
        assert_eq!(counts.window(), (1_000, 1_300));
        assert_eq!(counts.under_way(), 3.0);
        assert_eq!(counts.between(1_000, 1_300), [30.0, 0.0, 4.0]);
        assert_eq!(counts.between(1_050, 1_150), [15.0, 0.0, 2.0]);
        assert_eq!(counts.between(1_175, 1_250), [5.0, 0.0, 1.0]);
        assert_eq!(counts.between(0, 9_000), [30.0, 0.0, 4.0], "nothing is known of other times");
        assert_eq!(counts.between(1_200, 1_100), [0.0; 3]);
    }

    #[test]
    fn a_load_of_one_kind_has_none() {
        assert_eq!(KindCounts::of(&[tick(0, &[]), tick(100, &[])]), None);
        assert_eq!(KindCounts::of(&[]), None);
    }
}
