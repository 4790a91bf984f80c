//! When the far end last heard from the near one, so that no load goes on for nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A near end that is not heard for longer is cut off: it says something once a second. It gives a generator up that it has not
/// heard for 5 s, and has others begin again in its place; this one has stopped by then.
pub(crate) const CUT_OFF_US: u64 = 4_000_000;

/// Not to have looked for longer is no ordinary pause between two looks.
const UNLOOKED_US: u64 = 500_000;

/// When something came last, microseconds of the monotonic clock.
#[derive(Debug, Clone)]
pub(crate) struct LastHeard(Arc<AtomicU64>);

impl LastHeard {
    pub(crate) fn at(now_us: u64) -> Self {
        Self(Arc::new(AtomicU64::new(now_us)))
    }

    /// Notes that something came now.
    pub(crate) fn note(&self, now_us: u64) {
        self.0.store(now_us, Ordering::Relaxed);
    }

    fn silence_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.0.load(Ordering::Relaxed))
    }
}

/// Looks time and again whether something came lately.
#[derive(Debug)]
pub(crate) struct CutOff {
    heard: LastHeard,
    looked_us: u64,
}

impl CutOff {
    pub(crate) fn new(heard: LastHeard, now_us: u64) -> Self {
        Self { heard, looked_us: now_us }
    }

    /// Whether nothing came for so long that the near end is cut off.
    pub(crate) fn is_so(&mut self, now_us: u64) -> bool {
        let unlooked_us = now_us.saturating_sub(self.looked_us);
        self.looked_us = now_us;
        if unlooked_us > UNLOOKED_US {
            // This process may have been stopped itself: what came meanwhile is still to be read.
            self.heard.note(now_us);
        }
        self.heard.silence_us(now_us) > CUT_OFF_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every tenth of a second until then. Returns when it was found to be cut off.
    fn looked(cut_off: &mut CutOff, (from_us, to_us): (u64, u64)) -> Option<u64> {
        (from_us..to_us).step_by(100_000).find(|now_us| cut_off.is_so(*now_us))
    }

    #[test]
    fn who_says_nothing_for_four_seconds_is_cut_off() {
        let heard = LastHeard::at(1_000_000);
        let mut cut_off = CutOff::new(heard.clone(), 1_000_000);
        assert_eq!(looked(&mut cut_off, (1_000_000, 4_000_000)), None);
        heard.note(4_000_000);
        assert_eq!(looked(&mut cut_off, (4_000_000, 20_000_000)), Some(8_100_000));
    }

    #[test]
    fn who_could_not_look_has_not_heard_either() {
        let mut cut_off = CutOff::new(LastHeard::at(0), 0);
        assert!(!cut_off.is_so(60_000_000), "it was stopped for a minute");
        assert_eq!(looked(&mut cut_off, (60_000_000, 80_000_000)), Some(64_100_000));
    }
}
