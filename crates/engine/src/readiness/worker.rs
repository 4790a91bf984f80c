//! The loop: wait, poll the tasks whose sockets are ready, see to wakes and timers, again.

use std::{io, os::fd::AsFd, rc::Rc, sync::Arc, time::Duration};

use super::{
    arena::{Arena, Key},
    connection::Connection,
    poller::{Event, Poller},
    reactor::Reactor,
    tasks::{Remote, Task, Work},
    timers::Target,
};
use crate::{
    clock::{self, Micros, NEVER},
    control::Control,
    counters::Counters,
    error::EngineError,
    listen::{Accept, Accepted, Acceptor},
    panics::contain,
    service::{Factory, Service},
};

const LISTENER: Key = Key::reserved(0);
const NOTIFIER: Key = Key::reserved(1);

/// Connections accepted before the others get their turn.
const ACCEPT_BATCH: usize = 64;
/// How long accepting rests when the system is short of something, in microseconds.
const REST_US: Micros = 20_000;
/// Longest wait, well below what a poller counts in 32 bits of milliseconds.
const WAIT_MAX_US: Micros = 3_600_000_000;

pub(crate) struct Worker<P: Poller, F: Factory> {
    // Tasks hold the service and the reactor, so they go first.
    tasks: Arena<Task>,
    service: Rc<F::Service<Connection<P>>>,
    reactor: Rc<Reactor<P>>,
    acceptor: Option<Acceptor>,
    listening: bool,
    control: Arc<Control>,
    counters: Arc<Counters>,
    remote: Arc<Remote>,
    /// Lists in use by one step of the loop, kept for their memory.
    events: Vec<Event>,
    turn: Vec<Key>,
}

impl<P: Poller, F: Factory> Worker<P, F> {
    pub(crate) fn new(
        factory: &F,
        acceptor: Acceptor,
        control: Arc<Control>,
        remote: Arc<Remote>,
    ) -> Result<Self, EngineError> {
        let reactor = Reactor::<P>::new(Arc::clone(&control)).map_err(EngineError::system("a poller"))?;
        let notifier = remote.notifier().as_fd();
        let watched = reactor.poller.borrow_mut().watch_readable(notifier, NOTIFIER);
        watched.map_err(EngineError::system("watching an event descriptor"))?;
        let service = factory.make().map_err(|source| EngineError::Service { source })?;
        let counters = Arc::clone(acceptor.counters());
        let mut worker = Self {
            tasks: Arena::new(),
            service: Rc::new(service),
            reactor: Rc::new(reactor),
            acceptor: Some(acceptor),
            listening: false,
            control,
            counters,
            remote,
            events: Vec::new(),
            turn: Vec::new(),
        };
        worker.resume_accepting().map_err(EngineError::system("watching the listening socket"))?;
        Ok(worker)
    }

