//! When each user sends: think times, arrivals, back-off, and the order in which users connect for the first time.

use std::collections::VecDeque;

use super::exchange::{Ended, Exchanges};
use super::messages::Assignment;
use super::pacing::{Allowance, Claim, LoopMode, ThreadShare, back_off_ns, think_ns};
use super::timers::{Alarm, Due};
use super::user::{Phase, User};

/// Users of a thread whose first request may be unanswered at a time. To the kernel a connection is established before the
/// server accepts it; only a response shows that the server did. Connections beyond the server's listen queue would be
/// dropped, and retried only a second later.
const OPENING: usize = 64;

/// Time after which another [`OPENING`] users may begin, so that a server that accepts fast but answers slowly has all its
/// users soon.
const OPENING_NS: u64 = 50_000_000;

/// Decides when each user of a thread sends.
pub(super) struct Scheduler {
    mode: LoopMode,
    share: ThreadShare,
    allowance: Allowance,
    claim: Claim,
    /// Open loop: whether the allowance is used up.
    arrivals_over: bool,
    /// Open loop: users without a request. The last one used is on top, so that few connections are used.
    idle: Vec<usize>,
    /// Closed loop: number of users with requests left to make.
    at_work: usize,
    /// Users that wait to begin.
    queued: VecDeque<usize>,
    /// Number of users whose first request is not answered yet.
    opening: usize,
    /// When a user last began.
    opened_ns: u64,
    last_end_ns: u64,
}

impl Scheduler {
    pub(super) fn new(mode: LoopMode, share: ThreadShare, now_ns: u64) -> Self {
        Scheduler {
            mode,
            share,
            allowance: Allowance::Unlimited,
            claim: Claim::default(),
            arrivals_over: false,
            idle: Vec::new(),
            at_work: 0,
            queued: VecDeque::new(),
            opening: 0,
            opened_ns: now_ns,
            last_end_ns: now_ns,
        }
    }

    /// Starts a new assignment.
    pub(super) fn restart(&mut self, assignment: Assignment, now_ns: u64) {
        let Assignment { users, think, rate_per_s, allowance, .. } = assignment;
        self.allowance = allowance;
        self.claim = Claim::default();
        self.arrivals_over = false;
        match (&mut self.mode, think) {
            // With fewer connections than threads, the threads without one send nothing.
            (LoopMode::Open(schedule), _) => {
                schedule.restart(now_ns, (users as usize).min(self.share.of), rate_per_s);
            }
            (LoopMode::Closed { think: current }, Some(think)) => *current = think,
            (LoopMode::Closed { .. }, None) => {}
        }
    }

    /// Lets a user take part: in a closed loop it queues to begin, in an open loop it waits for an arrival.
    pub(super) fn join(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        user.allowance = self.allowance.per_user();
        user.leaving = false;
        if user.phase.is_busy() {
            return;
        }
        match self.mode {
            LoopMode::Closed { .. } if matches!(user.phase, Phase::Absent | Phase::Idle) => {
                self.at_work += 1;
                user.phase = Phase::Queued;
                self.start_thinking(exchanges, now_ns);
                self.queued.push_back(user.slot);
            }
            LoopMode::Open(_) if user.phase == Phase::Absent => {
                user.phase = Phase::Idle;
                self.idle.push(user.slot);
            }
            _ => {}
        }
    }

    /// Takes a user back that waits to repeat a handshake: what kept it waiting were users who are leaving now. By the
    /// kernel's timer alone it would be away for seconds of the next step.
    pub(super) fn take_back(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        let is_closed = matches!(self.mode, LoopMode::Closed { .. });
        if is_closed && exchanges.give_up_retried_connect(user, now_ns) {
            self.opened(user);
            self.leave(user);
        }
    }

