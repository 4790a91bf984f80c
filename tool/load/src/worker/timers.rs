//! Things to do later, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What to do with a user when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Look whether its request has timed out. At most one per user: a user whose request is over
    /// keeps the alarm, which is set anew when it goes off, so a request costs no timer of its own.
    Timeout,
    /// Its pause is over.
    Resume,
}

/// One alarm of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at_ns: u64,
    pub(crate) slot: usize,
    pub(crate) alarm: Alarm,
}

/// All alarms of a thread.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Due>>,
}

impl Timers {
    #[inline]
    pub(crate) fn set(&mut self, due: Due) {
        self.heap.push(Reverse(due));
    }

    /// When the next alarm goes off.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(due)| due.at_ns)
    }

    /// The next alarm that is due at `now_ns`.
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
