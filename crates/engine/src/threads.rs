//! `threads`: one thread per connection. The kernel schedules; each thread blocks for itself.

use std::{
    io,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::SocketFlags,
};

use crate::{
    block_on::block_on_until,
    blocking::{Connection, Registry, Seat},
    clock,
    control::{Control, Notifier},
    counters::Gate,
    error::EngineError,
    listen::{self, Accept, Accepted, Acceptor},
    panics::contain,
    server::{Options, Server},
    service::{Factory, Service},
};

/// Stack of a connection's thread. Only what is touched takes memory.
const STACK_BYTES: usize = 1 << 20;
/// How long accepting rests when the system is short of something.
const REST: Duration = Duration::from_millis(20);
/// How long closed connections have to let go of their threads at the end.
const LAST_GRACE: Duration = Duration::from_secs(1);

pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    // A service is made by each connection's thread; one made here shows at once whether that works.
    factory.make::<Connection>().map_err(|source| EngineError::Service { source })?;
    let (local, mut listeners) = listen::open(options.listen, options.backlog, 1)?;
    let notifier = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
    let control = Arc::new(Control::new(vec![Arc::clone(&notifier)]));
    let counters = Arc::clone(&options.counters);
    let gate = Arc::new(Gate::new(options.max_connections, Arc::clone(&counters), Arc::clone(&control)));
    let host = Arc::new(Host {
        factory,
        registry: Arc::new(Registry::new(Arc::clone(&control))),
        name: options.name.clone(),
        gate: Arc::clone(&gate),
        told_refusal: AtomicBool::new(false),
    });
    let mut workers = Vec::new();
    if let Some(listener) = listeners.pop() {
        let acceptor = Acceptor::new(listener, SocketFlags::empty(), gate, Arc::default());
        let front = Front { host, control: Arc::clone(&control), notifier };
        let builder = thread::Builder::new().name(options.name.clone());
        let worker = builder.spawn(move || front.run(acceptor)).map_err(EngineError::system("a thread"))?;
        workers.push(worker);
    }
    Ok(Server { local, counters, control, workers })
}

/// The thread that accepts.
struct Front<F> {
    host: Arc<Host<F>>,
    control: Arc<Control>,
    notifier: Arc<Notifier>,
}

impl<F: Factory> Front<F> {
    fn run(self, acceptor: Acceptor) {
        while !self.control.draining() {
            match acceptor.accept() {
                Accept::Connection(accepted) => self.host.spawn(accepted),
                Accept::Empty => self.wait(Some(&acceptor), None),
                Accept::Full => self.wait(None, None),
                Accept::Exhausted => self.wait(None, Some(REST)),
            }
        }
        self.empty_queue(acceptor);
        self.drain();
    }

    /// Waits for a connection, the notifier, or so long.
    fn wait(&self, acceptor: Option<&Acceptor>, for_at_most: Option<Duration>) {
        let timeout = for_at_most.and_then(|span| Timespec::try_from(span).ok());
        let notifier = PollFd::from_borrowed_fd(self.notifier.as_fd(), PollFlags::IN);
        match acceptor {
            Some(acceptor) => {
                let listener = PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN);
                wait_for(&mut [notifier, listener], timeout);
            }
            None => wait_for(&mut [notifier], timeout),
        }
        self.notifier.clear();
    }

    /// Takes in what has connected already, then stops listening.
    fn empty_queue(&self, acceptor: Acceptor) {
        while let Accept::Connection(accepted) = acceptor.accept() {
            self.host.spawn(accepted);
        }
    }

    fn drain(&self) {
        let registry = &self.host.registry;
        registry.end_idle();
        while !registry.wait_empty(remaining(self.control.stop_at())) {
            if clock::now() >= self.control.stop_at() {
                registry.abort();
                break;
            }
        }
        let end = Instant::now() + LAST_GRACE;
        while !registry.wait_empty(end.saturating_duration_since(Instant::now())) {
            if Instant::now() >= end {
                tracing::warn!("stopped with threads still busy in a service that does not return");
                break;
            }
        }
    }
}

fn wait_for(descriptors: &mut [PollFd<'_>], timeout: Option<Timespec>) {
    // An interrupted or failed wait is a short one: the caller looks again.
    let _ = poll(descriptors, timeout.as_ref());
}

/// Bounded so that an earlier deadline set meanwhile is seen.
fn remaining(stop_at: clock::Micros) -> Duration {
    Duration::from_micros(stop_at.saturating_sub(clock::now())).min(Duration::from_millis(100))
}

/// What every connection's thread needs.
struct Host<F> {
    factory: F,
    registry: Arc<Registry>,
    name: String,
    gate: Arc<Gate>,
    told_refusal: AtomicBool,
}

impl<F: Factory> Host<F> {
    fn spawn(self: &Arc<Self>, accepted: Accepted) {
        let (host, seat) = (Arc::clone(self), Registry::seat(&self.registry));
        let builder = thread::Builder::new().name(self.name.clone()).stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(move || host.serve(accepted, &seat)) {
            self.refuse(&error);
        }
    }

    fn serve(&self, accepted: Accepted, seat: &Seat) {
        let peer = accepted.peer;
        contain(peer, self.gate.counters(), || {
            seat.take();
            match self.open(accepted) {
                Ok((service, connection)) => {
                    block_on_until(service.serve(connection), || self.registry.aborted());
                }
                Err(error) => self.refuse(&error),
            }
        });
    }

    fn open(&self, accepted: Accepted) -> io::Result<(F::Service<Connection>, Connection)> {
        Ok((self.factory.make()?, Connection::accepted(accepted, Arc::clone(&self.registry))?))
    }

    fn refuse(&self, error: &io::Error) {
        self.gate.counters().count_refused();
        if self.told_refusal.swap(true, Relaxed) {
            tracing::debug!(%error, "a connection was closed unserved");
        } else {
            tracing::warn!(%error, "a connection was closed unserved; others will only be counted");
        }
    }
}
