//! A worker process at work.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
        poll,
    },
};

use super::{super::parent::ParentProcess, scoreboard::Slot};
use crate::{
    block_on::block_on,
    blocking::{
        connection::Connection,
        registry::{Contention, Registry},
    },
    connection_limit::ConnectionLimit,
    control::Notifier,
    listen::{Accept, Accepted, Acceptor},
    panics::contain,
    service::Service,
    signals,
};

/// How long accepting pauses when the system is out of descriptors or memory, or the connection limit is reached.
const REST: Duration = Duration::from_millis(20);

/// A worker process, which accepts for itself.
pub(super) struct Worker {
    acceptor: Arc<Acceptor>,
    watch: OwnedFd,
    registry: Arc<Registry>,
    limit: Arc<ConnectionLimit>,
    slot: Slot,
}

impl Worker {
    /// `end` is readable once there is nothing more to accept.
    pub(super) fn new(
        parent: &ParentProcess,
        acceptor: Acceptor,
        end: &Notifier,
        slot: Slot,
    ) -> io::Result<Self> {
        let acceptor = Arc::new(acceptor);
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        // A connection wakes one free worker, not all of them.
        epoll::add(&watch, &*acceptor, EventData::new_u64(0), EventFlags::IN | EventFlags::EXCLUSIVE)?;
        epoll::add(&watch, end, EventData::new_u64(1), EventFlags::IN)?;
        let queue = ListenQueue { acceptor: Arc::clone(&acceptor), slot: slot.clone() };
        let registry = Registry::of_child(Arc::clone(&parent.control)).with_contention(Arc::new(queue));
        Ok(Self { acceptor, watch, registry: Arc::new(registry), limit: Arc::clone(&parent.limit), slot })
    }

    pub(super) fn run(&self, service: &impl Service<Connection>) {
        while self.goes_on() {
            match self.acceptor.accept() {
                Accept::Connection(accepted) => self.serve(service, accepted),
                Accept::Refused => {}
                Accept::Empty => self.wait(),
                Accept::Full | Accept::Exhausted => std::thread::sleep(REST),
            }
        }
    }

    /// Whether to accept more. While the server drains, those are the clients that have already connected. A worker
    /// that was told to stop accepts none.
    fn goes_on(&self) -> bool {
        !signals::is_stopping() && (!self.registry.draining() || is_waiting(&self.acceptor))
    }

    fn serve(&self, service: &impl Service<Connection>, accepted: Accepted) {
        self.slot.set_busy();
        contain(accepted.peer, self.limit.counters(), || {
            // This fails only while everything is being closed.
            if let Ok(connection) = Connection::accepted(accepted, Arc::clone(&self.registry)) {
                block_on(service.serve(connection));
            }
        });
        self.slot.set_idle();
    }

    /// Waits for a connection, or the end.
    fn wait(&self) {
        let mut events = Vec::with_capacity(2);
        // An interrupted or failed wait is merely short: the caller checks again.
        let _ = epoll::wait(&self.watch, spare_capacity(&mut events), None);
    }
}

/// The clients waiting to be accepted, as a worker sees them.
#[derive(Debug)]
struct ListenQueue {
    acceptor: Arc<Acceptor>,
    slot: Slot,
}

impl Contention for ListenQueue {
    fn others_wait(&self) -> bool {
        self.slot.scoreboard.all_taken() && is_waiting(&self.acceptor)
    }

    fn set_kept(&self, kept: bool) {
        if kept { self.slot.set_kept() } else { self.slot.set_busy() }
    }
}

/// Whether a client waits to be accepted. None does once listening has stopped.
pub(super) fn is_waiting(acceptor: &Acceptor) -> bool {
    let mut listener = [PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut listener, Some(&now));
    listener.iter().all(|listener| listener.revents() == PollFlags::IN)
}
