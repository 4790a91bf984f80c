//! The queue of accepted connections that wait for a worker.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use super::registry::Contention;
use crate::{
    clock::{self, Micros},
    control::Control,
    counters::{Counters, Denied},
    listen::Accepted,
    net,
    options::{Options, Overload},
};

/// A bounded queue: the accept loop puts connections in, workers take the oldest out.
#[derive(Debug)]
pub(crate) struct Queue {
    /// How many connections may wait, not counting those that an idle worker is about to take.
    limit: usize,
    /// Whether a full queue refuses connections. Otherwise the accept loop stops accepting.
    refuses: bool,
    /// How long a connection may wait.
    deadline: Option<Duration>,
    control: Arc<Control>,
    counters: Arc<Counters>,
    state: Mutex<State>,
    changed: Condvar,
    /// Waiting connections for which there is no idle worker.
    unattended: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Queued>,
    /// Workers that are not serving.
    idle: usize,
    /// The accept loop waits for room.
    room_awaited: bool,
    closed: bool,
}

#[derive(Debug)]
struct Queued {
    accepted: Accepted,
    since: Micros,
}

impl Queue {
    pub(crate) fn new(options: &Options, control: Arc<Control>) -> Self {
        Self {
            limit: options.queue,
            refuses: options.overload != Overload::Backlog,
            deadline: options.queue_deadline,
            control,
            counters: Arc::clone(&options.counters),
            state: Mutex::default(),
            changed: Condvar::new(),
            unattended: AtomicUsize::new(0),
        }
    }

    /// Puts a connection in, or gives it back if the queue is full. Afterwards
    /// [`others_wait`](Contention::others_wait) tells whether it found no idle worker.
    pub(crate) fn push(&self, accepted: Accepted) -> Result<(), Accepted> {
        let mut state = self.lock();
        if self.refuses && state.is_full(self.limit) {
            return Err(accepted);
        }
        state.waiting.push_back(Queued { accepted, since: clock::now() });
        self.publish(&state);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether another connection may be accepted. If not, the accept loop is notified once it may.
    pub(crate) fn has_room(&self) -> bool {
        if self.refuses {
            return true;
        }
        let mut state = self.lock();
        state.room_awaited = state.is_full(self.limit);
        !state.room_awaited
    }

    /// Notes that a worker is idle, which has to [`pop`](Self::pop) next. A connection that comes in between is about to be taken.
    pub(crate) fn rest(&self) {
        let mut state = self.lock();
        state.idle += 1;
        self.publish(&state);
        if state.room_awaited && !state.is_full(self.limit) {
            state.room_awaited = false;
            self.control.notify();
        }
    }

    /// Waits, for an idle worker, for the next connection that is still worth serving. The worker is not idle any more then.
    /// Returns `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Accepted> {
        loop {
            let Queued { accepted, since } = self.take()?;
            let waited = clock::now().saturating_sub(since);
            self.counters.count_queue_wait(waited);
            match self.denied(&accepted, waited) {
                None => return Some(accepted),
                Some(why) => self.counters.count_denied(why),
            }
            self.rest();
        }
    }

    /// How many connections wait for which there is no idle worker.
    pub(crate) fn unattended(&self) -> usize {
        self.unattended.load(SeqCst)
    }

    /// Lets workers end once the queue is empty: no more will be put in.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Closes the connections that wait.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        self.publish(&state);
        drop(state);
        drop(waiting);
    }

    fn take(&self) -> Option<Queued> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waiting = state.waiting.pop_front();
        state.idle -= 1;
        self.publish(&state);
        waiting
    }

    /// Why a connection whose turn has come is not served, if so.
    fn denied(&self, accepted: &Accepted, waited: Micros) -> Option<Denied> {
        let deadline = self.deadline?;
        if u128::from(waited) > deadline.as_micros() {
            return Some(Denied::Late);
        }
        net::is_gone(&accepted.socket).then_some(Denied::Gone)
    }

    /// Publishes the lengths for readers without the lock.
    fn publish(&self, state: &State) {
        self.unattended.store(state.waiting.len().saturating_sub(state.idle), SeqCst);
        self.counters.set_queued(state.waiting.len());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so the state is consistent even after a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contention for Queue {
    fn others_wait(&self) -> bool {
        self.unattended() > 0
    }
}

impl State {
    fn is_full(&self, limit: usize) -> bool {
        self.waiting.len() >= limit.saturating_add(self.idle)
    }
}
