//! A task's wait for a socket, with its deadline.

use super::{
    arena::Key,
    timers::{Target, Timers},
};
use crate::clock::{self, Micros, NEVER};

/// Who waits for what on one socket, and until when. `I` says for what.
#[derive(Debug)]
pub(crate) struct Wait<I> {
    waiter: Option<(Key, I)>,
    /// When the wait fails.
    deadline: Micros,
    /// The earliest timer set for it, which may be earlier than the deadline, never later.
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

    /// `task` waits on `socket`.
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
            timers.set(deadline, Target::Socket(socket));
        }
    }

    /// Whether a task waits for `interest`.
    pub(crate) fn is_for(&self, interest: I) -> bool {
        self.waiter.is_some_and(|(_, awaited)| awaited == interest)
    }

    /// Ends the wait if it is for something `ready` accepts; returns the task to poll.
    pub(crate) fn end_if(&mut self, ready: impl FnOnce(I) -> bool) -> Option<Key> {
        let (task, interest) = self.waiter?;
        if !ready(interest) {
            return None;
        }
        self.waiter = None;
        Some(task)
    }

    /// The timer set for `at` went off; returns the task whose wait has failed.
    pub(crate) fn expire(
        &mut self,
        (at, now): (Micros, Micros),
        socket: Key,
        timers: &mut Timers,
    ) -> Option<Key> {
        if self.timer != at {
            return None; // An earlier one stood in for it.
        }
        self.timer = NEVER;
        let (task, _) = self.waiter?;
        if self.deadline <= now {
            self.waiter = None;
            return Some(task);
        }
        self.timer = self.deadline;
        timers.set(self.deadline, Target::Socket(socket));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_timer_stands_in_for_later_deadlines_and_none_fails_a_wait_early() {
        let (socket, task) = (Key::reserved(1), Key::reserved(2));
        let (mut timers, mut wait) = (Timers::default(), Wait::new());
        wait.begin((task, 'r'), 10, socket, &mut timers);
        assert_eq!(wait.end_if(|interest| interest == 'w'), None);
        assert_eq!(wait.end_if(|interest| interest == 'r'), Some(task));
        wait.begin((task, 'w'), 30, socket, &mut timers);
        assert_eq!(timers.expired(10), Some((10, Target::Socket(socket))));
        assert_eq!(wait.expire((10, 10), socket, &mut timers), None, "the wait lasts until 30");
        assert_eq!(timers.expired(30), Some((30, Target::Socket(socket))));
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
        assert_eq!(timers.expired(20), Some((20, Target::Socket(socket))));
        assert_eq!(wait.expire((20, 20), socket, &mut timers), Some(task));
        // The longer one finds nobody.
        assert_eq!(timers.expired(50), Some((50, Target::Socket(socket))));
        assert_eq!(wait.expire((50, 50), socket, &mut timers), None);
    }
}
