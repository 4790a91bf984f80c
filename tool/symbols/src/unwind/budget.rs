//! How much time reading may take, so that a process that maps new code all the time costs no more than one that does not.

use std::time::{Duration, Instant};

/// For the tables of a large program and all of its libraries, from a slow disk.
const AT_FIRST: Duration = Duration::from_millis(500);

/// The share of one processor afterwards: one in so many.
const ONE_IN: u32 = 50;

/// Time that was spent, of what may be.
#[derive(Debug)]
pub(super) struct Budget {
    began: Instant,
    spent: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { began: Instant::now(), spent: Duration::ZERO }
    }
}

impl Budget {
    /// Does something that takes time; `None` where too much was spent already.
    pub(super) fn spend<T>(&mut self, act: impl FnOnce() -> T) -> Option<T> {
        if self.spent > allowed(self.began.elapsed()) {
            return None;
        }
        let began = Instant::now();
        let result = act();
        self.spent += began.elapsed();
        Some(result)
    }
}

fn allowed(elapsed: Duration) -> Duration {
    AT_FIRST + elapsed / ONE_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_too_much_is_not_done() {
        let mut budget = Budget::default();
        assert_eq!(budget.spend(|| 1), Some(1));
        budget.spent += Duration::from_secs(1_000);
        assert_eq!(budget.spend(|| 1), None);
        assert!(allowed(Duration::from_secs(100)) > AT_FIRST, "more as time passes");
    }
}
