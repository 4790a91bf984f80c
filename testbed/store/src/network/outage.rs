//! When to tell in the log that no connection can be opened, and that one can again.

use std::{
    mem::{Discriminant, discriminant},
    time::{Duration, Instant},
};

use super::trouble::Trouble;

/// How long the same trouble lasts before it is told again.
const PAUSE: Duration = Duration::from_secs(10);

/// The kinds of trouble that were told of since a connection could be opened, and when last.
#[derive(Debug, Default)]
pub(super) struct Outage(Vec<(Discriminant<Trouble>, Instant)>);

impl Outage {
    /// Whether this trouble is to be told: its kind is new in this outage, or was told long ago.
    pub(super) fn meets(&mut self, trouble: &Trouble, now: Instant) -> bool {
        let kind = discriminant(trouble);
        let recent = |at: Instant| now.saturating_duration_since(at) < PAUSE;
        if self.0.iter().any(|(told, at)| *told == kind && recent(*at)) {
            return false;
        }
        self.0.retain(|(told, _)| *told != kind);
        self.0.push((kind, now));
        true
    }

    /// A connection was opened: whether trouble was told of, which is now over.
    pub(super) fn ends(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_of_trouble_is_told_at_once_and_the_same_seldom_and_its_end_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let mut at = |trouble: &Trouble, s: u64| outage.meets(trouble, start + Duration::from_secs(s));
        let away = Trouble::Unreachable("refused".into());
        assert!(at(&Trouble::TooMany, 0) && !at(&Trouble::TooMany, 1));
        assert!(at(&away, 2), "an outage after another trouble");
        assert!(!at(&Trouble::TooMany, 3) && !at(&away, 4), "two that take turns are no more lines");
        assert!(!at(&Trouble::Unreachable("timed out".into()), 11) && at(&away, 12) && !at(&away, 13));
        assert!(outage.ends() && !outage.ends());
        assert!(outage.meets(&away, start + Duration::from_secs(14)), "a new one");
    }
}
