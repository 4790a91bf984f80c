//! The loop: wait, poll the tasks whose sockets are ready, see to wakes and timers, again.

use std::{io, os::fd::AsFd, rc::Rc, sync::Arc, time::Duration};

use rustix::net::SocketFlags;

use super::{
    connection::Connection,
    poller::{Event, Poller},
    reactor::Reactor,
};
use crate::{
    clock,
    control::{Control, Notifier},
    error::EngineError,
    listen::{Accept, Accepted, Acceptor},
    loops::{self, Crew, Key, Loop, Parts, REST_US, Target},
    service::Factory,
};

const LISTENER: Key = Key::reserved(0);
const NOTIFIER: Key = Key::reserved(1);

/// Connections accepted before the others get their turn.
const ACCEPT_BATCH: usize = 64;

pub(crate) struct Worker<P: Poller, F: Factory> {
    // Tasks hold the reactor, so they go first.
    crew: Crew<F::Service<Connection<P>>>,
    reactor: Rc<Reactor<P>>,
    acceptor: Option<Acceptor>,
    listening: bool,
    control: Arc<Control>,
    notifier: Arc<Notifier>,
    /// A list in use by one step of the loop, kept for its memory.
    events: Vec<Event>,
}

impl<P: Poller, F: Factory> Loop<F> for Worker<P, F> {
    fn new(parts: Parts<F>) -> Result<Self, EngineError> {
        let reactor =
            Reactor::<P>::new(Arc::clone(&parts.control)).map_err(EngineError::system("a poller"))?;
        let notifier = Arc::clone(parts.remote.notifier());
        let watched = reactor.poller.borrow_mut().watch_readable(notifier.as_fd(), NOTIFIER);
        watched.map_err(EngineError::system("watching an event descriptor"))?;
        let service = parts.factory.make().map_err(|source| EngineError::Service { source })?;
        let mut worker = Self {
            crew: Crew::new(service, Rc::clone(&reactor.turn), parts.counters, parts.remote),
            reactor: Rc::new(reactor),
            acceptor: Some(Acceptor::new(parts.listener, SocketFlags::NONBLOCK, parts.gate, parts.trouble)),
            listening: false,
            control: parts.control,
            notifier,
            events: Vec::new(),
        };
        worker.resume_accepting().map_err(EngineError::system("watching the listening socket"))?;
        Ok(worker)
    }

    fn begin(&self) {
        self.crew.run_here();
    }

    fn is_finished(&self) -> bool {
        self.acceptor.is_none() && self.crew.is_empty()
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
        self.crew.poll_due();
        if self.crew.fire_timers(&self.reactor.timers, |socket, at, now| self.reactor.expire(socket, at, now))
        {
            self.resume_accepting()?;
        }
        self.drain()?;
        if !self.reactor.take_moved() {
            self.reactor.poller.borrow().idle();
        }
        Ok(())
    }
}

impl<P: Poller, F: Factory> Worker<P, F> {
    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        if self.crew.has_due() {
            return Some(Duration::ZERO);
        }
        loops::timeout(self.reactor.timers.borrow().next().min(self.control.stop_at()))
    }

    fn dispatch(&mut self, event: &Event) -> io::Result<()> {
        match event.key {
            LISTENER => self.accept(),
            NOTIFIER => {
                self.notifier.clear();
                self.resume_accepting()
            }
            _ => {
                if let Some(task) = self.reactor.note(event) {
                    self.crew.poll(task);
                }
                Ok(())
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPT_BATCH {
            let Some(acceptor) = &self.acceptor else { return Ok(()) };
            match acceptor.accept() {
                Accept::Connection(accepted) => self.admit(accepted),
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

    /// Serves a connection, unless the poller cannot watch it.
    fn admit(&mut self, accepted: Accepted) {
        self.reactor.note_moved();
        match (P::can_watch(accepted.socket.as_fd()), &self.acceptor) {
            (Err(error), Some(acceptor)) => acceptor.refuse(accepted, &error),
            _ => self.spawn(accepted),
        }
    }

    fn spawn(&mut self, accepted: Accepted) {
        let peer = accepted.peer;
        let connection = Connection::accepted(accepted, Rc::clone(&self.reactor));
        self.crew.spawn(peer, connection);
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
            self.crew.poll_everyone();
        }
        if clock::now() >= self.control.stop_at() {
            self.crew.close_all();
        }
        Ok(())
    }

    /// Takes in what has connected already.
    fn empty_queue(&mut self) {
        while let Some(Accept::Connection(accepted)) = self.acceptor.as_ref().map(Acceptor::accept) {
            self.admit(accepted);
        }
    }
}
