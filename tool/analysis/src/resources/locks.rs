//! Waits for locks of a database, as the database server reports them.

use super::samples::growth;
use crate::counters::DatabaseSample;

/// Waits for locks among the sessions of a database during one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LockUse {
    /// How many samples were used.
    pub samples: usize,
    /// Transactions that waited for a lock, on average.
    pub waiting: f64,
    /// The same from the time that ended waits took; `None` where it is not known.
    pub waiting_by_time: Option<f64>,
    /// Sessions at work, those that waited among them, on average.
    pub at_work: f64,
    /// Share of the samples that found somebody waiting: no lock can have been held for less.
    pub contended: f64,
}

impl LockUse {
    /// Share of the sessions at work that waited for a lock, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.at_work > 0.0 { (self.waiting / self.at_work).min(1.0) } else { 0.0 }
    }
}

/// Waits in the samples inside `window` (start and end, microseconds); `None` where there are none.
pub(super) fn lock_use(samples: &[DatabaseSample], (start, end): (u64, u64)) -> Option<LockUse> {
    let inside: Vec<&DatabaseSample> =
        samples.iter().filter(|sample| (start..=end).contains(&sample.at_us)).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    let mean = |sum: f64| sum / inside.len() as f64;
    let sum = |read: fn(&DatabaseSample) -> u64| inside.iter().map(|sample| read(sample) as f64).sum::<f64>();
    let elapsed_us = last.at_us.saturating_sub(first.at_us) as f64;
    let waited = first.waited_us.zip(last.waited_us).filter(|_| elapsed_us > 0.0);
    Some(LockUse {
        samples: inside.len(),
        waiting: mean(sum(|sample| sample.waiting)),
        waiting_by_time: waited.map(|(before, after)| growth(before, after) as f64 / elapsed_us),
        // The two are counted one after the other, so that one may be late.
        at_work: mean(sum(|sample| sample.at_work.max(sample.waiting))),
        contended: mean(inside.iter().filter(|sample| sample.waiting > 0).count() as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_us: u64, waiting: u64, at_work: u64, waited_us: Option<u64>) -> DatabaseSample {
        DatabaseSample { at_us, waiting, at_work, waited_us }
    }

    #[test]
    fn only_samples_inside_the_window_count() {
        let samples = [
            sample(0, 50, 50, Some(0)),
            sample(10, 3, 4, Some(1_000)),
            sample(20, 0, 2, Some(1_010)),
            sample(30, 3, 2, Some(1_050)),
            sample(40, 50, 50, Some(9_000)),
        ];
        let seen = lock_use(&samples, (10, 30)).expect("three samples");
        assert_eq!((seen.samples, seen.waiting, seen.at_work), (3, 2.0, 3.0));
        assert_eq!(seen.waiting_by_time, Some(2.5));
        assert!((seen.contended - 2.0 / 3.0).abs() < 1e-12 && (seen.share() - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_made_up_of_no_samples() {
        assert_eq!(lock_use(&[sample(5, 1, 1, None)], (10, 20)), None);
        let one = lock_use(&[sample(15, 0, 0, Some(7))], (10, 20)).expect("one sample");
        assert_eq!((one.waiting_by_time, one.share()), (None, 0.0));
    }
}
