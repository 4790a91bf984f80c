//! The thread that accepts connections, and hands them to threads that serve them.

use std::{
    os::fd::AsFd,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::SocketFlags,
};

use super::{
    refusals::{self, Refusals},
    registry::Registry,
};
use crate::{
    clock,
    control::{Control, Notifier},
    counters::{Denied, Gate},
    error::EngineError,
    listen::{self, Accept, Accepted, Acceptor},
    server::{Options, Overload, Server},
};

/// How long accepting rests when the system is short of something.
const REST: Duration = Duration::from_millis(20);
/// How long closed connections have to let go of their threads at the end.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// The threads that serve what the front accepts.
pub(crate) trait Crew: Send + Sync + 'static {
    /// Takes a connection, or gives it back when too many wait already.
    fn take(self: &Arc<Self>, accepted: Accepted) -> Result<(), Accepted>;

    /// Whether another connection may be accepted. If not, the front is notified once it may.
    fn has_room(&self) -> bool {
        true
    }

    /// No more connections come: ends once those taken have been served.
    fn finish(&self) {}

    /// Forgets those that still wait to be served.
    fn forget_waiting(&self) {}

    /// The sockets and threads it has.
    fn registry(&self) -> &Registry;
}

/// What every front shares with its crew.
pub(crate) struct Front {
    pub(crate) control: Arc<Control>,
    pub(crate) gate: Arc<Gate>,
    notifier: Arc<Notifier>,
}

impl Front {
    pub(crate) fn new(options: &Options) -> Result<Self, EngineError> {
        let notifier = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
        let control = Arc::new(Control::new(vec![Arc::clone(&notifier)]));
        let counters = Arc::clone(&options.counters);
        let gate = Arc::new(Gate::new(options.max_connections, counters, Arc::clone(&control)));
        Ok(Self { control, gate, notifier })
    }

    /// Listens, and accepts for `crew`, whose threads are `workers`.
    pub(crate) fn start<C: Crew>(
        self,
        options: &Options,
        crew: Arc<C>,
        workers: Vec<JoinHandle<()>>,
    ) -> Result<Server, EngineError> {
        let counters = Arc::clone(self.gate.counters());
        // Made first: should something be refused from here on, its drop ends the crew.
        let mut server =
            Server { local: options.listen, counters, control: Arc::clone(&self.control), workers };
        let opened = listen::open(options.listen, options.backlog, 1);
        let (local, mut listeners) = opened.inspect_err(|_| crew.finish())?;
        server.local = local;
        let Some(listener) = listeners.pop() else { return Ok(server) };
        let acceptor = Acceptor::new(listener, SocketFlags::empty(), Arc::clone(&self.gate), Arc::default());
        let accepting = Accepting {
            crew: Arc::clone(&crew),
            refusals: Refusals::new(options.unavailable.clone()),
            overload: options.overload,
            front: self,
        };
        let builder = thread::Builder::new().name(options.name.clone());
        let spawned = builder.spawn(move || accepting.run(acceptor)).inspect_err(|_| crew.finish());
        server.workers.push(spawned.map_err(EngineError::system("a thread"))?);
        Ok(server)
    }
}

/// A front at work.
struct Accepting<C> {
    front: Front,
    crew: Arc<C>,
    refusals: Refusals,
    overload: Overload,
}

impl<C: Crew> Accepting<C> {
    fn run(mut self, acceptor: Acceptor) {
        while !self.front.control.draining() {
            if !self.crew.has_room() {
                self.wait(None, None);
                continue;
            }
            match acceptor.accept() {
                Accept::Connection(accepted) => self.hand_over(accepted),
                Accept::Empty => self.wait(Some(&acceptor), None),
                Accept::Full => self.wait(None, None),
                Accept::Exhausted => self.wait(None, Some(REST)),
            }
        }
        self.empty_queue(acceptor);
        self.crew.finish();
        self.drain();
    }

    fn hand_over(&mut self, accepted: Accepted) {
        if let Err(denied) = self.crew.take(accepted) {
            self.front.gate.counters().count_denied(Denied::Full);
            match self.overload {
                Overload::Unavailable => self.refusals.answer(denied.socket),
                Overload::Reset | Overload::Backlog => refusals::reset(&denied.socket),
            }
        }
    }

    /// Waits for a connection, the notifier, clients that were refused, or so long.
    fn wait(&mut self, acceptor: Option<&Acceptor>, for_at_most: Option<Duration>) {
        let timeout = [for_at_most, self.refusals.patience()].into_iter().flatten().min();
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.front.notifier.as_fd(), PollFlags::IN)];
        descriptors
            .extend(acceptor.map(|acceptor| PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN)));
        let own = descriptors.len();
        descriptors.extend(self.refusals.watched());
        // An interrupted or failed wait is a short one: the caller looks again.
        let _ = poll(&mut descriptors, timeout.as_ref());
        let ready: Vec<bool> =
            descriptors.iter().skip(own).map(|descriptor| !descriptor.revents().is_empty()).collect();
        drop(descriptors);
        self.refusals.tend(&ready);
        self.front.notifier.clear();
    }

    /// Takes in what has connected already, then stops listening.
    fn empty_queue(&mut self, acceptor: Acceptor) {
        while let Accept::Connection(accepted) = acceptor.accept() {
            self.hand_over(accepted);
        }
    }

    fn drain(&self) {
        let (registry, control) = (self.crew.registry(), &self.front.control);
        registry.end_idle();
        while !registry.wait_empty(remaining(control.stop_at())) {
            if clock::now() >= control.stop_at() {
                self.crew.forget_waiting();
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

/// Bounded so that an earlier deadline set meanwhile is seen.
fn remaining(stop_at: clock::Micros) -> Duration {
    Duration::from_micros(stop_at.saturating_sub(clock::now())).min(Duration::from_millis(100))
}
