//! Timers, and a task's wait for a socket with its deadline.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::arena::Key;
use crate::clock::{self, Micros, NEVER};

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wakeup {
    /// The task that waits on a socket, if its deadline has passed.
    Socket(Key),
    /// A sleeping task.
    Task(Key),
    /// The loop, to accept again.
    Accept,
}

/// A heap of times. Timers are never cancelled: whatever a timer wakes checks whether there is cause.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Micros, Wakeup)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Micros, wakeup: Wakeup) {
        if at != NEVER {
            self.heap.push(Reverse((at, wakeup)));
        }
    }

    /// The earliest time set.
    pub(crate) fn next(&self) -> Micros {
        self.heap.peek().map_or(NEVER, |&Reverse((at, _))| at)
    }

    /// Removes a timer whose time has come.
    pub(crate) fn expired(&mut self, now: Micros) -> Option<(Micros, Wakeup)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}

/// Which task waits on a socket, for what (`I`), and until when.
#[derive(Debug)]
pub(crate) struct Wait<I> {
    waiter: Option<(Key, I)>,
    /// When the wait fails.
    deadline: Micros,
    /// The earliest timer set for the socket. It may be earlier than the deadline, but never later.
    timer: Micros,
}

impl<I: Copy + PartialEq> Wait<I> {
    pub(crate) const fn new() -> Self {
        Self { waiter: None, deadline: NEVER, timer: NEVER }
    }

    /// Whether a wait until `deadline` fails before it begins.
    pub(crate) fn is_late(deadline: Micros) -> bool {
        deadline != NEVER && deadline <= clock::coarse()
    }

    /// Makes `task` wait on `socket`.
    pub(crate) fn begin(
        &mut self,
        (task, interest): (Key, I),
        deadline: Micros,
        socket: Key,
        timers: &mut Timers,
    ) {
        self.waiter = Some((task, interest));
        self.deadline = deadline;
        if deadline < self.timer {
            self.timer = deadline;
            timers.set(deadline, Wakeup::Socket(socket));
        }
    }

    /// Whether a task waits for `interest`.
    pub(crate) fn is_for(&self, interest: I) -> bool {
        self.waiter.is_some_and(|(_, awaited)| awaited == interest)
    }

    /// Ends the wait if `ready` accepts what it is for. Returns the task to poll.
    pub(crate) fn end_if(&mut self, ready: impl FnOnce(I) -> bool) -> Option<Key> {
        let (task, interest) = self.waiter?;
        if !ready(interest) {
            return None;
        }
        self.waiter = None;
        Some(task)
    }

    /// Handles the timer set for `at`. Returns the task whose wait has failed.
    pub(crate) fn expire(
        &mut self,
        (at, now): (Micros, Micros),
        socket: Key,
        timers: &mut Timers,
    ) -> Option<Key> {
        if self.timer != at {
            return None; // An earlier timer was set in its place.
        }
        self.timer = NEVER;
        let (task, _) = self.waiter?;
        if self.deadline <= now {
            self.waiter = None;
            return Some(task);
        }
        self.timer = self.deadline;
        timers.set(self.deadline, Wakeup::Socket(socket));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_order_and_not_before_their_time() {
        let mut timers = Timers::default();
        let tasks = [Key::reserved(1), Key::reserved(2), Key::reserved(3)].map(Wakeup::Task);
        timers.set(30, tasks[0]);
        timers.set(10, tasks[1]);
        timers.set(20, tasks[2]);
        timers.set(NEVER, Wakeup::Accept);
        assert_eq!(timers.next(), 10);
        assert_eq!(timers.expired(9), None);
        assert_eq!(timers.expired(20), Some((10, tasks[1])));
        assert_eq!(timers.expired(20), Some((20, tasks[2])));
        assert_eq!(timers.expired(20), None);
        assert_eq!(timers.expired(30), Some((30, tasks[0])));
        assert_eq!(timers.next(), NEVER);
    }

    #[test]
    fn an_early_timer_serves_a_later_deadline_and_no_wait_fails_early() {
        let (socket, task) = (Key::reserved(1), Key::reserved(2));
        let (mut timers, mut wait) = (Timers::default(), Wait::new());
        wait.begin((task, 'r'), 10, socket, &mut timers);
        assert_eq!(wait.end_if(|interest| interest == 'w'), None);
        assert_eq!(wait.end_if(|interest| interest == 'r'), Some(task));
        wait.begin((task, 'w'), 30, socket, &mut timers);
        assert_eq!(timers.expired(10), Some((10, Wakeup::Socket(socket))));
        assert_eq!(wait.expire((10, 10), socket, &mut timers), None, "the wait lasts until 30");
        assert_eq!(timers.expired(30), Some((30, Wakeup::Socket(socket))));
        assert_eq!(wait.expire((30, 30), socket, &mut timers), Some(task));
        assert_eq!(wait.end_if(|_| true), None, "it has failed already");
        assert_eq!(timers.next(), NEVER);
    }

    #[test]
    fn a_shorter_deadline_is_met_although_a_longer_timer_is_set() {
        let (socket, task) = (Key::reserved(1), Key::reserved(2));
        let (mut timers, mut wait) = (Timers::default(), Wait::new());
        wait.begin((task, ()), 50, socket, &mut timers);
        wait.begin((task, ()), 20, socket, &mut timers);
        assert_eq!(timers.expired(20), Some((20, Wakeup::Socket(socket))));
        assert_eq!(wait.expire((20, 20), socket, &mut timers), Some(task));
        // The longer timer finds nobody.
        assert_eq!(timers.expired(50), Some((50, Wakeup::Socket(socket))));
        assert_eq!(wait.expire((50, 50), socket, &mut timers), None);
    }
}
