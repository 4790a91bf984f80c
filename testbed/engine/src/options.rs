//! The options of a server.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use crate::{counters::Counters, listen::Listeners};

/// The options of a server. Each concurrency model uses the options that concern it and ignores the others.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen. With port 0 the system chooses one; [`Server::local_addr`](crate::Server::local_addr) tells
    /// which.
    pub listen: SocketAddr,
    /// Sockets to listen on instead, which stay open for as long as these options or copies of them do. With fewer than
    /// loops, loops share some; with more, the rest is not listened on.
    pub bound: Option<Listeners>,
    /// Number of event loops, each with a thread and a listening socket of its own.
    pub loops: usize,
    /// Number of workers, each of which serves one connection at a time.
    pub workers: usize,
    /// How many connections may wait for a worker, not counting those that an idle worker is about to take.
    pub queue: usize,
    /// What happens to connections that find the [`queue`](Self::queue) full.
    pub overload: Overload,
    /// How long a connection may wait in the queue. When its turn comes, a connection that waited longer, or whose
    /// client has gone, is closed and counted.
    pub queue_deadline: Option<Duration>,
    /// What [`Overload::Unavailable`] answers: a short message in the service's protocol, sent verbatim.
    pub unavailable: Vec<u8>,
    /// The most connections open at once; 0 counts as 1. Further clients wait in the listen queue until one closes.
    pub max_connections: usize,
    /// The most connections of one client at once, by IPv4 address or /64 network of IPv6; further ones are closed. `None`
    /// means any number. Clients behind one proxy or router count as one.
    pub max_connections_per_client: Option<usize>,
    /// Length of each listen queue. The system caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// Name of the server's threads, as `top -H` shows it. The system keeps 15 bytes.
    pub name: String,
    /// Where to count. A service that publishes the counters holds the same ones.
    pub counters: Arc<Counters>,
}

impl Options {
    /// Listens on `listen` with one loop per processor, or 64 workers and a queue of 1 024, and any number of
    /// connections.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            bound: None,
            loops: std::thread::available_parallelism().map_or(1, usize::from),
            workers: 64,
            queue: 1024,
            overload: Overload::Backlog,
            queue_deadline: None,
            unavailable: Vec::new(),
            max_connections: usize::MAX,
            max_connections_per_client: None,
            backlog: 4096,
            name: "server".to_owned(),
            counters: Arc::default(),
        }
    }
}

/// What happens to connections when all workers are busy and the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// The server stops accepting, so they wait in the kernel's listen queue.
    #[default]
    Backlog,
    /// The server answers them at once with [`Options::unavailable`] and closes.
    Unavailable,
    /// The server resets them at once.
    Reset,
}

impl Overload {
    /// Every policy, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Backlog, Self::Unavailable, Self::Reset];

    /// The name on the command line.
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

/// A name that no overload policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no overload policy `{given}`; choose one of: backlog, 503, reset")]
pub struct UnknownOverload {
    /// The name that was given.
    pub given: String,
}
