//! Log lines that any request may cause, at most one per second.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

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
}
