//! When to log that no connection can be opened, and that one can be opened again.

use std::{
    mem::{Discriminant, discriminant},
    time::{Duration, Instant},
};

use crate::error::Trouble;

/// After how long the same trouble is logged again.
const INTERVAL: Duration = Duration::from_secs(10);

/// The kinds of trouble logged since the last time a connection was opened, and when.
#[derive(Debug, Default)]
pub(super) struct Outage(Vec<(Discriminant<Trouble>, Instant)>);

impl Outage {
    /// Whether to log this trouble: its kind is new in this outage, or was logged long ago.
    pub(super) fn meets(&mut self, trouble: &Trouble, now: Instant) -> bool {
        let kind = discriminant(trouble);
        let recent = |at: Instant| now.saturating_duration_since(at) < INTERVAL;
        if self.0.iter().any(|(logged, at)| *logged == kind && recent(*at)) {
            return false;
        }
        self.0.retain(|(logged, _)| *logged != kind);
        self.0.push((kind, now));
        true
    }

    /// Notes that a connection was opened. Returns whether that ends trouble that was logged.
    pub(super) fn ends(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_kinds_of_trouble_are_logged_at_once_repeated_ones_rarely_and_the_end_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let mut at = |trouble: &Trouble, s: u64| outage.meets(trouble, start + Duration::from_secs(s));
        let away = Trouble::Unreachable("refused".into());
        assert!(at(&Trouble::TooMany, 0) && !at(&Trouble::TooMany, 1));
        assert!(at(&away, 2), "an outage after another trouble");
        assert!(!at(&Trouble::TooMany, 3) && !at(&away, 4), "two that alternate add no lines");
        assert!(!at(&Trouble::Unreachable("timed out".into()), 11) && at(&away, 12) && !at(&away, 13));
        assert!(outage.ends() && !outage.ends());
        assert!(outage.meets(&away, start + Duration::from_secs(14)), "a new one");
    }
}
