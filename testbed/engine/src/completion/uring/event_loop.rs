//! The event loop: it submits, waits, polls the tasks whose operations are done, handles wakes and timers, and starts
//! over.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use rustix::{
    io::{Errno, ioctl_fionbio},
    net::SocketFlags,
};

use super::{
    connection::Connection,
    operation::{Completion, Operation},
    reactor::Reactor,
    unavailable,
};
use crate::{
    clock,
    control::{Control, Notifier},
    error::EngineError,
    idle::Looks,
    listen::{Accept, Accepted, Acceptor},
    loops::{self, Loop, LoopParts, REST_US, Tasks, Wakeup},
    service::Factory,
};

pub(super) struct EventLoop<F: Factory> {
    // Tasks hold the reactor, so they are dropped first.
    tasks: Tasks<F::Service<Connection>>,
    reactor: Rc<Reactor>,
    acceptor: Option<Acceptor>,
    accepting: Accepting,
    looks: Looks,
    /// Accepted by the kernel before it was told that the connection limit is reached.
    unadmitted: VecDeque<OwnedFd>,
    control: Arc<Control>,
    notifier: Arc<Notifier>,
    /// A list used within one step of the loop and kept for its memory.
    completions: Vec<Completion>,
}

/// Whether the kernel accepts connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accepting {
    /// No, clients wait in the listen queue.
    No,
    Yes,
    /// No longer, once the cancelled operation has completed.
    Ending,
}

impl<F: Factory> Loop<F> for EventLoop<F> {
    fn new(parts: LoopParts<F>) -> Result<Self, EngineError> {
        let reactor = Reactor::new(Arc::clone(&parts.control)).map_err(unavailable::explain)?;
        let service = parts.factory.make().map_err(|source| EngineError::Service { source })?;
        // The ring waits only for blocking sockets; otherwise accepting would fail when no client waits.
        ioctl_fionbio(&parts.listener, false)
            .map_err(|errno| EngineError::system("a listening socket")(errno.into()))?;
        let notifier = Arc::clone(parts.wake_queue.notifier());
        reactor.ring.borrow_mut().watch(notifier.as_fd());
        let mut event_loop = Self {
            tasks: Tasks::new(service, Rc::clone(&reactor.turn), parts.counters, parts.wake_queue),
            reactor: Rc::new(reactor),
            acceptor: Some(Acceptor::new(parts.listener, SocketFlags::empty(), parts.limit, parts.log)),
            accepting: Accepting::No,
            looks: Looks::default(),
            unadmitted: VecDeque::new(),
            control: parts.control,
            notifier,
            completions: Vec::new(),
        };
        event_loop.resume_accepting();
        Ok(event_loop)
    }

    fn begin(&self) {
        self.tasks.run_here();
    }

    fn is_finished(&self) -> bool {
        self.acceptor.is_none() && self.tasks.is_empty()
    }

    fn turn(&mut self) -> io::Result<()> {
        self.reactor.feed();
        let timeout = self.timeout();
        let mut completions = std::mem::take(&mut self.completions);
        let entered = self.reactor.ring.borrow_mut().enter(timeout, &mut completions);
        for completion in completions.drain(..) {
            self.dispatch(completion);
        }
        self.completions = completions;
        entered?;
        self.tasks.poll_due();
        if self
            .tasks
            .fire_timers(&self.reactor.timers, |socket, at, now| self.reactor.expire(socket, at, now))
        {
            self.resume_accepting();
        }
        self.drain();
        Ok(())
    }
}

impl<F: Factory> EventLoop<F> {
    /// How long to wait for completions.
    fn timeout(&self) -> Option<Duration> {
        if self.tasks.has_due() || self.reactor.has_starved() {
            return Some(Duration::ZERO);
        }
        loops::timeout(self.reactor.timers.borrow().next().min(self.control.stop_at()))
    }

    fn dispatch(&mut self, completion: Completion) {
        match completion.operation {
            Operation::Socket(key, kind) => {
                if let Some(task) = self.reactor.complete(key, kind, &completion) {
                    self.tasks.poll(task);
                }
            }
            Operation::Accept => self.accepted(completion),
            Operation::Wake => self.woken(completion.more),
            Operation::Cancel => {}
        }
    }

