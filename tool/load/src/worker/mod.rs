//! One generator thread: an event loop that carries its share of the users.

mod commands;
pub(crate) mod pacing;
mod protocol;
mod schedule;
mod sending;
mod target;
mod timers;
mod user;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use wire::Limits;

pub(crate) use commands::{Command, Mailbox, Work};
pub(crate) use target::Target;

use crate::clock::{self, now_ns};
use crate::error::LoadError;
use crate::plan::{Connections, Think};
use crate::record::{Recorder, Slice};
use crate::render::Scratch;
use crate::tally::RequestTotal;
use crate::transport::poller::{Poller, Readiness, WAKE, Waker};
use pacing::{Allowance, Claim, Schedule, Thread};
use timers::{Alarm, Timers};
use user::{Phase, User};

/// Room for one read. Only its first part is ever written to, and so takes memory, unless a kernel
/// copies what it was told to discard.
const BUFFER_BYTES: usize = 1 << 20;

/// Users of a thread whose first request may be unanswered at a time. A connection counts as made for
/// the kernel before the server takes it off its listen queue; only an answer shows that it did. What
/// is more than the queue holds would be dropped, and be tried again only a second later.
const OPENING: usize = 64;

/// After so long as many again may begin, so that a server that is slow to answer, but not to accept,
/// has its users soon.
const OPENING_NS: u64 = 50_000_000;

/// What all threads of a run share.
pub(crate) struct Settings {
    /// User u sends to number u modulo their number.
    pub(crate) targets: Vec<Arc<Target>>,
    /// Where each thread's totals begin: nothing of every request.
    pub(crate) totals: Vec<RequestTotal>,
    pub(crate) connections: Connections,
    pub(crate) timeout_ns: u64,
}

/// What makes requests start.
pub(crate) enum Drive {
    /// The end of the one before.
    Closed { think: Think },
    /// A schedule.
    Open(Schedule),
}

/// What a thread tells the one that collects.
pub(crate) enum Report {
    /// A slice is over.
    Slice { thread: usize, slice: Slice },
    /// Something that happens once a step.
    Notice(Notice),
}

/// What a thread tells seldom.
pub(crate) enum Notice {
    /// A command took effect in this slice, at this time.
    Applied { slice: u64, at_ns: u64 },
    /// All the work allowed is done; the last request ended at this time.
    Finished { run: u64, at_ns: u64 },
    /// It ends; what it did of each request of the scenario.
    Ended { totals: Vec<RequestTotal> },
}

/// A thread's users, and all they share.
pub(crate) struct Worker {
    users: Vec<User>,
    core: Core,
    mailbox: Arc<Mailbox>,
    reports: Sender<Report>,
    finished: bool,
    run: u64,
}

/// What the users of a thread share.
struct Core {
    targets: Vec<Arc<Target>>,
    connections: Connections,
    timeout_ns: u64,
    limits: Limits,
    thread: Thread,
    drive: Drive,
    allowance: Allowance,
    claim: Claim,
    arrivals_over: bool,
    poller: Poller,
    timers: Timers,
    recorder: Recorder,
    totals: Vec<RequestTotal>,
    buffer: Vec<u8>,
    scratch: Scratch,
    /// Users with more to read or to send than their turn allowed.
    unfinished: VecDeque<usize>,
    /// Users that have not begun yet.
    queued: VecDeque<usize>,
    /// Users whose first request is not answered yet.
    opening: usize,
    /// When users last began.
    opened_ns: u64,
    /// Open loop: users without a request, the one used last on top, so that few connections are used.
    idle: Vec<usize>,
    /// Closed loop: users that have work left.
    at_work: usize,
    last_end_ns: u64,
    /// When the last wait ended: what is handled later than that lagged.
    woke_ns: u64,
}

impl Worker {
    pub(crate) fn new(
        settings: &Settings,
        thread: Thread,
        drive: Drive,
        mailbox: Arc<Mailbox>,
        reports: Sender<Report>,
    ) -> Result<Self, LoadError> {
        let now_ns = now_ns();
        let core = Core {
            targets: settings.targets.clone(),
            connections: settings.connections,
            timeout_ns: settings.timeout_ns,
            limits: Limits { body_bytes: u64::MAX, ..Limits::default() },
            thread,
            drive,
            allowance: Allowance::Unlimited,
            claim: Claim::default(),
            arrivals_over: false,
            poller: Poller::new().map_err(LoadError::system("make an epoll descriptor"))?,
            timers: Timers::default(),
            recorder: Recorder::new(now_ns),
            totals: settings.totals.clone(),
            buffer: vec![0; BUFFER_BYTES],
            scratch: Scratch::default(),
            unfinished: VecDeque::new(),
            queued: VecDeque::new(),
            opening: 0,
            opened_ns: now_ns,
            idle: Vec::new(),
            at_work: 0,
            last_end_ns: now_ns,
            woke_ns: now_ns,
        };
        Ok(Worker { users: Vec::new(), core, mailbox, reports, finished: true, run: 0 })
    }

