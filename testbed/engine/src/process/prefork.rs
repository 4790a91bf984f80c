//! `prefork`: a fixed number of processes, forked beforehand, that accept from one listening socket.
//!
//! A worker serves a connection to its end. While every worker is busy and clients wait to be accepted, a connection
//! ends after the current request, and the parent closes one that is waiting for its next request. If none is, the workers
//! are told in turn to end connections that have been idle for a second. A worker that died is replaced, each at most once
//! a second.

mod scoreboard;
mod worker;

use std::{
    collections::VecDeque,
    io,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::net::{Shutdown, shutdown};

use self::{
    scoreboard::{Scoreboard, Slot},
    worker::Worker,
};
use super::{
    children::Children,
    fork::{Exit, become_child, fork},
    parent::{self, ParentProcess},
};
use crate::{
    block_on::block_on,
    blocking::{connection::Connection, registry::Registry},
    connection_limit::{ConnectionLimit, Permit},
    control::Notifier,
    error::EngineError,
    idle::{LOOK_EVERY, Looks},
    implementation::{Description, Implementation},
    listen::{Accepted, Acceptor},
    options::Options,
    panics::contain,
    server::Server,
    service::{Factory, Service},
};

/// The shortest time between two starts of the same worker.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// How soon the parent checks whether a worker that was told to close a kept connection has done so.
const RECHECK: Duration = Duration::from_millis(10);

/// The model `prefork`.
pub(crate) struct Prefork;

impl Implementation for Prefork {
    const DESCRIPTION: Description =
        Description { forks: true, has_workers: true, ..Description::named("prefork") };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        let workers = options.workers.max(1);
        let end = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
        parent::start(options, workers, |parent| {
            let pending = (0..workers).map(|slot| PendingStart { slot, at: None }).collect();
            let taken = workers.min(options.max_connections.max(1));
            let scoreboard = Arc::new(Scoreboard::new(workers, taken, Arc::clone(&parent.control)));
            let (children, looks) = (Children::new(), Looks::default());
            Supervisor { parent, factory, end, scoreboard, pending, children, looks, resting: false }.run();
        })
    }
}

/// The parent process with its workers.
struct Supervisor<F> {
    parent: ParentProcess,
    factory: F,
    /// Readable once there is nothing more to accept.
    end: Arc<Notifier>,
    scoreboard: Arc<Scoreboard>,
    pending: Vec<PendingStart>,
    children: Children<Child>,
    looks: Looks,
    /// Clients wait and no kept connection was found, so that watching for clients would not end the wait.
    resting: bool,
}

/// A worker to be started.
struct PendingStart {
    slot: usize,
    /// `None` for the first worker in its slot, which starts at once and reports to the caller.
    at: Option<Instant>,
}

/// The parent's record of a child. Dropped when the child has ended.
enum Child {
    /// A worker.
    Worker { slot: usize, started: Instant, limit: Arc<ConnectionLimit>, scoreboard: Arc<Scoreboard> },
    /// A process that serves a single connection while the server drains, with its place among the open ones.
    Last { _permit: Permit },
}

impl Child {
    /// Whether it is the worker of this slot.
    const fn is_worker(&self, wanted: usize) -> bool {
        matches!(self, Self::Worker { slot, .. } if *slot == wanted)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Self::Worker { slot, limit, scoreboard, .. } = self
            && scoreboard.clear(*slot)
        {
            // It ended in the middle of a connection.
            limit.release();
        }
    }
}

impl<F: Factory> Supervisor<F> {
    fn run(mut self) {
        while self.parent.serving() {
            for ended in self.children.reap() {
                if let Child::Worker { slot, started, .. } = &ended {
                    self.pending.push(PendingStart { slot: *slot, at: Some(*started + LIFE_MIN) });
                }
            }
            let next = self.start_pending();
            self.wait(next);
        }
        self.end.notify();
        let mut waiting = self.stop_listening();
        let Self { mut parent, factory, scoreboard, mut children, .. } = self;
        parent.drain(&mut children, |parent, children| {
            while children.len() < scoreboard.workers().len()
                && let Some(accepted) = waiting.pop_front()
            {
                serve_last(parent, &factory, accepted, children);
            }
        });
    }

    /// Waits until there is something to do. While all workers are busy, that includes a client waiting to be accepted: an
    /// idle connection is then closed.
    fn wait(&mut self, next: Option<Duration>) {
        let wanted = self.scoreboard.watch();
        // Taken out because the wait borrows the parent mutably.
        let acceptor = self.parent.acceptor.take();
        let resting = self.resting.then_some(LOOK_EVERY);
        let listener = acceptor.as_ref().map(AsFd::as_fd).filter(|_| wanted && !self.resting);
        let soon = self.scoreboard.any_closing().then_some(RECHECK);
        self.parent.wait(listener, [next, soon, resting].into_iter().flatten().min());
        let waiting = acceptor.as_ref().filter(|_| wanted).map_or(0, Acceptor::waiting);
        self.resting = waiting > 0 && !self.close_idle(waiting);
        self.parent.acceptor = acceptor;
    }

