//! The event loop: waits, dispatches events, applies commands, hands over slices.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::exchange::Exchanges;
use super::messages::{Assignment, Command, FromThread, Mailbox, Notice};
use super::pacing::{LoopMode, ThreadShare};
use super::scheduler::Scheduler;
use super::target::{Target, Targets};
use super::timers::Alarm;
use super::user::{Phase, User};
use crate::clock::{self, now_ns};
use crate::error::LoadError;
use crate::fleet::Numbers;
use crate::transport::poller::{Readiness, WAKE, Waker};

/// A generator thread's users, and everything that they share.
pub(crate) struct Worker {
    share: ThreadShare,
    /// Numbers of the users of this generator among all of the load.
    numbers: Numbers,
    targets: Vec<Arc<Target>>,
    users: Vec<User>,
    scheduler: Scheduler,
    exchanges: Exchanges,
    mailbox: Arc<Mailbox>,
    reports: Sender<FromThread>,
    /// Number of the current assignment.
    assignment: u64,
    finished: bool,
}

impl Worker {
    pub(crate) fn new(
        targets: &Targets,
        (share, numbers): (ThreadShare, Numbers),
        mode: LoopMode,
        mailbox: Arc<Mailbox>,
        reports: Sender<FromThread>,
    ) -> Result<Self, LoadError> {
        let now_ns = now_ns();
        Ok(Worker {
            share,
            numbers,
            targets: targets.targets.clone(),
            users: Vec::new(),
            scheduler: Scheduler::new(mode, share, now_ns),
            exchanges: Exchanges::new(targets, now_ns)?,
            mailbox,
            reports,
            assignment: 0,
            finished: true,
        })
    }

    /// Makes a handle that ends this thread's wait when there is a command.
    pub(crate) fn waker(&self) -> Result<Waker, LoadError> {
        self.exchanges.poller.waker().map_err(LoadError::system("duplicate an event descriptor"))
    }

    /// Runs until told to stop, or until nobody receives its messages any more.
    pub(crate) fn run(mut self) {
        loop {
            let now_ns = now_ns();
            self.exchanges.recorder.worked(now_ns.saturating_sub(self.exchanges.woke_ns));
            if self.apply_commands() || !self.report(now_ns) || !self.wait(now_ns) {
                return;
            }
            self.handle_events();
            self.handle_unfinished();
            self.handle_alarms();
            self.handle_arrivals();
            self.handle_queue();
        }
    }

    /// Applies queued commands. Returns true once told to stop.
    fn apply_commands(&mut self) -> bool {
        if !self.exchanges.poller.take_wake() {
            return false;
        }
        for command in self.mailbox.take() {
            match command {
                Command::Stop => {
                    let totals = std::mem::take(&mut self.exchanges.totals);
                    self.notify(Notice::Ended { totals });
                    return true;
                }
                Command::Run(assignment) => self.apply(assignment),
            }
        }
        false
    }

    fn apply(&mut self, assignment: Assignment) {
        let (number, count) = (assignment.number, self.share.of_users(assignment.users));
        // Making many users takes time, and none of them begins before all are there.
        self.add_users(count);
        let at_ns = now_ns();
        self.exchanges.recorder.roll(at_ns);
        self.scheduler.restart(assignment, at_ns);
        let some_leave = self.users.iter().skip(count).any(|user| user.phase != Phase::Absent);
        for user in &mut self.users {
            if some_leave {
                self.scheduler.take_back(user, &mut self.exchanges, at_ns);
            }
            if user.slot < count {
                self.scheduler.join(user, &mut self.exchanges, at_ns);
            } else {
                self.scheduler.dismiss(user, &mut self.exchanges, at_ns);
            }
        }
        self.finished = false;
        self.assignment = number;
        // A send fails only if nobody receives any more, which the loop notices at the next slice.
        self.notify(Notice::Applied { slice: self.exchanges.recorder.index(), at_ns });
    }

    /// Creates users up to this number.
    fn add_users(&mut self, count: usize) {
        for slot in self.users.len()..count {
            let number = self.numbers.at(self.share.number_of(slot));
            let Some(target) = self.targets.get(number as usize % self.targets.len().max(1)) else { return };
            let values = target.program.stream(self.share.seed, number);
            self.users.push(User::new(slot, Arc::clone(target), values));
        }
    }

    fn handle_events(&mut self) {
        for index in 0..self.exchanges.poller.len() {
            match self.exchanges.poller.event(index) {
                Some(event) if event.token == WAKE => self.exchanges.poller.acknowledge_wake(),
                Some(event) => self.handle_event(event),
                None => {}
            }
        }
    }

