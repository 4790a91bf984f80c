//! Percentiles of response times kept as sparse histogram counts.

use std::collections::BTreeMap;

use crate::ticks::{Counts, Tick};

/// Response times of many ticks, merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    counts: BTreeMap<u64, u64>,
    beyond: u64,
    total: u64,
}

/// Stands for a response time counted as "above one hour", microseconds.
const BEYOND_US: u64 = 3_600_000_000;

impl Distribution {
    /// Merges the response times of `ticks`. A request that timed out counts with the time that it waited: its response
    /// would have taken at least that, so no percentile is lower than it was for users.
    pub fn of(ticks: &[Tick]) -> Self {
        let mut merged = Self::default();
        for tick in ticks {
            merged.add(&tick.response_times);
            merged.add(&tick.timed_out);
        }
        merged
    }

    /// Adds one histogram.
    pub fn add(&mut self, counts: &Counts) {
        for &(value_us, count) in &counts.values_us {
            let sum = self.counts.entry(value_us).or_default();
            *sum = sum.saturating_add(count);
            self.total = self.total.saturating_add(count);
        }
        self.beyond = self.beyond.saturating_add(counts.beyond);
        self.total = self.total.saturating_add(counts.beyond);
    }

    /// How many response times there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The smallest value that at least `share` (0 to 1) of the response times do not exceed,
    /// microseconds; 0 where there are none. Times above one hour count as one hour.
    pub fn percentile_us(&self, share: f64) -> f64 {
        let rank = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        for (&value_us, &count) in &self.counts {
            seen = seen.saturating_add(count);
            if seen >= rank {
                return value_us as f64;
            }
        }
        self.max_us()
    }

    /// The largest response time, microseconds; 0 where there are none.
    pub fn max_us(&self) -> f64 {
        if self.beyond > 0 {
            return BEYOND_US as f64;
        }
        self.counts.last_key_value().map_or(0.0, |(&value_us, _)| value_us as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distribution(values_us: &[(u64, u64)], beyond: u64) -> Distribution {
        let mut merged = Distribution::default();
        merged.add(&Counts { values_us: values_us.to_vec(), beyond });
        merged
    }

    #[test]
    fn nearest_rank() {
        let merged = distribution(&[(10, 50), (20, 40), (30, 9), (1_000, 1)], 0);
        assert_eq!(merged.percentile_us(0.5), 10.0);
        assert_eq!(merged.percentile_us(0.51), 20.0);
        assert_eq!(merged.percentile_us(0.9), 20.0);
        assert_eq!(merged.percentile_us(0.99), 30.0);
        assert_eq!(merged.percentile_us(0.999), 1_000.0);
        assert_eq!(merged.max_us(), 1_000.0);
    }

    /// One in ten timed out after a second: the median is that of the responses, the 99th percentile a second at least.
    #[test]
    fn requests_that_timed_out_are_in_the_percentiles() {
        let tick = Tick {
            response_times: Counts { values_us: vec![(1_000, 90)], beyond: 0 },
            timed_out: Counts { values_us: vec![(1_000_000, 10)], beyond: 0 },
            ..Tick::default()
        };
        let merged = Distribution::of(&[tick]);
        assert_eq!(
            [0.5, 0.9, 0.99].map(|share| merged.percentile_us(share)),
            [1_000.0, 1_000.0, 1_000_000.0]
        );
    }

    #[test]
    fn nothing_and_more_than_an_hour() {
        assert_eq!(Distribution::default().percentile_us(0.5), 0.0);
        let merged = distribution(&[(10, 1)], 3);
        assert_eq!(merged.total(), 4);
        assert_eq!(merged.percentile_us(0.25), 10.0);
        assert_eq!(merged.percentile_us(0.5), BEYOND_US as f64);
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(mut values in proptest::collection::vec(1u64..500, 1..200), share in 0.0f64..=1.0) {
            let mut merged = Distribution::default();
            for &value in &values {
                merged.add(&Counts { values_us: vec![(value, 1)], beyond: 0 });
            }
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(merged.percentile_us(share), values[rank - 1] as f64);
        }
    }
}