    /// Closes one kept connection. If there is none, tells the workers to close those that have been idle for long, and
    /// returns false: if any does, its client was not waiting for an answer.
    fn close_idle(&mut self, waiting: usize) -> bool {
        if let Some(slot) = self.scoreboard.close_one_kept() {
            self.children.close_kept(|child| child.is_worker(slot));
            return true;
        }
        if self.looks.take() {
            self.children.close_idle(waiting);
        }
        false
    }

    /// Starts the workers whose time has come. Returns how long until the next one's.
    fn start_pending(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|pending: &PendingStart| pending.at.is_none_or(|at| at <= now));
        self.pending = later;
        due.into_iter().for_each(|pending| self.spawn(&pending));
        let next = self.pending.iter().filter_map(|pending| pending.at).min();
        next.map(|at| at.saturating_duration_since(now))
    }

    fn spawn(&mut self, pending: &PendingStart) {
        self.factory.refresh();
        match fork(|| self.child(pending)) {
            Ok(child) => {
                let (limit, scoreboard) = (Arc::clone(&self.parent.limit), Arc::clone(&self.scoreboard));
                let record = Child::Worker { slot: pending.slot, started: Instant::now(), limit, scoreboard };
                self.children.insert(child, record);
            }
            Err(error) => {
                self.start_failed(pending, &error);
                self.pending.push(PendingStart { slot: pending.slot, at: Some(Instant::now() + LIFE_MIN) });
            }
        }
    }

    /// Tells why a worker could not start: the caller, which waits for the first ones, or the log.
    fn start_failed(&self, pending: &PendingStart, error: &io::Error) {
        match pending.at {
            None => self.parent.report::<()>(&Err(io::Error::new(error.kind(), error.to_string()))),
            Some(_) => tracing::error!(%error, "a worker process could not start; it will be tried again"),
        }
    }

    /// The whole life of a worker.
    fn child(&mut self, pending: &PendingStart) -> Exit {
        match self.prepare_worker(pending.slot) {
            Ok((service, worker)) => {
                if pending.at.is_none() {
                    self.parent.report(&Ok(()));
                }
                worker.run(&service);
                Exit::Done
            }
            Err(error) => {
                self.start_failed(pending, &error);
                Exit::Failed
            }
        }
    }

    fn prepare_worker(&mut self, slot: usize) -> io::Result<(F::Service<Connection>, Worker)> {
        become_child(self.parent.pid)?;
        let service = self.factory.make::<Connection>()?;
        let acceptor = self.parent.acceptor.take().ok_or(io::ErrorKind::NotFound)?;
        let slot = Slot { scoreboard: Arc::clone(&self.scoreboard), number: slot };
        Ok((service, Worker::new(&self.parent, acceptor, &self.end, slot)?))
    }

    /// Accepts the clients that have already connected, then stops listening in all workers.
    fn stop_listening(&mut self) -> VecDeque<Accepted> {
        let Some(acceptor) = self.parent.acceptor.take() else { return VecDeque::new() };
        let mut refusals = acceptor.waiting();
        let waiting = std::iter::from_fn(|| acceptor.accept_last(&mut refusals)).collect();
        // A listening socket is closed only when no process has it open any more, but a shutdown stops it at once.
        let _ = shutdown(acceptor.as_fd(), Shutdown::Both);
        waiting
    }
}

/// Serves, in a child of its own, a connection that came before the server began to drain and found no worker.
fn serve_last<F: Factory>(
    parent: &ParentProcess,
    factory: &F,
    accepted: Accepted,
    children: &mut Children<Child>,
) {
    let Accepted { socket, peer, permit } = accepted;
    let serve = || {
        if become_child(parent.pid).is_err() {
            return Exit::Failed;
        }
        let registry = Arc::new(Registry::of_child(Arc::clone(&parent.control)));
        let accepted = Accepted { socket, peer, permit: Permit::held_elsewhere() };
        contain(peer, parent.limit.counters(), || {
            // This fails only while everything is being closed, or if no service can be made, which the workers have
            // reported.
            if let Ok((service, connection)) =
                factory.make().and_then(|service| Ok((service, Connection::accepted(accepted, registry)?)))
            {
                block_on(Service::<Connection>::serve(&service, connection));
            }
        });
        Exit::Done
    };
    factory.refresh();
    match fork(serve) {
        Ok(child) => children.insert(child, Child::Last { _permit: permit }),
        Err(error) => {
            parent.limit.counters().count_refused();
            tracing::warn!(%peer, %error, "a connection was closed unserved");
        }
    }
}
