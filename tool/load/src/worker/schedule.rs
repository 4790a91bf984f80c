//! What a user does between two requests, and which users take part.

use super::pacing::{Allowance, back_off_ns, think_ns};
use super::timers::{Alarm, Due};
use super::user::{Phase, User};
use super::{Core, Drive};

impl Core {
    /// A request is over, its connection fine or closed in good order.
    #[inline]
    pub(super) fn after_request(&mut self, user: &mut User, now_ns: u64) {
        self.last_end_ns = now_ns;
        if user.leaving {
            return self.leave(user);
        }
        match &self.drive {
            Drive::Closed { think } => match think_ns(*think, &mut user.values.rng) {
                0 => self.begin_if_allowed(user, now_ns),
                pause => self.pause(user, now_ns, pause),
            },
            Drive::Open(_) => self.take_arrival(user, now_ns),
        }
    }

    /// A request failed with its connection.
    pub(super) fn after_failure(&mut self, user: &mut User, now_ns: u64) {
        self.last_end_ns = now_ns;
        if user.leaving {
            return self.leave(user);
        }
        self.pause(user, now_ns, back_off_ns(user.failures));
    }

    /// A user's pause is over.
    pub(super) fn on_resume(&mut self, user: &mut User, at_ns: u64, now_ns: u64) {
        // The alarm may be of a pause that ended when the user left.
        if user.phase != Phase::Pausing || user.resume_ns != at_ns {
            return;
        }
        self.recorder.lagged(now_ns.saturating_sub(at_ns));
        self.stop_thinking(now_ns);
        match &self.drive {
            Drive::Closed { .. } => self.begin_if_allowed(user, now_ns),
            Drive::Open(_) => self.take_arrival(user, now_ns),
        }
    }

    fn pause(&mut self, user: &mut User, now_ns: u64, length_ns: u64) {
        user.phase = Phase::Pausing;
        user.resume_ns = now_ns.saturating_add(length_ns);
        self.think(now_ns);
        self.timers.set(Due { at_ns: user.resume_ns, slot: user.slot, alarm: Alarm::Resume });
    }

    /// Begins a user's next request unless its share of the work is done.
    #[inline]
    fn begin_if_allowed(&mut self, user: &mut User, now_ns: u64) {
        if self.may_begin(user) {
            self.begin(user, now_ns, now_ns);
        } else {
            self.rest(user);
        }
    }

    #[inline]
    fn may_begin(&mut self, user: &mut User) -> bool {
        match &self.allowance {
            Allowance::Unlimited => true,
            Allowance::PerUser(_) => match user.allowance.checked_sub(1) {
                Some(rest) => {
                    user.allowance = rest;
                    true
                }
                None => false,
            },
            Allowance::Total(total) => self.claim.take(total, self.thread.of as u64),
        }
    }

    /// The user's work is done.
    fn rest(&mut self, user: &mut User) {
        user.phase = Phase::Idle;
        self.at_work = self.at_work.saturating_sub(1);
    }

    /// Open loop: the user takes the request that is due, or waits for one.
    pub(super) fn take_arrival(&mut self, user: &mut User, now_ns: u64) {
        user.phase = Phase::Idle;
        if self.next_arrival_ns().is_none_or(|at_ns| at_ns > now_ns) {
            self.idle.push(user.slot);
            return;
        }
        // Due while no connection was free.
        self.recorder.started_late();
        self.begin_arrival(user, now_ns);
    }

    /// Open loop: begins the request that is due. Its response time counts from its intended start.
    fn begin_arrival(&mut self, user: &mut User, now_ns: u64) {
        let Drive::Open(schedule) = &mut self.drive else { return };
        let intended_ns = schedule.next_ns();
        schedule.advance();
        if self.may_begin(user) {
            self.begin(user, intended_ns, now_ns);
        } else {
            self.arrivals_over = true;
            self.idle.push(user.slot);
        }
    }

    /// Open loop: when the next request is due.
    pub(super) fn next_arrival_ns(&self) -> Option<u64> {
        match &self.drive {
            Drive::Open(schedule) if !self.arrivals_over => Some(schedule.next_ns()),
            _ => None,
        }
    }

    /// Open loop: begins what is due on the idle user given.
    pub(super) fn begin_due(&mut self, user: &mut User, now_ns: u64) {
        let at_ns = self.next_arrival_ns().unwrap_or(now_ns);
        self.recorder.lagged(now_ns.saturating_sub(at_ns));
        self.begin_arrival(user, now_ns);
    }

    /// A user joins: in a closed loop it queues to begin, in an open one it waits for work.
    pub(super) fn join(&mut self, user: &mut User, now_ns: u64) {
        user.leaving = false;
        if user.phase.is_busy() {
            return;
        }
        match self.drive {
            Drive::Closed { .. } if matches!(user.phase, Phase::Absent | Phase::Idle) => {
                self.at_work += 1;
                user.phase = Phase::Queued;
                self.think(now_ns);
                self.queued.push_back(user.slot);
            }
            Drive::Open(_) if user.phase == Phase::Absent => {
                user.phase = Phase::Idle;
                self.idle.push(user.slot);
            }
            _ => {}
        }
    }

    /// A queued user's turn to begin has come.
    pub(super) fn on_turn(&mut self, user: &mut User, now_ns: u64) {
        if user.phase != Phase::Queued {
            return;
        }
        self.stop_thinking(now_ns);
        if user.stream.is_none() {
            user.opening = true;
            self.opening += 1;
        }
        self.begin_if_allowed(user, now_ns);
        if !user.phase.is_busy() {
            self.opened(user);
        }
    }

    /// The server has taken a user's first connection, or has not: the next user may try.
    #[inline]
    pub(super) fn opened(&mut self, user: &mut User) {
        if user.opening {
            user.opening = false;
            self.opening -= 1;
        }
    }

    /// A user is to leave: at once if it is between requests, else when its request is over.
    pub(super) fn dismiss(&mut self, user: &mut User, now_ns: u64) {
        match user.phase {
            Phase::Absent => {}
            Phase::Connecting | Phase::Sending | Phase::Receiving => user.leaving = true,
            Phase::Queued | Phase::Pausing => {
                self.stop_thinking(now_ns);
                self.leave(user);
            }
            Phase::Idle => {
                self.idle.retain(|slot| *slot != user.slot);
                user.phase = Phase::Absent;
                user.stream = None;
            }
        }
    }

    fn leave(&mut self, user: &mut User) {
        user.phase = Phase::Absent;
        user.leaving = false;
        user.stream = None;
        self.at_work = self.at_work.saturating_sub(1);
    }

    /// In an open loop nobody thinks: a pause there is a back-off of a connection, not of a user.
    fn think(&mut self, now_ns: u64) {
        if matches!(self.drive, Drive::Closed { .. }) {
            self.recorder.think(now_ns);
        }
    }

    fn stop_thinking(&mut self, now_ns: u64) {
        if matches!(self.drive, Drive::Closed { .. }) {
            self.recorder.stop_thinking(now_ns);
        }
    }
}
