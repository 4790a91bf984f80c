//! When to wake whom.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::arena::Key;
use crate::clock::{Micros, NEVER};

/// Whom a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The task that waits on a socket, if its deadline has passed.
    Socket(Key),
    /// A task that sleeps.
    Task(Key),
    /// The loop, to accept again.
    Accept,
}

/// A heap of times. Timers are never taken back: whom a timer wakes finds out whether there is cause.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Micros, Target)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Micros, target: Target) {
        if at != NEVER {
            self.heap.push(Reverse((at, target)));
        }
    }

    /// The earliest time set.
    pub(crate) fn next(&self) -> Micros {
        self.heap.peek().map_or(NEVER, |&Reverse((at, _))| at)
    }

    /// Takes one timer whose time has come.
    pub(crate) fn expired(&mut self, now: Micros) -> Option<(Micros, Target)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_and_not_before_their_time() {
        let mut timers = Timers::default();
        let tasks = [Key::reserved(1), Key::reserved(2), Key::reserved(3)].map(Target::Task);
        timers.set(30, tasks[0]);
        timers.set(10, tasks[1]);
        timers.set(20, tasks[2]);
        timers.set(NEVER, Target::Accept);
        assert_eq!(timers.next(), 10);
        assert_eq!(timers.expired(9), None);
        assert_eq!(timers.expired(20), Some((10, tasks[1])));
        assert_eq!(timers.expired(20), Some((20, tasks[2])));
        assert_eq!(timers.expired(20), None);
        assert_eq!(timers.expired(30), Some((30, tasks[0])));
        assert_eq!(timers.next(), NEVER);
    }
}