    pub(crate) fn run(mut self) {
        self.remote.run_here();
        while !self.is_finished() {
            if let Err(error) = self.turn() {
                tracing::error!(%error, "a loop cannot go on and ends");
                return;
            }
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        let timeout = self.timeout();
        let mut events = std::mem::take(&mut self.events);
        let waited = self.reactor.poller.borrow_mut().wait(timeout, &mut events);
        for event in events.drain(..) {
            self.dispatch(&event)?;
        }
        self.events = events;
        waited?;
        self.poll_yielded();
        self.poll_woken();
        self.fire_timers()?;
        self.drain()
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        if self.remote.has_woken() || self.reactor.has_yielded() {
            return Some(Duration::ZERO);
        }
        let next = self.reactor.timers.borrow().next().min(self.control.stop_at());
        if next == NEVER {
            return None;
        }
        // Rounded up to what every poller can wait, so that the loop does not spin before the time.
        Some(Duration::from_millis(clock::until(next).min(WAIT_MAX_US).div_ceil(1_000)))
    }

    fn dispatch(&mut self, event: &Event) -> io::Result<()> {
        match event.key {
            LISTENER => self.accept(),
            NOTIFIER => {
                self.remote.notifier().clear();
                self.resume_accepting()
            }
            _ => {
                if let Some(task) = self.reactor.note(event) {
                    self.poll(task);
                }
                Ok(())
            }
        }
    }

    fn poll_yielded(&mut self) {
        let mut turn = std::mem::take(&mut self.turn);
        self.reactor.take_yielded(&mut turn);
        self.poll_all(turn);
    }

    fn poll_woken(&mut self) {
        let mut turn = std::mem::take(&mut self.turn);
        self.remote.take_woken(&mut turn);
        self.poll_all(turn);
    }

    fn poll_all(&mut self, mut turn: Vec<Key>) {
        for task in turn.drain(..) {
            self.poll(task);
        }
        self.turn = turn;
    }

    fn poll(&mut self, key: Key) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let Some(mut work) = task.work.take() else { return };
        let peer = task.peer;
        self.reactor.enter(key);
        let going_on = contain(peer, &self.counters, || work.poll().is_pending().then_some(work)).flatten();
        match self.tasks.get_mut(key).filter(|_| going_on.is_some()) {
            Some(task) => task.work = going_on,
            None => drop(self.tasks.remove(key)),
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPT_BATCH {
            let Some(acceptor) = &self.acceptor else { return Ok(()) };
            match acceptor.accept() {
                Accept::Connection(accepted) => self.spawn(accepted),
                Accept::Empty => return Ok(()),
                Accept::Full => return self.pause_accepting(),
                Accept::Exhausted => {
                    self.reactor.timers.borrow_mut().set(clock::now() + REST_US, Target::Accept);
                    return self.pause_accepting();
                }
            }
        }
        Ok(())
    }

    fn spawn(&mut self, accepted: Accepted) {
        let peer = accepted.peer;
        let connection = Connection::accepted(accepted, Rc::clone(&self.reactor));
        let service = Rc::clone(&self.service);
        let remote = Arc::clone(&self.remote);
        let key = self.tasks.insert_with(|key| Task {
            peer,
            work: Some(Work::new(async move { service.serve(connection).await }, remote, key)),
        });
        self.poll(key);
    }

    fn pause_accepting(&mut self) -> io::Result<()> {
        if let Some(acceptor) = self.acceptor.as_ref().filter(|_| self.listening) {
            self.reactor.poller.borrow_mut().forget(acceptor.as_fd(), LISTENER);
            self.listening = false;
        }
        Ok(())
    }

    fn resume_accepting(&mut self) -> io::Result<()> {
        if let Some(acceptor) = self.acceptor.as_ref().filter(|_| !self.listening) {
            self.reactor.poller.borrow_mut().watch_readable(acceptor.as_fd(), LISTENER)?;
            self.listening = true;
        }
        Ok(())
    }

    fn fire_timers(&mut self) -> io::Result<()> {
        if clock::until(self.reactor.timers.borrow().next()) > 0 {
            return Ok(());
        }
        let now = clock::now();
        loop {
            let expired = self.reactor.timers.borrow_mut().expired(now);
            match expired {
                None => return Ok(()),
                Some((_, Target::Task(task))) => self.poll(task),
                Some((_, Target::Accept)) => self.resume_accepting()?,
                Some((at, Target::Socket(socket))) => {
                    if let Some(task) = self.reactor.expire(socket, at, now) {
                        self.poll(task);
                    }
                }
            }
        }
    }

    /// Sees to the end: once, when a drain begins, and when its deadline comes.
    fn drain(&mut self) -> io::Result<()> {
        if !self.control.draining() {
            return Ok(());
        }
        if self.acceptor.is_some() {
            self.empty_queue();
            self.pause_accepting()?;
            self.acceptor = None;
            // Each connection that waits for a new request finds out that there will be none.
            self.poll_all(self.tasks.keys());
        }
        if clock::now() >= self.control.stop_at() {
            self.close_all();
        }
        Ok(())
    }

    /// Takes in what has connected already.
    fn empty_queue(&mut self) {
        while let Some(Accept::Connection(accepted)) = self.acceptor.as_ref().map(Acceptor::accept) {
            self.spawn(accepted);
        }
    }

    fn close_all(&mut self) {
        for key in self.tasks.keys() {
            if let Some(task) = self.tasks.remove(key) {
                contain(task.peer, &self.counters, || drop(task.work));
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.acceptor.is_none() && self.tasks.is_empty()
    }
}
