//! `prefork`: a fixed number of processes, forked beforehand, that accept from one listening socket.
//!
//! A worker serves a connection to its end. While every worker is taken and peers wait to be accepted, a connection
//! ends after the request in hand, and the front ends one that waits for its next request. A worker that died is
//! replaced, each at most once a second.

mod desks;

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{
        PollFd, PollFlags, Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
        poll,
    },
    net::{Shutdown, shutdown},
};

use crate::{
    block_on::block_on,
    blocking::{Connection, Pressure, Registry},
    control::Notifier,
    counters::{Gate, Permit},
    error::EngineError,
    listen::{Accept, Accepted, Acceptor},
    panics::contain,
    process::{self, Ended, Front, Household, become_child, fork, signals},
    server::{Options, Server},
    service::{Factory, Service},
};
use desks::{Desk, Desks};

/// A worker is not replaced sooner after it was started.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// How long accepting rests when the system is short of something, or as many connections are open as may be.
const REST: Duration = Duration::from_millis(20);
/// How soon the front looks again whether a worker that was told to give way has done so.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let workers = options.workers.max(1);
    let end = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
    process::start(options, workers, |front| {
        let due = (0..workers).map(|slot| Due { slot, at: None }).collect();
        let desks = Arc::new(Desks::new(workers, Arc::clone(&front.control)));
        Crew { front, factory, end, desks, due, working: Household::new() }.run();
    })
}

/// The front, with its workers.
struct Crew<F> {
    front: Front,
    factory: F,
    /// Readable once there is no more to accept.
    end: Arc<Notifier>,
    desks: Arc<Desks>,
    /// Workers to be started.
    due: Vec<Due>,
    working: Household<Place>,
}

/// A worker to be started.
struct Due {
    slot: usize,
    /// When; none for the first in its place, which is at once and reports to the caller.
    at: Option<Instant>,
}

/// What the front knows a child by. Dropped when the child has ended.
enum Place {
    /// A worker.
    Worker { slot: usize, started: Instant, gate: Arc<Gate>, desks: Arc<Desks> },
    /// One that serves a single connection, while the server drains; with its place among the open ones.
    Last { _permit: Permit },
}

impl Place {
    /// Whether it is the worker of this slot.
    const fn is(&self, wanted: usize) -> bool {
        matches!(self, Self::Worker { slot, .. } if *slot == wanted)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Worker { slot, gate, desks, .. } = self
            && desks.leave(*slot)
        {
            // It ended in the middle of a connection.
            gate.give_back();
        }
    }
}

impl<F: Factory> Crew<F> {
    fn run(mut self) {
        while self.front.serving() {
            for ended in self.working.reap() {
                if let Place::Worker { slot, started, .. } = &ended {
                    self.due.push(Due { slot: *slot, at: Some(*started + LIFE_MIN) });
                }
            }
            let next = self.start_due();
            self.wait(next);
        }
        self.end.notify();
        let mut waiting = self.stop_listening();
        let Self { mut front, factory, desks, mut working, .. } = self;
        front.drain(&mut working, |front, working| {
            while working.len() < desks.count()
                && let Some(accepted) = waiting.pop_front()
            {
                serve_last(front, &factory, accepted, working);
            }
        });
    }

    /// Waits until there is something to do. While all workers are taken, some of them by kept connections, that is also
    /// when somebody waits to be accepted: one of those connections is ended then.
    fn wait(&mut self, next: Option<Duration>) {
        let wanted = self.desks.watch();
        // Taken out for the time, as the front is changed by the wait.
        let acceptor = self.front.acceptor.take();
        let listener = acceptor.as_ref().map(AsFd::as_fd).filter(|_| wanted);
        let soon = self.desks.any_giving_way().then_some(LOOK_AGAIN);
        self.front.wait(listener, [next, soon].into_iter().flatten().min());
        if wanted
            && acceptor.as_ref().is_some_and(is_waiting)
            && let Some(slot) = self.desks.ask_one_kept()
        {
            self.working.give_way(|place| place.is(slot));
        }
        self.front.acceptor = acceptor;
    }