    #[inline]
    fn handle_event(&mut self, event: Readiness) {
        let (slot, connection) = User::of_token(event.token);
        let Some(user) = self.users.get_mut(slot).filter(|user| user.connection == connection) else {
            return;
        };
        if let Some(ended) = self.exchanges.on_event(user, event) {
            self.scheduler.after(user, ended, &mut self.exchanges);
        }
    }

    fn handle_unfinished(&mut self) {
        for _ in 0..self.exchanges.unfinished.len() {
            let Some(slot) = self.exchanges.unfinished.pop_front() else { return };
            let Some(user) = self.users.get_mut(slot) else { continue };
            if let Some(ended) = self.exchanges.on_next_turn(user) {
                self.scheduler.after(user, ended, &mut self.exchanges);
            }
        }
    }

    fn handle_alarms(&mut self) {
        // Alarms that became due since the wait are handled after the next one, which does not block then.
        if self.exchanges.timers.next_ns().is_none_or(|next_ns| next_ns > self.exchanges.woke_ns) {
            return;
        }
        let mut now_ns = now_ns();
        while let Some(due) = self.exchanges.timers.pop(now_ns) {
            let Some(user) = self.users.get_mut(due.slot) else { continue };
            match due.alarm {
                Alarm::Timeout => {
                    if let Some(ended) = self.exchanges.on_timeout(user, now_ns) {
                        self.scheduler.after(user, ended, &mut self.exchanges);
                    }
                }
                Alarm::Resume => {
                    self.scheduler.on_resume(user, &mut self.exchanges, due.at_ns, now_ns);
                    // The next user's request starts after this one's was sent.
                    now_ns = clock::now_ns();
                }
            }
        }
    }

    fn handle_arrivals(&mut self) {
        while let Some(at_ns) = self.scheduler.next_arrival_ns() {
            let now_ns = now_ns();
            if at_ns > now_ns {
                return;
            }
            let Some(slot) = self.scheduler.pop_idle() else { return };
            if let Some(user) = self.users.get_mut(slot) {
                self.scheduler.begin_arrival(user, &mut self.exchanges, at_ns, now_ns);
            }
        }
    }

    fn handle_queue(&mut self) {
        for _ in 0..self.scheduler.room_to_open(self.exchanges.woke_ns) {
            let Some(slot) = self.scheduler.pop_queued(self.exchanges.woke_ns) else { return };
            if let Some(user) = self.users.get_mut(slot) {
                self.scheduler.begin_queued(user, &mut self.exchanges, now_ns());
            }
        }
    }

    /// Hands over finished slices. Returns whether anybody receives them.
    fn report(&mut self, now_ns: u64) -> bool {
        let thread = self.share.number;
        self.exchanges.recorder.roll(now_ns);
        if now_ns >= self.exchanges.recorder.count_at_ns() {
            let in_flight = self.users.iter().map(|user| u32::from(user.phase.is_busy())).sum();
            self.exchanges.recorder.count(now_ns, in_flight, self.users.len() as u64);
        }
        for slice in self.exchanges.recorder.take_finished() {
            if self.reports.send(FromThread::Slice { thread, slice: Box::new(slice) }).is_err() {
                return false;
            }
        }
        if !self.finished && self.scheduler.is_finished(&self.users) {
            self.finished = true;
            let at_ns = self.scheduler.last_end_ns();
            return self.notify(Notice::Finished { assignment: self.assignment, at_ns });
        }
        true
    }

    fn notify(&self, notice: Notice) -> bool {
        self.reports.send(FromThread::Notice(notice)).is_ok()
    }

    /// Waits until something is ready or due. Returns whether the wait succeeded.
    fn wait(&mut self, now_ns: u64) -> bool {
        let timeout_ns = self.wait_ns(now_ns);
        let waited = self.exchanges.poller.wait(timeout_ns);
        self.exchanges.woke_ns = clock::now_ns();
        waited.is_ok()
    }

    /// Time until something is due.
    fn wait_ns(&self, now_ns: u64) -> u64 {
        if !self.exchanges.unfinished.is_empty() {
            return 0;
        }
        let due = [self.exchanges.timers.next_ns(), self.scheduler.next_ns()].into_iter().flatten().min();
        let recorder = &self.exchanges.recorder;
        let of_recorder = recorder.slice_end_ns().min(recorder.count_at_ns());
        due.unwrap_or(u64::MAX).min(of_recorder).saturating_sub(now_ns)
    }
}
