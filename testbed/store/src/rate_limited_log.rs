//! Log lines that any request may cause: at most one per second; about an outage, at most one per kind and ten seconds.

use std::{
    mem::{Discriminant, discriminant},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::error::Trouble;

/// The shortest time between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits the rate of one kind of log line. A full disk fails ten thousand statements a second, and a line for each would
/// fill the next disk.
#[derive(Debug)]
pub(crate) struct RateLimitedLog(Mutex<State>);

#[derive(Debug)]
struct State {
    written_at: Option<Instant>,
    suppressed: u64,
}

impl RateLimitedLog {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { written_at: None, suppressed: 0 }))
    }

    /// Calls `line` if no line was written within the last second. It is given the number of lines suppressed since the
    /// last one, if there are any.
    pub(crate) fn write(&self, line: impl FnOnce(Option<u64>)) {
        if let Some(suppressed) = self.admit(Instant::now()) {
            line((suppressed > 0).then_some(suppressed));
        }
    }

    /// The number of lines suppressed before the one at `now`, or `None` if that one is suppressed too.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.written_at.is_some_and(|at| now.saturating_duration_since(at) < INTERVAL) {
            state.suppressed += 1;
            return None;
        }
        state.written_at = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

/// After how long the same trouble is logged again.
const OUTAGE_INTERVAL: Duration = Duration::from_secs(10);

/// The kinds of trouble logged since the last time a connection was opened, and when.
#[derive(Debug, Default)]
pub(crate) struct Outage(Vec<(Discriminant<Trouble>, Instant)>);

impl Outage {
    /// Notes this trouble. Returns whether to log it: its kind is new in this outage, or was logged long ago.
    pub(crate) fn should_log(&mut self, trouble: &Trouble, now: Instant) -> bool {
        let kind = discriminant(trouble);
        let recent = |at: Instant| now.saturating_duration_since(at) < OUTAGE_INTERVAL;
        if self.0.iter().any(|(logged, at)| *logged == kind && recent(*at)) {
            return false;
        }
        self.0.retain(|(logged, _)| *logged != kind);
        self.0.push((kind, now));
        true
    }

    /// Notes that a connection was opened. Returns whether that ends trouble that was logged.
    pub(crate) fn ends(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_written_and_then_one_a_second_with_the_number_suppressed() {
        let log = RateLimitedLog::new();
        let start = Instant::now();
        let written: Vec<_> =
            (0..2500).filter_map(|ms| log.admit(start + Duration::from_millis(ms))).collect();
        assert_eq!(written, [0, 999, 999]);
        let next = log.admit(start + Duration::from_secs(60));
        assert_eq!(next, Some(499), "the rest is counted with the next line");
        assert_eq!(log.admit(start + Duration::from_secs(120)), Some(0));
    }

    #[test]
    fn new_kinds_of_trouble_are_logged_at_once_repeated_ones_rarely_and_the_end_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let mut at = |trouble: &Trouble, s: u64| outage.should_log(trouble, start + Duration::from_secs(s));
        let away = Trouble::Unreachable("refused".into());
        assert!(at(&Trouble::TooMany, 0) && !at(&Trouble::TooMany, 1));
        assert!(at(&away, 2), "an outage after another trouble");
        assert!(!at(&Trouble::TooMany, 3) && !at(&away, 4), "two that alternate add no lines");
        assert!(!at(&Trouble::Unreachable("timed out".into()), 11) && at(&away, 12) && !at(&away, 13));
        assert!(outage.ends() && !outage.ends());
        assert!(outage.should_log(&away, start + Duration::from_secs(14)), "a new one");
    }
}
