//! What a thread is told from outside, seldom: how many users, how much work, when to stop.

use std::sync::{Arc, Mutex, PoisonError};

use super::pacing::{Allowance, Claim};
use super::user::User;
use super::{Drive, Notice, Worker};
use crate::clock::now_ns;

/// What a thread is told.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Work(Work),
    /// End.
    Stop,
}

/// So many users over all threads, and how much they have to do.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) users: u32,
    pub(crate) allowance: Allowance,
    /// Told back when it is done.
    pub(crate) run: u64,
}

/// Where a thread finds its commands.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    commands: Mutex<Vec<Command>>,
}

impl Mailbox {
    pub(crate) fn put(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }

    fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Worker {
    /// Does as told; whether to end.
    pub(super) fn obey(&mut self) -> bool {
        if !self.core.poller.take_wake() {
            return false;
        }
        for command in self.mailbox.take() {
            match command {
                Command::Stop => {
                    let totals = std::mem::take(&mut self.core.totals);
                    self.notify(Notice::Ended { totals });
                    return true;
                }
                Command::Work(work) => self.work(work),
            }
        }
        false
    }

    fn work(&mut self, work: Work) {
        let at_ns = now_ns();
        self.core.recorder.roll(at_ns);
        self.core.claim = Claim::default();
        self.core.arrivals_over = false;
        self.core.allowance = work.allowance;
        let count = self.share(work.users);
        self.core.restart_schedule(at_ns, work.users as usize);
        self.grow(count);
        for user in &mut self.users {
            user.allowance = self.core.allowance.per_user();
            if user.slot < count {
                self.core.join(user, at_ns);
            } else {
                self.core.dismiss(user, at_ns);
            }
        }
        self.finished = false;
        self.run = work.run;
        // A send fails only when nobody collects any more: the loop finds that out at the next slice.
        self.notify(Notice::Applied { slice: self.core.recorder.index(), at_ns });
    }

    /// This thread's share of the users: user u belongs to thread u modulo the number of threads.
    fn share(&self, users: u32) -> usize {
        let (number, of) = (self.core.thread.number, self.core.thread.of);
        (users as usize + of - 1 - number) / of
    }

    fn grow(&mut self, count: usize) {
        for slot in self.users.len()..count {
            let number = slot * self.core.thread.of + self.core.thread.number;
            let targets = &self.core.targets;
            let Some(target) = targets.get(number % targets.len().max(1)) else { return };
            let values = target.program.stream(self.core.thread.seed, number as u32);
            self.users.push(User::new(slot, Arc::clone(target), values));
        }
    }
}

impl Allowance {
    fn per_user(&self) -> u64 {
        match self {
            Allowance::PerUser(requests) => *requests,
            Allowance::Unlimited | Allowance::Total(_) => u64::MAX,
        }
    }
}

impl super::Core {
    /// An open loop's schedule counts from when there is somebody to keep it. With fewer connections than threads, the
    /// threads without one send nothing.
    fn restart_schedule(&mut self, now_ns: u64, users: usize) {
        if let Drive::Open(schedule) = &mut self.drive {
            schedule.restart(now_ns, users.min(self.thread.of));
        }
    }
}
