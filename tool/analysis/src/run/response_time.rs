//! Response times of one measurement, and the table of the percentiles it keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of response times, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTime {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// 95 % interval of the mean, [lo, hi]; absent where there were too few samples.
    pub mean_ci: Option<[f64; 2]>,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// A percentile of response times.
#[derive(Debug, Clone, Copy)]
pub struct Percentile {
    /// Its field in the run file.
    pub name: &'static str,
    /// The share of response times that are not longer, 0 to 1.
    pub share: f64,
    /// Reads it, microseconds; `None` in files from before it was kept.
    pub read: fn(&ResponseTime) -> Option<f64>,
    /// Sets it, microseconds.
    pub set: fn(&mut ResponseTime, f64),
}

/// Every percentile that a run keeps, ascending.
///
/// To add one, add its field above and its line here: measuring, CSV, tables, the page and `--gate` follow this table.
/// A field that older run files lack is an `Option<f64>` with `#[serde(default)]`.
pub const PERCENTILES: [Percentile; 4] = [
    Percentile { name: "p50", share: 0.5, read: |time| Some(time.p50), set: |time, us| time.p50 = us },
    Percentile { name: "p90", share: 0.9, read: |time| Some(time.p90), set: |time, us| time.p90 = us },
    Percentile { name: "p99", share: 0.99, read: |time| Some(time.p99), set: |time, us| time.p99 = us },
    Percentile { name: "p999", share: 0.999, read: |time| Some(time.p999), set: |time, us| time.p999 = us },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_percentile_is_read_back_as_it_was_set() {
        let mut time = ResponseTime::default();
        for (us, percentile) in (1u8..).map(f64::from).zip(PERCENTILES) {
            (percentile.set)(&mut time, us);
        }
        for (us, percentile) in (1u8..).map(f64::from).zip(PERCENTILES) {
            assert_eq!((percentile.read)(&time), Some(us), "{} shares its field", percentile.name);
        }
        assert!(PERCENTILES.is_sorted_by(|a, b| a.share < b.share));
    }
}
