//! Alarms, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an alarm is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Check whether the user's request has timed out. A user has at most one such alarm and keeps it when the request
    /// ends; it is set again when it goes off, so that requests need no timers of their own.
    Timeout,
    /// End the user's pause.
    Resume,
}

/// An alarm of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at_ns: u64,
    pub(crate) slot: usize,
    pub(crate) alarm: Alarm,
}

/// The alarms of a thread.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Due>>,
}

impl Timers {
    #[inline]
    pub(crate) fn set(&mut self, due: Due) {
        self.heap.push(Reverse(due));
    }

    /// When the next alarm is due.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(due)| due.at_ns)
    }

    /// Takes the next alarm that is due at `now_ns`.
    #[inline]
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Due> {
        let Reverse(due) = self.heap.peek()?;
        if due.at_ns > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_go_off_in_order_and_not_before() {
        let mut timers = Timers::default();
        for at_ns in [30, 10, 20] {
            timers.set(Due { at_ns, slot: 0, alarm: Alarm::Resume });
        }
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.pop(9), None);
        let popped: Vec<u64> = std::iter::from_fn(|| timers.pop(25)).map(|due| due.at_ns).collect();
        assert_eq!(popped, [10, 20]);
    }
}
