//! The event loop: it waits, polls the tasks whose sockets are ready, handles wakes and timers, and starts over.

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
    idle::Looks,
    listen::{Accept, Accepted, Acceptor},
    loops::{self, Key, Loop, LoopParts, REST_US, Tasks, Wakeup},
    options::Options,
    server::Server,
    service::Factory,
};

const LISTENER: Key = Key::reserved(0);
const NOTIFIER: Key = Key::reserved(1);

/// How many connections are accepted before the open ones get their turn.
const ACCEPT_BATCH: usize = 64;

/// Starts the loops, each with a poller of its own.
pub(crate) fn start<P: Poller, F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    loops::start::<EventLoop<P, F>, F>(options, factory)
}

struct EventLoop<P: Poller, F: Factory> {
    // Tasks hold the reactor, so they are dropped first.
    tasks: Tasks<F::Service<Connection<P>>>,
    reactor: Rc<Reactor<P>>,
    acceptor: Option<Acceptor>,
    listening: bool,
    looks: Looks,
    control: Arc<Control>,
    notifier: Arc<Notifier>,
    /// A list used within one step of the loop and kept for its memory.
    events: Vec<Event>,
}

impl<P: Poller, F: Factory> Loop<F> for EventLoop<P, F> {
    fn new(parts: LoopParts<F>) -> Result<Self, EngineError> {
        let reactor =
            Reactor::<P>::new(Arc::clone(&parts.control)).map_err(EngineError::system("a poller"))?;
        let notifier = Arc::clone(parts.wake_queue.notifier());
        let watched = reactor.poller.borrow_mut().watch_readable(notifier.as_fd(), NOTIFIER);
        watched.map_err(EngineError::system("watching an event descriptor"))?;
        let service = parts.factory.make().map_err(|source| EngineError::Service { source })?;
        let mut event_loop = Self {
            tasks: Tasks::new(service, Rc::clone(&reactor.turn), parts.counters, parts.wake_queue),
            reactor: Rc::new(reactor),
            acceptor: Some(Acceptor::new(parts.listener, SocketFlags::NONBLOCK, parts.limit, parts.log)),
            listening: false,
            looks: Looks::default(),
            control: parts.control,
            notifier,
            events: Vec::new(),
        };
        event_loop.resume_accepting().map_err(EngineError::system("watching the listening socket"))?;
        Ok(event_loop)
    }

    fn begin(&self) {
        self.tasks.run_here();
    }

    fn is_finished(&self) -> bool {
        self.acceptor.is_none() && self.tasks.is_empty()
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
        self.tasks.poll_due();
        if self
            .tasks
            .fire_timers(&self.reactor.timers, |socket, at, now| self.reactor.expire(socket, at, now))
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

impl<P: Poller, F: Factory> EventLoop<P, F> {
    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        if self.tasks.has_due() {
            return Some(Duration::ZERO);
        }
        loops::timeout(self.reactor.timers.borrow().next().min(self.control.stop_at()))
    }

    fn dispatch(&mut self, event: &Event) -> io::Result<()> {
        match event.key {
            LISTENER => self.accept(),
            NOTIFIER => {
                self.notifier.clear();
                self.make_room_for_others();
                self.resume_accepting()
            }
            _ => {
                if let Some(task) = self.reactor.note(event) {
                    self.tasks.poll(task);
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
                Accept::Refused => {}
                Accept::Empty => return Ok(()),
                Accept::Full => return self.make_room(),
                Accept::Exhausted => {
                    self.reactor.timers.borrow_mut().set(clock::now() + REST_US, Wakeup::Accept);
                    return self.pause_accepting();
                }
            }
        }
        Ok(())
    }

    /// Accepts no more until a place is free, and ends idle connections if clients wait. If this loop has too few, the
    /// others are asked.
    fn make_room(&mut self) -> io::Result<()> {
        let waiting = self.acceptor.as_ref().map_or(0, Acceptor::waiting);
        if waiting == 0 {
            return Ok(());
        }
        self.pause_accepting()?;
        if let Some(at) = self.looks.reminder() {
            self.reactor.timers.borrow_mut().set(at, Wakeup::Accept);
        }
        let end = |wanted| Self::end_idle(&self.reactor, &mut self.tasks, wanted);
        self.looks.make_room(waiting, &self.control, end);
        Ok(())
    }

    fn make_room_for_others(&mut self) {
        let end = |wanted| Self::end_idle(&self.reactor, &mut self.tasks, wanted);
        self.looks.make_room_for_others(&self.control, end);
    }

    /// Ends the connections that have been idle longest. Returns how many.
    fn end_idle(reactor: &Reactor<P>, tasks: &mut Tasks<F::Service<Connection<P>>>, wanted: usize) -> usize {
        let ended = reactor.end_idle(wanted);
        ended.iter().for_each(|&task| tasks.poll(task));
        ended.len()
    }

    /// Serves a connection, or closes it if the poller cannot watch it.
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
        self.tasks.spawn(peer, connection);
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

    /// Stops accepting when a drain has begun, and closes everything at its deadline.
    fn drain(&mut self) -> io::Result<()> {
        if !self.control.draining() {
            return Ok(());
        }
        if self.acceptor.is_some() {
            self.empty_queue();
            self.pause_accepting()?;
            self.acceptor = None;
            // Connections that wait for a new request find that they should end.
            self.tasks.poll_everyone();
        }
        if clock::now() >= self.control.stop_at() {
            self.tasks.close_all();
        }
        Ok(())
    }

    /// Accepts the clients that have already connected.
    fn empty_queue(&mut self) {
        let mut refusals = self.acceptor.as_ref().map_or(0, Acceptor::waiting);
        let mut next = |acceptor: &Option<Acceptor>| acceptor.as_ref()?.accept_last(&mut refusals);
        while let Some(accepted) = next(&self.acceptor) {
            self.admit(accepted);
        }
    }
}
