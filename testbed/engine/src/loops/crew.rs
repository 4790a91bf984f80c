//! The connections of one loop at work.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc};

use super::{
    arena::{Arena, Key},
    tasks::{Remote, Task, Work},
    timers::{Target, Timers},
    turn::Turn,
};
use crate::{
    clock::{self, Micros},
    counters::Counters,
    panics::contain,
    service,
};

/// The tasks of one loop, each a connection served by the same service.
pub(crate) struct Crew<S> {
    // Tasks hold the service, so they go first.
    tasks: Arena<Task>,
    service: Rc<S>,
    turn: Rc<Turn>,
    counters: Arc<Counters>,
    remote: Arc<Remote>,
    /// A list in use by one step of the loop, kept for its memory.
    due: Vec<Key>,
}

impl<S> Crew<S> {
    pub(crate) fn new(service: S, turn: Rc<Turn>, counters: Arc<Counters>, remote: Arc<Remote>) -> Self {
        Self { tasks: Arena::new(), service: Rc::new(service), turn, counters, remote, due: Vec::new() }
    }

    /// The calling thread runs this crew's loop.
    pub(crate) fn run_here(&self) {
        self.remote.run_here();
    }

    /// Serves one more connection, at once.
    pub(crate) fn spawn<C>(&mut self, peer: SocketAddr, connection: C)
    where
        C: service::Connection,
        S: service::Service<C>,
    {
        let service = Rc::clone(&self.service);
        let remote = Arc::clone(&self.remote);
        let key = self.tasks.insert_with(|key| Task {
            peer,
            work: Some(Work::new(async move { service.serve(connection).await }, remote, key)),
        });
        self.poll(key);
    }

    /// Lets one task go on, if it is still there.
    pub(crate) fn poll(&mut self, key: Key) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let Some(mut work) = task.work.take() else { return };
        let peer = task.peer;
        self.turn.enter(key);
        let going_on = contain(peer, &self.counters, || work.poll().is_pending().then_some(work)).flatten();
        match self.tasks.get_mut(key).filter(|_| going_on.is_some()) {
            Some(task) => task.work = going_on,
            None => drop(self.tasks.remove(key)),
        }
    }

    /// Whether tasks are due without an event: they gave way, or were woken. The loop asks before it waits.
    pub(crate) fn has_due(&self) -> bool {
        self.remote.has_woken() || self.turn.has_yielded()
    }

    /// Lets those go on.
    pub(crate) fn poll_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.turn.take_yielded(&mut due);
        self.poll_all(&mut due);
        self.remote.take_woken(&mut due);
        self.poll_all(&mut due);
        self.due = due;
    }

    /// Lets those go on whose time has come; whether it is time to accept again. A socket's timer goes to `expire`.
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
                Some((_, Target::Task(task))) => Some(task),
                Some((at, Target::Socket(socket))) => expire(socket, at, now),
                Some((_, Target::Accept)) => {
                    accept = true;
                    None
                }
            };
            due.into_iter().for_each(|task| self.poll(task));
        }
    }

    /// Lets every task look at the state of the server again.
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
                contain(task.peer, &self.counters, || drop(task.work));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