    /// What ends this thread's wait when a command is there.
    pub(crate) fn waker(&self) -> Result<Waker, LoadError> {
        self.core.poller.waker().map_err(LoadError::system("duplicate an event descriptor"))
    }

    /// Runs until told to stop, or until nobody collects any more.
    pub(crate) fn run(mut self) {
        loop {
            let now_ns = now_ns();
            self.core.recorder.worked(now_ns.saturating_sub(self.core.woke_ns));
            if self.obey() || !self.report(now_ns) || !self.core.wait(now_ns) {
                return;
            }
            self.handle_events();
            self.handle_unfinished();
            self.handle_alarms();
            self.handle_arrivals();
            self.handle_queue();
        }
    }

    fn handle_events(&mut self) {
        for index in 0..self.core.poller.len() {
            match self.core.poller.event(index) {
                Some(event) if event.token == WAKE => self.core.poller.acknowledge_wake(),
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
        self.core.on_event(user, event);
    }

    fn handle_unfinished(&mut self) {
        for _ in 0..self.core.unfinished.len() {
            let Some(slot) = self.core.unfinished.pop_front() else { return };
            if let Some(user) = self.users.get_mut(slot) {
                self.core.on_turn_again(user);
            }
        }
    }

    fn handle_alarms(&mut self) {
        // What became due only since is handled after the next wait, which is none then.
        if self.core.timers.next_ns().is_none_or(|next_ns| next_ns > self.core.woke_ns) {
            return;
        }
        let mut now_ns = now_ns();
        while let Some(due) = self.core.timers.pop(now_ns) {
            let Some(user) = self.users.get_mut(due.slot) else { continue };
            match due.alarm {
                Alarm::Timeout => self.core.on_timeout(user, now_ns),
                Alarm::Resume => {
                    self.core.on_resume(user, due.at_ns, now_ns);
                    // The next user's request starts after this one's was sent.
                    now_ns = clock::now_ns();
                }
            }
        }
    }

    fn handle_arrivals(&mut self) {
        while let Some(at_ns) = self.core.next_arrival_ns() {
            let now_ns = now_ns();
            if at_ns > now_ns {
                return;
            }
            let Some(slot) = self.core.idle.pop() else { return };
            if let Some(user) = self.users.get_mut(slot) {
                self.core.begin_due(user, now_ns);
            }
        }
    }

    fn handle_queue(&mut self) {
        let overdue = self.core.woke_ns >= self.core.opened_ns + OPENING_NS;
        let room = if overdue { OPENING } else { OPENING.saturating_sub(self.core.opening) };
        for _ in 0..room {
            let Some(slot) = self.core.queued.pop_front() else { return };
            self.core.opened_ns = self.core.woke_ns;
            if let Some(user) = self.users.get_mut(slot) {
                self.core.on_turn(user, now_ns());
            }
        }
    }

    /// Hands over what is over; whether anybody listens.
    fn report(&mut self, now_ns: u64) -> bool {
        let thread = self.core.thread.number;
        self.core.recorder.roll(now_ns);
        for slice in self.core.recorder.take_over() {
            if self.reports.send(Report::Slice { thread, slice }).is_err() {
                return false;
            }
        }
        if !self.finished && self.is_finished() {
            self.finished = true;
            return self.notify(Notice::Finished { run: self.run, at_ns: self.core.last_end_ns });
        }
        true
    }

    fn notify(&self, notice: Notice) -> bool {
        self.reports.send(Report::Notice(notice)).is_ok()
    }

    fn is_finished(&self) -> bool {
        match (&self.core.allowance, &self.core.drive) {
            (Allowance::Unlimited, _) => false,
            (_, Drive::Closed { .. }) => self.core.at_work == 0,
            (_, Drive::Open(_)) => {
                let present = || self.users.iter().filter(|user| user.phase != Phase::Absent).count();
                // A thread without a connection gets no arrivals.
                present() == 0 || self.core.arrivals_over && self.core.idle.len() == present()
            }
        }
    }
}

impl Core {
    /// Waits until something is due or ready; whether that could be done.
    fn wait(&mut self, now_ns: u64) -> bool {
        let timeout_ns = self.wait_ns(now_ns);
        let waited = self.poller.wait(timeout_ns);
        self.woke_ns = clock::now_ns();
        waited.is_ok()
    }

    /// How long nothing is due.
    fn wait_ns(&self, now_ns: u64) -> u64 {
        if !self.unfinished.is_empty() {
            return 0;
        }
        let turn = match self.opening < OPENING {
            _ if self.queued.is_empty() => None,
            true => return 0,
            false => Some(self.opened_ns + OPENING_NS),
        };
        let arrival = self.next_arrival_ns().filter(|_| !self.idle.is_empty());
        let due = [self.timers.next_ns(), arrival, turn].into_iter().flatten().min().unwrap_or(u64::MAX);
        due.min(self.recorder.slice_end_ns()).saturating_sub(now_ns)
    }
}
