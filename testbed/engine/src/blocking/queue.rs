//! Accepted connections that wait for a worker.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use super::registry::Pressure;
use crate::{
    clock::{self, Micros},
    control::Control,
    counters::{Counters, Denied},
    listen::Accepted,
    net,
    server::{Options, Overload},
};

/// A bounded queue: the front puts connections in, workers take them out, the longest waiting first.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Connections that may wait beyond those an idle worker is about to take.
    limit: usize,
    /// Whether more are refused. Otherwise the front stops accepting.
    refuses: bool,
    /// How long one may wait.
    deadline: Option<Duration>,
    control: Arc<Control>,
    counters: Arc<Counters>,
    state: Mutex<State>,
    changed: Condvar,
    /// Connections beyond those an idle worker is about to take.
    unattended: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Workers that serve nobody.
    idle: usize,
    /// The front waits for room.
    room_awaited: bool,
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
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

    /// Puts a connection in, or gives it back when the queue is full. Afterwards [`others_wait`](Pressure::others_wait)
    /// tells whether it found no idle worker.
    pub(crate) fn push(&self, accepted: Accepted) -> Result<(), Accepted> {
        let mut state = self.lock();
        if self.refuses && state.is_full(self.limit) {
            return Err(accepted);
        }
        state.waiting.push_back(Waiting { accepted, since: clock::now() });
        self.publish(&state);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether one more may be accepted. If not, the front is notified once it may.
    pub(crate) fn has_room(&self) -> bool {
        if self.refuses {
            return true;
        }
        let mut state = self.lock();
        state.room_awaited = state.is_full(self.limit);
        !state.room_awaited
    }

    /// The next connection worth serving: waits for one; none once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Accepted> {
        loop {
            let Waiting { accepted, since } = self.take()?;
            let waited = clock::now().saturating_sub(since);
            self.counters.count_queue_wait(waited);
            match self.denied(&accepted, waited) {
                None => return Some(accepted),
                Some(why) => self.counters.count_denied(why),
            }
        }
    }

    /// No more will be put in.
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

    fn take(&self) -> Option<Waiting> {
        let mut state = self.lock();
        state.idle += 1;
        self.publish(&state);
        if state.room_awaited && !state.is_full(self.limit) {
            state.room_awaited = false;
            self.control.notify();
        }
        while state.waiting.is_empty() && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waiting = state.waiting.pop_front();
        state.idle -= 1;
        self.publish(&state);
        waiting
    }

    /// Why a connection whose turn has come is not served, if it is not.
    fn denied(&self, accepted: &Accepted, waited: Micros) -> Option<Denied> {
        let deadline = self.deadline?;
        if u128::from(waited) > deadline.as_micros() {
            return Some(Denied::Late);
        }
        net::is_gone(&accepted.socket).then_some(Denied::Gone)
    }

    /// Makes the lengths known to those who look without the lock.
    fn publish(&self, state: &State) {
        self.unattended.store(state.waiting.len().saturating_sub(state.idle), SeqCst);
        self.counters.set_queued(state.waiting.len());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock, so the state is whole even when a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pressure for Queue {
    fn others_wait(&self) -> bool {
        self.unattended.load(SeqCst) > 0
    }
}

impl State {
    fn is_full(&self, limit: usize) -> bool {
        self.waiting.len() >= limit.saturating_add(self.idle)
    }
}