    fn woken(&mut self, more: bool) {
        self.notifier.clear();
        if !more {
            self.reactor.ring.borrow_mut().watch(self.notifier.as_fd());
        }
        self.make_room_for_others();
        self.resume_accepting();
    }

    fn accepted(&mut self, completion: Completion) {
        if !completion.more {
            self.accepting = Accepting::No;
        }
        match completion.accepted() {
            Ok(socket) => self.unadmitted.push_back(socket),
            Err(Errno::CANCELED) => {}
            Err(errno) => {
                let failed = self.acceptor.as_ref().map(|acceptor| acceptor.failed(errno));
                if let Some(Accept::Exhausted) = failed {
                    self.reactor.timers.borrow_mut().set(clock::now() + REST_US, Wakeup::Accept);
                    return;
                }
            }
        }
        self.resume_accepting();
    }

    /// Serves connections already accepted, and accepts more, as far as the connection limit allows.
    fn resume_accepting(&mut self) {
        while let Some(acceptor) = &self.acceptor {
            match acceptor.admit(&mut self.unadmitted) {
                Accept::Connection(accepted) => self.spawn(accepted),
                Accept::Refused => {}
                Accept::Empty if self.accepting == Accepting::No && !self.control.draining() => {
                    self.reactor.ring.borrow_mut().accept(acceptor.as_fd(), acceptor.flags());
                    self.accepting = Accepting::Yes;
                }
                Accept::Full => return self.make_room(),
                Accept::Empty | Accept::Exhausted => return,
            }
        }
    }

    /// Accepts no more until a place is free, and ends idle connections for the clients that wait. If this loop has too few,
    /// the others are asked.
    fn make_room(&mut self) {
        self.stop_accepting();
        if let Some(at) = self.looks.reminder() {
            self.reactor.timers.borrow_mut().set(at, Wakeup::Accept);
        }
        let waiting = self.unadmitted.len() + self.acceptor.as_ref().map_or(0, Acceptor::waiting);
        let end = |wanted| Self::end_idle(&self.reactor, &mut self.tasks, wanted);
        self.looks.make_room(waiting, &self.control, end);
    }

    fn make_room_for_others(&mut self) {
        let end = |wanted| Self::end_idle(&self.reactor, &mut self.tasks, wanted);
        self.looks.make_room_for_others(&self.control, end);
    }

    /// Ends the connections that have been idle longest. Returns how many.
    fn end_idle(reactor: &Reactor, tasks: &mut Tasks<F::Service<Connection>>, wanted: usize) -> usize {
        let chosen = reactor.longest_idle(wanted);
        chosen.iter().for_each(|&key| reactor.end_idle(key, |task| tasks.poll(task)));
        chosen.len()
    }

    fn stop_accepting(&mut self) {
        if self.accepting == Accepting::Yes {
            self.reactor.ring.borrow_mut().cancel(Operation::Accept);
            self.accepting = Accepting::Ending;
        }
    }

    fn spawn(&mut self, accepted: Accepted) {
        let peer = accepted.peer;
        let connection = Connection::accepted(accepted, Rc::clone(&self.reactor));
        self.tasks.spawn(peer, connection);
    }

    /// Stops accepting when a drain has begun, and closes everything at its deadline.
    fn drain(&mut self) {
        if !self.control.draining() {
            return;
        }
        self.stop_accepting();
        if self.acceptor.is_some() && self.accepting == Accepting::No {
            self.empty_queue();
            self.acceptor = None;
            self.unadmitted.clear();
            // Connections that wait for a new request find that they should end.
            self.tasks.poll_everyone();
        }
        if clock::now() >= self.control.stop_at() {
            self.tasks.close_all();
        }
    }

    /// Accepts the clients that have already connected.
    fn empty_queue(&mut self) {
        self.resume_accepting();
        let Some(acceptor) = &self.acceptor else { return };
        if ioctl_fionbio(acceptor.as_fd(), true).is_err() {
            return;
        }
        let mut refusals = acceptor.waiting();
        let mut next = |acceptor: &Option<Acceptor>| acceptor.as_ref()?.accept_last(&mut refusals);
        while let Some(accepted) = next(&self.acceptor) {
            self.spawn(accepted);
        }
    }
}