    /// Tells a user to leave: at once if it is between requests, otherwise when its request ends.
    pub(super) fn dismiss(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        match user.phase {
            Phase::Absent => {}
            Phase::Connecting | Phase::Sending | Phase::Receiving => user.leaving = true,
            Phase::Queued | Phase::Pausing => {
                self.stop_thinking(exchanges, now_ns);
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

    /// How many queued users may begin now.
    pub(super) fn room_to_open(&self, now_ns: u64) -> usize {
        let overdue = now_ns >= self.opened_ns + OPENING_NS;
        if overdue { OPENING } else { OPENING.saturating_sub(self.opening) }
    }

    /// Takes the next user that waits to begin.
    pub(super) fn pop_queued(&mut self, now_ns: u64) -> Option<usize> {
        let slot = self.queued.pop_front()?;
        self.opened_ns = now_ns;
        Some(slot)
    }

    /// Begins the first request of a user that was queued.
    pub(super) fn begin_queued(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        if user.phase != Phase::Queued {
            return;
        }
        self.stop_thinking(exchanges, now_ns);
        if user.stream.is_none() {
            user.opening = true;
            self.opening += 1;
        }
        self.begin_if_allowed(user, exchanges, now_ns);
        if !user.phase.is_busy() {
            self.opened(user);
        }
    }

    /// Notes that a user's first request has ended, so that the next user may begin.
    #[inline]
    fn opened(&mut self, user: &mut User) {
        if user.opening {
            user.opening = false;
            self.opening -= 1;
        }
    }

    /// Decides what a user does after its request has ended.
    #[inline]
    pub(super) fn after(&mut self, user: &mut User, ended: Ended, exchanges: &mut Exchanges) {
        self.opened(user);
        self.last_end_ns = ended.at_ns;
        if user.leaving {
            return self.leave(user);
        }
        if ended.failed {
            return self.pause(user, exchanges, ended.at_ns, back_off_ns(user.failures));
        }
        match &self.mode {
            LoopMode::Closed { think } => match think_ns(*think, &mut user.values.rng) {
                0 => self.begin_if_allowed(user, exchanges, ended.at_ns),
                pause => self.pause(user, exchanges, ended.at_ns, pause),
            },
            LoopMode::Open(_) => self.take_arrival(user, exchanges, ended.at_ns),
        }
    }

    fn pause(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64, length_ns: u64) {
        user.phase = Phase::Pausing;
        user.resume_ns = now_ns.saturating_add(length_ns);
        self.start_thinking(exchanges, now_ns);
        exchanges.timers.set(Due { at_ns: user.resume_ns, slot: user.slot, alarm: Alarm::Resume });
    }

    /// Handles the end of a pause.
    pub(super) fn on_resume(&mut self, user: &mut User, exchanges: &mut Exchanges, at_ns: u64, now_ns: u64) {
        // The alarm may belong to a pause that ended when the user left.
        if user.phase != Phase::Pausing || user.resume_ns != at_ns {
            return;
        }
        exchanges.recorder.lagged(now_ns.saturating_sub(at_ns));
        self.stop_thinking(exchanges, now_ns);
        match &self.mode {
            LoopMode::Closed { .. } => self.begin_if_allowed(user, exchanges, now_ns),
            LoopMode::Open(_) => self.take_arrival(user, exchanges, now_ns),
        }
    }

    /// Closed loop: begins a user's next request, unless its share of the requests is done.
    #[inline]
    fn begin_if_allowed(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        if self.may_begin(user) {
            self.begin(user, exchanges, now_ns, now_ns);
        } else {
            user.phase = Phase::Idle;
            self.at_work = self.at_work.saturating_sub(1);
        }
    }

    #[inline]
    fn begin(&mut self, user: &mut User, exchanges: &mut Exchanges, started_ns: u64, now_ns: u64) {
        // A request that ends at once has failed: the user pauses, so this goes no deeper.
        if let Some(ended) = exchanges.begin(user, started_ns, now_ns) {
            self.after(user, ended, exchanges);
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
            Allowance::Total(total) => self.claim.take(total, self.share.of as u64),
        }
    }

    /// Open loop: gives the user the request that is due, or lets it wait for one.
    fn take_arrival(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        user.phase = Phase::Idle;
        if self.next_arrival_ns().is_none_or(|at_ns| at_ns > now_ns) {
            self.idle.push(user.slot);
            return;
        }
        // The request became due while no connection was free.
        exchanges.recorder.started_late();
        self.begin_next_arrival(user, exchanges, now_ns);
    }

    /// Open loop: begins the request that was due at `at_ns` on an idle user.
    pub(super) fn begin_arrival(
        &mut self,
        user: &mut User,
        exchanges: &mut Exchanges,
        at_ns: u64,
        now_ns: u64,
    ) {
        exchanges.recorder.lagged(now_ns.saturating_sub(at_ns));
        self.begin_next_arrival(user, exchanges, now_ns);
    }

    /// Open loop: begins the request that is due. Its response time counts from its intended start.
    fn begin_next_arrival(&mut self, user: &mut User, exchanges: &mut Exchanges, now_ns: u64) {
        let LoopMode::Open(schedule) = &mut self.mode else { return };
        let intended_ns = schedule.next_ns();
        schedule.advance();
        if self.may_begin(user) {
            self.begin(user, exchanges, intended_ns, now_ns);
        } else {
            self.arrivals_over = true;
            self.idle.push(user.slot);
        }
    }

    /// Open loop: takes an idle user.
    pub(super) fn pop_idle(&mut self) -> Option<usize> {
        self.idle.pop()
    }

    /// Open loop: when the next request is due.
    pub(super) fn next_arrival_ns(&self) -> Option<u64> {
        match &self.mode {
            LoopMode::Open(schedule) if !self.arrivals_over => Some(schedule.next_ns()),
            _ => None,
        }
    }

    /// When the scheduler next has something to do; 0 if it is at once.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let queue = match self.opening < OPENING {
            _ if self.queued.is_empty() => None,
            true => Some(0),
            false => Some(self.opened_ns + OPENING_NS),
        };
        let arrival = self.next_arrival_ns().filter(|_| !self.idle.is_empty());
        [queue, arrival].into_iter().flatten().min()
    }

    /// Whether the thread's part of the assignment is done.
    pub(super) fn is_finished(&self, users: &[User]) -> bool {
        match (&self.allowance, &self.mode) {
            (Allowance::Unlimited, _) => false,
            (_, LoopMode::Closed { .. }) => self.at_work == 0,
            (_, LoopMode::Open(_)) => {
                let present = || users.iter().filter(|user| user.phase != Phase::Absent).count();
                // A thread without a connection gets no arrivals.
                present() == 0 || self.arrivals_over && self.idle.len() == present()
            }
        }
    }

    /// When the last request ended.
    pub(super) fn last_end_ns(&self) -> u64 {
        self.last_end_ns
    }

    /// Counts thinking time. Not in an open loop: there, a pause is the back-off of a connection and not of a user.
    fn start_thinking(&self, exchanges: &mut Exchanges, now_ns: u64) {
        if matches!(self.mode, LoopMode::Closed { .. }) {
            exchanges.recorder.think(now_ns);
        }
    }

    fn stop_thinking(&self, exchanges: &mut Exchanges, now_ns: u64) {
        if matches!(self.mode, LoopMode::Closed { .. }) {
            exchanges.recorder.stop_thinking(now_ns);
        }
    }
}
