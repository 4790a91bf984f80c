//! `prefork`: a fixed number of processes, forked beforehand, that accept from one listening socket.
//!
//! A worker serves a connection to its end. While every worker is taken and peers wait to be accepted, a connection
//! ends after the request in hand. A worker that died is replaced, each at most once a second.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::SeqCst},
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
    counters::Gate,
    error::EngineError,
    listen::{Accept, Accepted, Acceptor},
    panics::contain,
    process::{self, Ended, Front, Household, become_child, fork, signals},
    server::{Options, Server},
    service::{Factory, Service},
    shared::Cells,
};

/// A worker is not replaced sooner after it was started.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// How long accepting rests when the system is short of something, or as many connections are open as may be.
const REST: Duration = Duration::from_millis(20);
/// How long free workers have, when the server drains, to take in what has connected already.
const LAST_CALL: Duration = Duration::from_millis(100);

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    let workers = options.workers.max(1);
    let end = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
    let busy = Arc::new(Busy(Cells::new(workers)));
    process::start(options, workers, |front| {
        let due = (0..workers).map(|slot| Due { slot, at: None }).collect();
        Crew { front, factory, end, busy, due, working: Household::new() }.run();
    })
}

/// The front, with its workers.
struct Crew<F> {
    front: Front,
    factory: F,
    /// Readable once there is no more to accept.
    end: Arc<Notifier>,
    busy: Arc<Busy>,
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

/// What the front knows a worker by. Dropped when the worker has ended.
struct Place {
    slot: usize,
    started: Instant,
    gate: Arc<Gate>,
    busy: Arc<Busy>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.busy.0[self.slot].swap(0, SeqCst) != 0 {
            // It ended in the middle of a connection.
            self.gate.give_back();
        }
    }
}

/// Which workers serve somebody: a cell of each.
#[derive(Debug)]
struct Busy(Cells);

impl<F: Factory> Crew<F> {
    fn run(mut self) {
        while self.front.serving() {
            for ended in self.working.reap() {
                self.due.push(Due { slot: ended.slot, at: Some(ended.started + LIFE_MIN) });
            }
            let next = self.start_due();
            self.front.wait(None, next);
        }
        self.end.notify();
        self.stop_listening();
        self.front.drain(&mut self.working);
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
                let (gate, busy) = (Arc::clone(&self.front.gate), Arc::clone(&self.busy));
                let place = Place { slot: due.slot, started: Instant::now(), gate, busy };
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
        let line = Line { acceptor: Arc::clone(&acceptor), busy: Arc::clone(&self.busy) };
        let registry = Registry::of_child(Arc::clone(&self.front.control)).under(Arc::new(line));
        let (gate, busy) = (Arc::clone(&self.front.gate), Arc::clone(&self.busy));
        Ok(Worker { acceptor, watch, registry: Arc::new(registry), gate, busy, slot })
    }

    /// Leaves what has connected already to the workers that are free, then ends listening for all of them.
    fn stop_listening(&mut self) {
        let Some(acceptor) = self.front.acceptor.take() else { return };
        let until = Instant::now() + LAST_CALL;
        while is_waiting(&acceptor) && !self.busy.all() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A listening socket is closed only once no process has it; it stops listening at once by this.
        let _ = shutdown(acceptor.as_fd(), Shutdown::Both);
    }
}

/// A worker process at work.
struct Worker {
    acceptor: Arc<Acceptor>,
    watch: OwnedFd,
    registry: Arc<Registry>,
    gate: Arc<Gate>,
    busy: Arc<Busy>,
    slot: usize,
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
        self.busy.0[self.slot].store(1, SeqCst);
        contain(accepted.peer, self.gate.counters(), || {
            // It fails only when everything is to end.
            if let Ok(connection) = Connection::accepted(accepted, Arc::clone(&self.registry)) {
                block_on(service.serve(connection));
            }
        });
        self.busy.0[self.slot].store(0, SeqCst);
    }

    /// Waits for a connection, or the end.
    fn wait(&self) {
        let mut events = Vec::with_capacity(2);
        // An interrupted or failed wait is a short one: the caller looks again.
        let _ = epoll::wait(&self.watch, spare_capacity(&mut events), None);
    }
}

impl Busy {
    fn all(&self) -> bool {
        self.0.iter().all(|busy| busy.load(SeqCst) != 0)
    }
}

/// Those who wait to be accepted, as a worker sees them.
#[derive(Debug)]
struct Line {
    acceptor: Arc<Acceptor>,
    busy: Arc<Busy>,
}

impl Pressure for Line {
    fn others_wait(&self) -> bool {
        self.busy.all() && is_waiting(&self.acceptor)
    }
}

/// Whether somebody waits to be accepted. Nobody does once listening has ended.
fn is_waiting(acceptor: &Acceptor) -> bool {
    let mut listener = [PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut listener, Some(&now));
    listener.iter().all(|listener| listener.revents() == PollFlags::IN)
}