    /// Starts the workers whose time has come; how long until the next one's.
    fn start_due(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.due)
            .into_iter()
            .partition(|due: &Due| due.at.is_none_or(|at| at <= now));
        self.due = later;
        due.into_iter().for_each(|due| self.spawn(&due));
        self.due.iter().filter_map(|due| due.at).min().map(|at| at.saturating_duration_since(now))
    }

    fn spawn(&mut self, due: &Due) {
        match fork(|| self.child(due)) {
            Ok(child) => {
                let (gate, desks) = (Arc::clone(&self.front.gate), Arc::clone(&self.desks));
                let place = Place::Worker { slot: due.slot, started: Instant::now(), gate, desks };
                self.working.insert(child, place);
            }
            Err(error) => {
                self.tell(due, &error);
                self.due.push(Due { slot: due.slot, at: Some(Instant::now() + LIFE_MIN) });
            }
        }
    }

    /// Tells why a worker could not begin: the caller, who waits for the first ones, or the log.
    fn tell(&self, due: &Due, error: &io::Error) {
        match due.at {
            None => self.front.report().send::<()>(&Err(io::Error::new(error.kind(), error.to_string()))),
            Some(_) => tracing::error!(%error, "a worker process could not begin; it will be tried again"),
        }
    }

    /// The worker's whole life.
    fn child(&mut self, due: &Due) -> Ended {
        let begun = become_child(self.front.pid).and_then(|()| {
            Ok((
                self.factory.make::<Connection>()?,
                self.front.acceptor.take().ok_or(io::ErrorKind::NotFound)?,
            ))
        });
        let (service, acceptor) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.tell(due, &error);
                return Ended::Failed;
            }
        };
        let worker = match self.worker(acceptor, due.slot) {
            Ok(worker) => worker,
            Err(error) => {
                self.tell(due, &error);
                return Ended::Failed;
            }
        };
        if due.at.is_none() {
            self.front.report().send(&Ok(()));
        }
        worker.run(&service);
        Ended::Done
    }

    fn worker(&self, acceptor: Acceptor, slot: usize) -> io::Result<Worker> {
        let acceptor = Arc::new(acceptor);
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        // One free worker, not all of them, is woken for a connection.
        epoll::add(&watch, &*acceptor, EventData::new_u64(0), EventFlags::IN | EventFlags::EXCLUSIVE)?;
        epoll::add(&watch, &*self.end, EventData::new_u64(1), EventFlags::IN)?;
        let desk = Desk { desks: Arc::clone(&self.desks), slot };
        let line = Line { acceptor: Arc::clone(&acceptor), desk: desk.clone() };
        let registry = Registry::of_child(Arc::clone(&self.front.control)).under(Arc::new(line));
        let gate = Arc::clone(&self.front.gate);
        Ok(Worker { acceptor, watch, registry: Arc::new(registry), gate, desk })
    }

    /// Takes in what has connected already, then ends listening for all workers.
    fn stop_listening(&mut self) -> VecDeque<Accepted> {
        let Some(acceptor) = self.front.acceptor.take() else { return VecDeque::new() };
        let next = || match acceptor.accept() {
            Accept::Connection(accepted) => Some(accepted),
            Accept::Empty | Accept::Full | Accept::Exhausted => None,
        };
        let waiting = std::iter::from_fn(next).collect();
        // A listening socket is closed only once no process has it; it stops listening at once by this.
        let _ = shutdown(acceptor.as_fd(), Shutdown::Both);
        waiting
    }
}

/// Serves, in a child of its own, a connection that came before the server began to drain and found no worker.
fn serve_last<F: Factory>(front: &Front, factory: &F, accepted: Accepted, working: &mut Household<Place>) {
    let Accepted { socket, peer, permit } = accepted;
    let serve = || {
        if become_child(front.pid).is_err() {
            return Ended::Failed;
        }
        let registry = Arc::new(Registry::of_child(Arc::clone(&front.control)));
        let accepted = Accepted { socket, peer, permit: Permit::held_elsewhere() };
        contain(peer, front.gate.counters(), || {
            // It fails only when everything is to end, or no service can be made, which the workers have told.
            if let Ok((service, connection)) =
                factory.make().and_then(|service| Ok((service, Connection::accepted(accepted, registry)?)))
            {
                block_on(Service::<Connection>::serve(&service, connection));
            }
        });
        Ended::Done
    };
    match fork(serve) {
        Ok(child) => working.insert(child, Place::Last { _permit: permit }),
        Err(error) => {
            front.gate.counters().count_refused();
            tracing::warn!(%peer, %error, "a connection was closed unserved");
        }
    }
}

/// A worker process at work.
struct Worker {
    acceptor: Arc<Acceptor>,
    watch: OwnedFd,
    registry: Arc<Registry>,
    gate: Arc<Gate>,
    desk: Desk,
}

impl Worker {
    fn run(&self, service: &impl Service<Connection>) {
        while self.goes_on() {
            match self.acceptor.accept() {
                Accept::Connection(accepted) => self.serve(service, accepted),
                Accept::Empty => self.wait(),
                Accept::Full | Accept::Exhausted => std::thread::sleep(REST),
            }
        }
    }

    /// Whether to accept. A draining server takes in what has connected already; a worker told to end does not.
    fn goes_on(&self) -> bool {
        !signals::told() && (!self.registry.draining() || is_waiting(&self.acceptor))
    }

    fn serve(&self, service: &impl Service<Connection>, accepted: Accepted) {
        self.desk.serve();
        contain(accepted.peer, self.gate.counters(), || {
            // It fails only when everything is to end.
            if let Ok(connection) = Connection::accepted(accepted, Arc::clone(&self.registry)) {
                block_on(service.serve(connection));
            }
        });
        self.desk.rest();
    }

    /// Waits for a connection, or the end.
    fn wait(&self) {
        let mut events = Vec::with_capacity(2);
        // An interrupted or failed wait is a short one: the caller looks again.
        let _ = epoll::wait(&self.watch, spare_capacity(&mut events), None);
    }
}

/// Those who wait to be accepted, as a worker sees them.
#[derive(Debug)]
struct Line {
    acceptor: Arc<Acceptor>,
    desk: Desk,
}

impl Pressure for Line {
    fn others_wait(&self) -> bool {
        self.desk.desks.all_taken() && is_waiting(&self.acceptor)
    }

    fn set_kept(&self, kept: bool) {
        if kept { self.desk.keep() } else { self.desk.serve() }
    }
}

/// Whether somebody waits to be accepted. Nobody does once listening has ended.
fn is_waiting(acceptor: &Acceptor) -> bool {
    let mut listener = [PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut listener, Some(&now));
    listener.iter().all(|listener| listener.revents() == PollFlags::IN)
}
