//! Lines of the log that every request may bring: the first is told, and then one a second for all.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The least time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(1);

/// One kind of line. A disk that is full fails ten thousand statements a second, and a line for each would fill the
/// next disk.
#[derive(Debug)]
pub(crate) struct Seldom(Mutex<State>);

#[derive(Debug)]
struct State {
    told_at: Option<Instant>,
    untold: u64,
}

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { told_at: None, untold: 0 }))
    }

    /// Writes a line where none was written within the last second, and else only counts. The line is given how many
    /// were only counted since the one before it, where any were.
    pub(crate) fn tell(&self, line: impl FnOnce(Option<u64>)) {
        if let Some(untold) = self.at(Instant::now()) {
            line((untold > 0).then_some(untold));
        }
    }

    /// How many went untold before one that is told at `now`; none where it is not told.
    fn at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told_at.is_some_and(|told_at| now.saturating_duration_since(told_at) < PAUSE) {
            state.untold += 1;
            return None;
        }
        state.told_at = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_then_one_a_second_with_how_many_were_not() {
        let seldom = Seldom::new();
        let start = Instant::now();
        let told: Vec<_> = (0..2500).filter_map(|ms| seldom.at(start + Duration::from_millis(ms))).collect();
        assert_eq!(told, [0, 999, 999]);
        assert_eq!(
            seldom.at(start + Duration::from_secs(60)),
            Some(499),
            "what was left over is told with the next"
        );
        assert_eq!(seldom.at(start + Duration::from_secs(120)), Some(0));
    }
}
