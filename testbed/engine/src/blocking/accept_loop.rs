//! The thread that accepts connections and hands them to threads that serve them.

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
    connection_limit::ConnectionLimit,
    control::{Control, Notifier},
    counters::Denied,
    error::EngineError,
    idle::{LOOK_EVERY, Looks},
    listen::{self, Accept, Accepted, Acceptor},
    options::{Options, Overload},
    server::Server,
};

/// How long accepting pauses when the system is out of descriptors or memory.
const REST: Duration = Duration::from_millis(20);
/// How long threads may take to end, at the very end, after their connections were closed.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// Takes over what an [`AcceptLoop`] accepts.
pub(crate) trait AcceptHandler: Send + Sync + 'static {
    /// Takes a connection, or gives it back if too many are waiting already.
    fn take(self: &Arc<Self>, accepted: Accepted) -> Result<(), Accepted>;

    /// Whether another connection may be accepted. If not, the loop is notified once it may.
    fn has_room(&self) -> bool {
        true
    }

    /// How many connections wait for a thread that others hold.
    fn crowd(&self) -> usize {
        0
    }

    /// Ends once the connections already taken have been served: no more will come.
    fn finish(&self) {}

    /// Closes the connections that still wait to be served.
    fn close_waiting(&self) {}

    /// The handler's sockets and threads.
    fn registry(&self) -> &Registry;
}

/// An accept loop before it starts, with what it shares with its handler.
pub(crate) struct AcceptLoop {
    pub(crate) control: Arc<Control>,
    pub(crate) limit: Arc<ConnectionLimit>,
    notifier: Arc<Notifier>,
}

impl AcceptLoop {
    pub(crate) fn new(options: &Options) -> Result<Self, EngineError> {
        let notifier = Arc::new(Notifier::new().map_err(EngineError::system("an event descriptor"))?);
        let control = Arc::new(Control::new(vec![Arc::clone(&notifier)]));
        let limit = Arc::new(ConnectionLimit::new(options, Arc::clone(&control)));
        Ok(Self { control, limit, notifier })
    }

    /// Listens, and accepts for `handler` on a thread of its own. `threads` are the handler's.
    pub(crate) fn start<H: AcceptHandler>(
        self,
        options: &Options,
        handler: Arc<H>,
        threads: Vec<JoinHandle<()>>,
    ) -> Result<Server, EngineError> {
        let counters = Arc::clone(self.limit.counters());
        // Made first: if something is refused from here on, dropping it ends the handler's threads.
        let mut server =
            Server { local: options.listen, counters, control: Arc::clone(&self.control), threads };
        let opened = listen::open(options, 1);
        let (local, mut listeners) = opened.inspect_err(|_| handler.finish())?;
        server.local = local;
        let Some(listener) = listeners.pop() else { return Ok(server) };
        let acceptor = Acceptor::new(listener, SocketFlags::empty(), Arc::clone(&self.limit), Arc::default());
        let running = Running {
            handler: Arc::clone(&handler),
            refusals: Refusals::new(options.unavailable.clone()),
            overload: options.overload,
            looks: Looks::default(),
            crowded: false,
            shared: self,
        };
        let builder = thread::Builder::new().name(options.name.clone());
        let spawned = builder.spawn(move || running.run(acceptor)).inspect_err(|_| handler.finish());
        server.threads.push(spawned.map_err(EngineError::system("a thread"))?);
        Ok(server)
    }
}

/// An accept loop on its thread.
struct Running<H> {
    shared: AcceptLoop,
    handler: Arc<H>,
    refusals: Refusals,
    overload: Overload,
    looks: Looks,
    /// Connections waited for a thread when it was last looked at.
    crowded: bool,
}

impl<H: AcceptHandler> Running<H> {
    fn run(mut self, acceptor: Acceptor) {
        while !self.shared.control.draining() {
            self.relieve();
            if !self.handler.has_room() {
                self.wait(None, None);
                continue;
            }
            match acceptor.accept() {
                Accept::Connection(accepted) => self.hand_over(accepted),
                Accept::Refused => {}
                Accept::Empty => self.wait(Some(&acceptor), None),
                Accept::Full => self.make_room(&acceptor),
                Accept::Exhausted => self.wait(None, Some(REST)),
            }
        }
        self.empty_queue(acceptor);
        self.handler.finish();
        self.drain();
    }

    /// Ends idle connections for those that have found no thread for a while. Those that wait for another request ended at
    /// once.
    fn relieve(&mut self) {
        let crowd = self.handler.crowd();
        if crowd > 0 && self.crowded {
            self.end_idle(crowd);
        } else if crowd > 0 {
            self.looks.postpone();
        }
        self.crowded = crowd > 0;
    }

    /// Waits until another connection may be accepted, and ends idle ones if clients wait.
    fn make_room(&mut self, acceptor: &Acceptor) {
        match acceptor.waiting() {
            0 => self.wait(Some(acceptor), None),
            waiting => {
                self.end_idle(waiting);
                self.wait(None, Some(LOOK_EVERY));
            }
        }
    }

    fn end_idle(&mut self, wanted: usize) {
        if self.looks.take() {
            self.handler.registry().end_longest_idle(wanted);
        }
    }

    fn hand_over(&mut self, accepted: Accepted) {
        if let Err(denied) = self.handler.take(accepted) {
            self.shared.limit.counters().count_denied(Denied::Full);
            match self.overload {
                Overload::Unavailable => self.refusals.answer(denied.socket),
                Overload::Reset | Overload::Backlog => refusals::reset(&denied.socket),
            }
        }
    }

    /// Waits for a connection, the notifier, a refused client, or the time-out.
    fn wait(&mut self, acceptor: Option<&Acceptor>, timeout: Option<Duration>) {
        let look = (self.handler.crowd() > 0).then_some(LOOK_EVERY);
        let timeout = [timeout, look, self.refusals.patience()].into_iter().flatten().min();
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.shared.notifier.as_fd(), PollFlags::IN)];
        descriptors
            .extend(acceptor.map(|acceptor| PollFd::from_borrowed_fd(acceptor.as_fd(), PollFlags::IN)));
        let own = descriptors.len();
        descriptors.extend(self.refusals.watched());
        // An interrupted or failed wait is merely short: the caller checks again.
        let _ = poll(&mut descriptors, timeout.as_ref());
        let ready: Vec<bool> =
            descriptors.iter().skip(own).map(|descriptor| !descriptor.revents().is_empty()).collect();
        drop(descriptors);
        self.refusals.tend(&ready);
        self.shared.notifier.clear();
    }

    /// Accepts the clients that have already connected, then stops listening.
    fn empty_queue(&mut self, acceptor: Acceptor) {
        let mut refusals = acceptor.waiting();
        while let Some(accepted) = acceptor.accept_last(&mut refusals) {
            self.hand_over(accepted);
        }
    }

    fn drain(&self) {
        let (registry, control) = (self.handler.registry(), &self.shared.control);
        registry.end_idle();
        while !registry.wait_empty(remaining(control.stop_at())) {
            if clock::now() >= control.stop_at() {
                self.handler.close_waiting();
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

/// The time until `stop_at`, bounded so that an earlier deadline set meanwhile is noticed.
fn remaining(stop_at: clock::Micros) -> Duration {
    Duration::from_micros(stop_at.saturating_sub(clock::now())).min(Duration::from_millis(100))
}
