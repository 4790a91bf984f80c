//! The loop: submit, wait, poll the tasks whose operations are done, see to wakes and timers, again.

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
    denial,
    reactor::Reactor,
    ring::{Completion, Operation},
};
use crate::{
    clock,
    control::{Control, Notifier},
    error::EngineError,
    listen::{Accept, Accepted, Acceptor},
    loops::{self, Crew, Loop, Parts, REST_US, Target},
    service::Factory,
};

pub(crate) struct Worker<F: Factory> {
    // Tasks hold the reactor, so they go first.
    crew: Crew<F::Service<Connection>>,
    reactor: Rc<Reactor>,
    acceptor: Option<Acceptor>,
    accepting: Accepting,
    /// Accepted by the kernel before it was told that there is no place for them.
    lobby: VecDeque<OwnedFd>,
    control: Arc<Control>,
    notifier: Arc<Notifier>,
    /// A list in use by one step of the loop, kept for its memory.
    completions: Vec<Completion>,
}

/// What the kernel does about connections that come in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accepting {
    /// They wait in the listen queue.
    No,
    Yes,
    /// No longer, once the cancelled operation has completed.
    Ending,
}

impl<F: Factory> Loop<F> for Worker<F> {
    fn new(parts: Parts<F>) -> Result<Self, EngineError> {
        let reactor = Reactor::new(Arc::clone(&parts.control)).map_err(denial::explain)?;
        let service = parts.factory.make().map_err(|source| EngineError::Service { source })?;
        // The ring waits for sockets that block; without this, accepting would fail when nobody waits.
        ioctl_fionbio(&parts.listener, false)
            .map_err(|errno| EngineError::system("a listening socket")(errno.into()))?;
        let notifier = Arc::clone(parts.remote.notifier());
        reactor.ring.borrow_mut().watch(notifier.as_fd());
        let mut worker = Self {
            crew: Crew::new(service, Rc::clone(&reactor.turn), parts.counters, parts.remote),
            reactor: Rc::new(reactor),
            acceptor: Some(Acceptor::new(parts.listener, SocketFlags::empty(), parts.gate, parts.trouble)),
            accepting: Accepting::No,
            lobby: VecDeque::new(),
            control: parts.control,
            notifier,
            completions: Vec::new(),
        };
        worker.resume_accepting();
        Ok(worker)
    }

    fn begin(&self) {
        self.crew.run_here();
    }

    fn is_finished(&self) -> bool {
        self.acceptor.is_none() && self.crew.is_empty()
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
        self.crew.poll_due();
        if self.crew.fire_timers(&self.reactor.timers, |socket, at, now| self.reactor.expire(socket, at, now))
        {
            self.resume_accepting();
        }
        self.drain();
        Ok(())
    }
}

impl<F: Factory> Worker<F> {
    /// How long to wait for completions.
    fn timeout(&self) -> Option<Duration> {
        if self.crew.has_due() || self.reactor.has_starved() {
            return Some(Duration::ZERO);
        }
        loops::timeout(self.reactor.timers.borrow().next().min(self.control.stop_at()))
    }

    fn dispatch(&mut self, completion: Completion) {
        match completion.operation {
            Operation::Socket(key, kind) => {
                if let Some(task) = self.reactor.complete(key, kind, &completion) {
                    self.crew.poll(task);
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
        self.resume_accepting();
    }

    fn accepted(&mut self, completion: Completion) {
        if !completion.more {
            self.accepting = Accepting::No;
        }
        match completion.accepted() {
            Ok(socket) => self.lobby.push_back(socket),
            Err(Errno::CANCELED) => {}
            Err(errno) => {
                let failed = self.acceptor.as_ref().map(|acceptor| acceptor.failed(errno));
                if let Some(Accept::Exhausted) = failed {
                    self.reactor.timers.borrow_mut().set(clock::now() + REST_US, Target::Accept);
                    return;
                }
            }
        }
        self.resume_accepting();
    }

    /// Serves those who have been accepted, and accepts more, as far as there is room.
    fn resume_accepting(&mut self) {
        while let Some(acceptor) = &self.acceptor {
            match acceptor.admit(&mut self.lobby) {
                Accept::Connection(accepted) => self.spawn(accepted),
                Accept::Empty if self.accepting == Accepting::No && !self.control.draining() => {
                    self.reactor.ring.borrow_mut().accept(acceptor.as_fd(), acceptor.flags());
                    self.accepting = Accepting::Yes;
                }
                Accept::Full => return self.stop_accepting(),
                Accept::Empty | Accept::Exhausted => return,
            }
        }
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
        self.crew.spawn(peer, connection);
    }

    /// Sees to the end: once, when a drain begins, and when its deadline comes.
    fn drain(&mut self) {
        if !self.control.draining() {
            return;
        }
        self.stop_accepting();
        if self.acceptor.is_some() && self.accepting == Accepting::No {
            self.empty_queue();
            self.acceptor = None;
            self.lobby.clear();
            // Each connection that waits for a new request finds out that there will be none.
            self.crew.poll_everyone();
        }
        if clock::now() >= self.control.stop_at() {
            self.crew.close_all();
        }
    }

    /// Takes in what has connected already.
    fn empty_queue(&mut self) {
        self.resume_accepting();
        let Some(acceptor) = &self.acceptor else { return };
        if ioctl_fionbio(acceptor.as_fd(), true).is_err() {
            return;
        }
        while let Some(Accept::Connection(accepted)) = self.acceptor.as_ref().map(Acceptor::accept) {
            self.spawn(accepted);
        }
    }
}
