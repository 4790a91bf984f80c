//! Response times of one measurement, and the table of the percentiles it keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of response times, microseconds. Percentiles and the largest include requests that timed out, with the
/// time that they waited; the mean does not.
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
    /// 95th percentile; absent in files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
    /// How many response times there are, those that timed out included; 0 in files from before it was kept. A percentile p
    /// of fewer than ln 0.05 / ln p is little more than the largest of them (59 for p95, 299 for p99, 2 995 for p999), and not
    /// shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Requests among them that timed out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A percentile of response times.
#[derive(Debug, Clone, Copy)]
pub struct Percentile {
    /// Its field in the run file.
    pub name: &'static str,
    /// The share of response times that are not longer, 0 to 1.
    pub share: f64,
    /// What is kept, microseconds; `None` in files from before it was kept.
    value: fn(&ResponseTime) -> Option<f64>,
    /// Sets it, microseconds.
    pub set: fn(&mut ResponseTime, f64),
}

/// With this chance the largest of enough samples is above a percentile.
const ABOVE: f64 = 0.95;

impl Percentile {
    /// Reads it, microseconds. `None` where the sample is too small for it, and in files from before it was kept.
    pub fn read(&self, time: &ResponseTime) -> Option<f64> {
        (self.value)(time).filter(|_| self.is_known(time))
    }

    /// Whether it was kept, however small the sample is.
    pub fn is_kept(&self, time: &ResponseTime) -> bool {
        (self.value)(time).is_some()
    }

    /// Whether there are enough samples. Files from before those were counted do not tell.
    pub fn is_known(&self, time: &ResponseTime) -> bool {
        time.samples == 0 || time.samples >= self.samples_min()
    }

    /// The fewest samples whose largest lies above the percentile 95 times in 100 (Wilks 1941): with fewer, the sample does
    /// not bound it.
    pub fn samples_min(&self) -> u64 {
        ((1.0 - ABOVE).ln() / self.share.ln()).ceil() as u64
    }
}

/// Every percentile that a run keeps, ascending.
///
/// To add one, add its field above and its line here: measuring, CSV, tables, the page and `--gate` follow this table.
/// A field that older run files lack is an `Option<f64>` with `#[serde(default)]`.
pub const PERCENTILES: [Percentile; 5] = [
    Percentile { name: "p50", share: 0.5, value: |time| Some(time.p50), set: |time, us| time.p50 = us },
    Percentile { name: "p90", share: 0.9, value: |time| Some(time.p90), set: |time, us| time.p90 = us },
    Percentile { name: "p95", share: 0.95, value: |time| time.p95, set: |time, us| time.p95 = Some(us) },
    Percentile { name: "p99", share: 0.99, value: |time| Some(time.p99), set: |time, us| time.p99 = us },
    Percentile { name: "p999", share: 0.999, value: |time| Some(time.p999), set: |time, us| time.p999 = us },
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
            assert_eq!(percentile.read(&time), Some(us), "{} shares its field", percentile.name);
        }
        assert_eq!(PERCENTILES.map(|percentile| percentile.samples_min()), [5, 29, 59, 299, 2_995]);
        assert!(PERCENTILES.is_sorted_by(|a, b| a.share < b.share));
    }

    /// Sixty requests reach to p95, and not beyond.
    #[test]
    fn sixty_requests_have_no_tail() {
        let sixty = ResponseTime {
            p50: 1.0,
            p90: 2.0,
            p95: Some(2.5),
            p99: 3.0,
            p999: 3.0,
            samples: 60,
            ..ResponseTime::default()
        };
        let read = |time: &ResponseTime| PERCENTILES.map(|percentile| percentile.read(time));
        assert_eq!(read(&sixty), [Some(1.0), Some(2.0), Some(2.5), None, None]);
        assert_eq!(read(&ResponseTime { samples: 58, ..sixty })[2], None);
    }

    #[test]
    fn a_percentile_of_too_few_is_kept_all_the_same() {
        let few = ResponseTime { p95: Some(2.5), samples: 10, ..ResponseTime::default() };
        let older = ResponseTime { samples: 10, ..ResponseTime::default() };
        let kept = |time: &ResponseTime| PERCENTILES.map(|percentile| percentile.is_kept(time));
        assert_eq!(kept(&few), [true; 5]);
        assert_eq!(kept(&older), [true, true, false, true, true]);
    }
}
