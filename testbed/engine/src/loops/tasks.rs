//! The tasks of one loop.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc};

use super::{
    arena::{Arena, Key},
    task::{Task, TaskFuture, Turn, WakeQueue},
    timers::{Timers, Wakeup},
};
use crate::{
    clock::{self, Micros},
    counters::Counters,
    panics::contain,
    service,
};

/// The tasks of one loop: connections, all served by the same service.
pub(crate) struct Tasks<S> {
    // Tasks hold the service, so they are dropped first.
    tasks: Arena<Task>,
    service: Rc<S>,
    turn: Rc<Turn>,
    counters: Arc<Counters>,
    wake_queue: Arc<WakeQueue>,
    /// A list used within one step of the loop and kept for its memory.
    due: Vec<Key>,
}

impl<S> Tasks<S> {
    pub(crate) fn new(
        service: S,
        turn: Rc<Turn>,
        counters: Arc<Counters>,
        wake_queue: Arc<WakeQueue>,
    ) -> Self {
        Self { tasks: Arena::new(), service: Rc::new(service), turn, counters, wake_queue, due: Vec::new() }
    }

    /// Declares that the calling thread runs the loop of these tasks.
    pub(crate) fn run_here(&self) {
        self.wake_queue.run_here();
    }

    /// Serves another connection, starting at once.
    pub(crate) fn spawn<C>(&mut self, peer: SocketAddr, connection: C)
    where
        C: service::Connection,
        S: service::Service<C>,
    {
        let service = Rc::clone(&self.service);
        let queue = Arc::clone(&self.wake_queue);
        let key = self.tasks.insert_with(|key| Task {
            peer,
            future: Some(TaskFuture::new(async move { service.serve(connection).await }, queue, key)),
        });
        self.poll(key);
    }

    /// Polls one task, if it still exists.
    pub(crate) fn poll(&mut self, key: Key) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let Some(mut future) = task.future.take() else { return };
        let peer = task.peer;
        self.turn.enter(key);
        let pending =
            contain(peer, &self.counters, || future.poll().is_pending().then_some(future)).flatten();
        match self.tasks.get_mut(key).filter(|_| pending.is_some()) {
            Some(task) => task.future = pending,
            None => drop(self.tasks.remove(key)),
        }
    }

    /// Whether tasks are due without an event, because they yielded or were woken. The loop checks before it waits.
    pub(crate) fn has_due(&self) -> bool {
        self.wake_queue.has_woken() || self.turn.has_yielded()
    }

    /// Polls the tasks that yielded or were woken.
    pub(crate) fn poll_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.turn.take_yielded(&mut due);
        self.poll_all(&mut due);
        self.wake_queue.take_woken(&mut due);
        self.poll_all(&mut due);
        self.due = due;
    }

    /// Polls the tasks whose timers have expired; `expire` handles the timer of a socket. Returns whether it is time to
    /// accept again.
    pub(crate) fn fire_timers(
        &mut self,
        timers: &RefCell<Timers>,
        expire: impl Fn(Key, Micros, Micros) -> Option<Key>,
    ) -> bool {
        let mut accept = false;
        if clock::until(timers.borrow().next()) > 0 {
            return accept;
        }
        let now = clock::now();
        loop {
            let expired = timers.borrow_mut().expired(now);
            let due = match expired {
                None => return accept,
                Some((_, Wakeup::Task(task))) => Some(task),
                Some((at, Wakeup::Socket(socket))) => expire(socket, at, now),
                Some((_, Wakeup::Accept)) => {
                    accept = true;
                    None
                }
            };
            due.into_iter().for_each(|task| self.poll(task));
        }
    }

    /// Polls every task, so that each checks the state of the server again.
    pub(crate) fn poll_everyone(&mut self) {
        self.poll_all(&mut self.tasks.keys());
    }

    fn poll_all(&mut self, keys: &mut Vec<Key>) {
        for key in keys.drain(..) {
            self.poll(key);
        }
    }

    /// Drops every task, and so closes every connection.
    pub(crate) fn close_all(&mut self) {
        for key in self.tasks.keys() {
            if let Some(task) = self.tasks.remove(key) {
                contain(task.peer, &self.counters, || drop(task.future));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
