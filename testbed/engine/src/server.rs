//! Starting and stopping a server.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, thread::JoinHandle, time::Duration};

use crate::{
    aio::Aio, control::Control, counters::Counters, epoll::Epoll, error::EngineError, model::Model,
    poll::Poll, polling::Polling, pool, prefork, processes, readiness, select::Select, service::Factory,
    threads, uring,
};

/// How a server is to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen. Port 0 lets the system choose; [`Server::local_addr`] tells what it chose.
    pub listen: SocketAddr,
    /// Event loops, each on a thread and a listening socket of its own. Models without loops have no use for it.
    pub loops: usize,
    /// Workers, for the models that have a fixed number of them, each serving one connection at a time.
    pub workers: usize,
    /// Connections that may wait for a worker beyond those an idle one is about to take. Models that have a worker for
    /// each connection, or wait in the listen queue, have no use for it.
    pub queue: usize,
    /// What becomes of connections beyond [`queue`](Self::queue).
    pub overload: Overload,
    /// How long a connection may wait in the queue. One that waited longer, or whose client has gone, is closed and
    /// counted when its turn comes.
    pub queue_deadline: Option<Duration>,
    /// What [`Overload::Unavailable`] answers: a short message of the service's protocol, sent as it is.
    pub unavailable: Vec<u8>,
    /// Most connections open at once, at least one. Beyond, peers wait in the listen queue until one closes.
    pub max_connections: usize,
    /// Length of each listen queue; the system caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// Name of the server's threads, as `top -H` shows it; the system keeps 15 bytes.
    pub name: String,
    /// Where to count. Hand the same to a service that shows it.
    pub counters: Arc<Counters>,
}

impl Options {
    /// Listens on `listen`, with a loop for each processor, 64 workers with a queue of 1 024, and no limit of
    /// connections.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            loops: std::thread::available_parallelism().map_or(1, usize::from),
            workers: 64,
            queue: 1024,
            overload: Overload::Backlog,
            queue_deadline: None,
            unavailable: Vec::new(),
            max_connections: usize::MAX,
            backlog: 4096,
            name: "server".to_owned(),
            counters: Arc::default(),
        }
    }
}

/// What becomes of connections when workers and queue are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// No more are accepted for a while: they wait in the kernel's listen queue.
    #[default]
    Backlog,
    /// They are answered at once with [`Options::unavailable`], and closed so that the client can read it.
    Unavailable,
    /// They are reset at once.
    Reset,
}

impl Overload {
    /// Every policy, in the order they are listed to people.
    pub const ALL: [Self; 3] = [Self::Backlog, Self::Unavailable, Self::Reset];

    /// The name people type and read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::Unavailable => "503",
            Self::Reset => "reset",
        }
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Overload {
    type Err = UnknownOverload;

    fn from_str(text: &str) -> Result<Self, UnknownOverload> {
        let known = Self::ALL.into_iter().find(|policy| policy.name() == text);
        known.ok_or_else(|| UnknownOverload { given: text.to_owned() })
    }
}

/// A name that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no overload policy `{given}`; choose one of: backlog, 503, reset")]
pub struct UnknownOverload {
    /// What was asked for.
    pub given: String,
}

/// Starts a server of `model` whose services are made by `factory`.
///
/// # Errors
/// When the address cannot be had, the system refuses what the model needs, or the factory fails.
pub fn start<F: Factory>(model: Model, options: &Options, factory: F) -> Result<Server, EngineError> {
    if let Some(caution) = model.caution() {
        tracing::warn!("{model}: {caution}");
    }
    match model {
        Model::Threads => threads::start(options, factory),
        Model::Pool => pool::start(options, factory),
        Model::Processes => processes::start(options, factory),
        Model::Prefork => prefork::start(options, factory),
        Model::Polling => readiness::start::<Polling, F>(options, factory),
        Model::Select => readiness::start::<Select, F>(options, factory),
        Model::Poll => readiness::start::<Poll, F>(options, factory),
        Model::Epoll => readiness::start::<Epoll, F>(options, factory),
        Model::Aio => readiness::start::<Aio, F>(options, factory),
        Model::Uring => uring::start(options, factory),
    }
}

/// A running server. Dropped, it stops at once.
#[derive(Debug)]
pub struct Server {
    pub(crate) local: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    pub(crate) control: Arc<Control>,
    pub(crate) workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What it counts.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Stops accepting, ends idle connections, and lets the others finish for as long as `deadline`;
    /// then closes what is left. Returns at once; [`join`](Self::join) waits.
    pub fn drain(&self, deadline: Duration) {
        self.control.drain(deadline);
    }

    /// Whether it serves nobody any more: because it was drained, or because it failed, which the log tells.
    pub fn is_finished(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the server has stopped: for ever, unless it is drained.
    pub fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        for worker in self.workers.drain(..) {
            // A worker contains the panics of its services; one of its own has been reported by its thread.
            let _ = worker.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.workers.is_empty() {
            self.control.drain(Duration::ZERO);
            self.wait();
        }
    }
}
