//! The messages.

use std::net::SocketAddr;

use analysis::counters::{Counters, ServerAddress, ThreadLook};
use analysis::doctor::Facts;
use analysis::run::{Host, ServerUnwatched, SocketsUnread};
use analysis::ticks::Tick;
use load::fleet::Member;
use load::{Plan, ProbeReport, RequestTotal, Stop, Think};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::counters::{bounded_look, bounded_sample};
use super::{OwnUse, ProfileOrder, Profiled, ProtocolError, bounded, in_one_line};

/// What the near end asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Find the processes behind these addresses, and sample them from now on.
    Watch {
        /// The number of this question, which its answer repeats.
        number: u64,
        /// The addresses as the generator calls them.
        addresses: Vec<SocketAddr>,
        /// Addresses that tiers on other hosts call.
        behind: Vec<SocketAddr>,
    },
    /// Take a sample now.
    Sample,
    /// Start or stop closer looks at threads.
    LookClosely(bool),
    /// Tell the time.
    Ping(u64),
    /// Make ready to make a load, and tell how much of it this host can make.
    Prepare(Box<Prepare>),
    /// Send one request to each server, and start the threads.
    Start(Member),
    /// Begin with a number of users.
    Begin(Begin),
    /// End the load.
    Finish,
    /// Tell by what it is judged whether a server there can be measured: of the host, and of the processes that are watched. The
    /// number of this question is repeated by its answer.
    Facts(u64),
    /// Sample where the processor time of tiers goes and where their threads sleep, and tell it once the time is over.
    Profile(ProfileOrder),
    /// Tell by now what was sampled.
    EndProfile,
}

/// A load that a generator is to make with others. It holds whatever the requests hold, passwords too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The load; its threads and its place among several generators are not used.
    pub plan: Plan,
    /// Threads; `None`: one for each processor that may be used.
    pub threads: Option<u32>,
    /// Whether to watch what the host does to the load: the near end does not see it.
    pub watch: bool,
}

/// What to begin, and when.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// Its number, which all reports of it repeat.
    pub number: u64,
    /// When, microseconds of the far end's monotonic clock; at once where that has passed.
    pub at_us: u64,
    /// Users of this generator.
    pub users: u32,
    /// Think time; `None`: as before.
    pub think: Option<Think>,
    /// Requests per second of this generator, in an open loop.
    pub rate_per_s: Option<f64>,
    /// How many requests of this generator, or of each user, where it is to end by itself.
    pub stop: Option<Stop>,
}

/// What the far end tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Where it runs. Always the first.
    About(About),
    /// The number of the question, and for each address that is to be watched whether its processes were found, and where they
    /// listen.
    Watching(u64, Vec<Result<Listens, NotFound>>),
    /// What may not be seen there. It comes before the answer about addresses, and again when it changes.
    Unseen(Unseen),
    /// A sample; its time is of the far end's clock, as that of looks.
    Sample(Box<Counters>),
    /// A look at threads.
    Look(ThreadLook),
    /// The time at the far end, microseconds of its monotonic clock, and the number of the ping that asked for it.
    Pong(u64, u64),
    /// So many samples and looks were left out since the last such report, because the stream did not take them.
    LeftOut(u64),
    /// The load can be made.
    Prepared(Prepared),
    /// The servers answered, and the threads run.
    Started(Started),
    /// What had this number began then, microseconds of the far end's monotonic clock.
    Begun(u64, u64),
    /// A slice of what has this number; its time is of the far end's clock.
    Tick(u64, Box<Tick>),
    /// The last request of what has this number ended then.
    Finished(u64, u64),
    /// The load has ended: its requests by kind.
    Totals(Vec<RequestTotal>),
    /// How full what the host gives was lately.
    OwnUse(OwnUse),
    /// Why the load cannot be made, or not any longer.
    Failed(String),
    /// The number of the question, and by what it is judged whether a server there can be measured; its time is of the far end's
    /// clock.
    Facts(u64, Box<Facts>),
    /// What was sampled of some tiers, with the functions named.
    Profiled(Profiled),
}

impl Report {
    /// The same cut to what is believed of it: of bounded size, and fit to be shown. What is about a load, and profiles, are
    /// cut where they are used.
    #[must_use]
    pub fn believed(self) -> Self {
        match self {
            Self::About(about) => Self::About(about.fit_to_be_shown()),
            Self::Watching(number, found) => {
                let found = found.into_iter().take(ADDRESSES_MAX);
                Self::Watching(number, found.map(|one| one.map_err(NotFound::fit_to_be_shown)).collect())
            }
            Self::Unseen(unseen) => {
                let (namespaces, tiers) = unseen.into_parts();
                Self::Unseen(Unseen::new(namespaces, tiers))
            }
            Self::Facts(number, facts) => Self::Facts(number, Box::new(bounded(*facts))),
            Self::Sample(sample) => Self::Sample(Box::new(bounded_sample(*sample))),
            Self::Look(look) => Self::Look(bounded_look(look)),
            other => other,
        }
    }
}

/// How much of a load a generator can make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// Threads.
    pub threads: u32,
    /// Requests of the cheapest kind per second, tested against a null server on its own host.
    pub ceiling_per_s: Option<f64>,
    /// Users that the limit on open files allows.
    pub users_max: u32,
}

/// How the servers answered a generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The addresses that the load goes to.
    pub addresses: Vec<SocketAddr>,
    /// The answer of each server to the first request.
    pub probes: Vec<ProbeReport>,
}

/// Where an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The name of the host, or of the container.
    pub host: String,
    /// Tells one start of one machine from all others; empty if that may not be read.
    pub boot_id: String,
    /// Tells one namespace of process numbers from others of that machine; empty if that may not be read.
    pub process_namespace: String,
    /// Whether it may see everything.
    pub is_root: bool,
    /// Its process number in that namespace.
    pub pid: u32,
    /// What the machine is made of, in the report of an agent.
    pub machine: Host,
}

impl About {
    /// Whether both run on the same machine and see the same process numbers, as far as they tell.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        !self.boot_id.is_empty()
            && !self.process_namespace.is_empty()
            && (&self.boot_id, &self.process_namespace) == (&other.boot_id, &other.process_namespace)
    }
}

/// What an agent may not see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// The network namespaces of which the kernel does not tell all.
    pub namespaces: Vec<Unread>,
    /// Addresses of tiers there whose processes may not be looked into.
    pub tiers: Vec<Callee>,
}

/// A network namespace of which the kernel does not tell all about its sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Name and number of a process in it; `None`: the agent's own.
    pub of: Option<(String, u32)>,
    /// The number of the kernel's error, if the kernel gave one.
    pub os_error: Option<i32>,
    /// Whether its tables of sockets can at least be read as files.
    pub tables: bool,
}

/// Where a call leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Callee {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(String),
}

/// The most of each that is told: it is for people.
const UNSEEN_MAX: usize = 64;

impl Unseen {
    /// What an observer may not see, cut to what can be shown.
    pub(crate) fn new(namespaces: Vec<SocketsUnread>, tiers: Vec<ServerAddress>) -> Self {
        Self {
            namespaces: namespaces.into_iter().take(UNSEEN_MAX).map(Unread::from).collect(),
            tiers: tiers.into_iter().take(UNSEEN_MAX).map(Callee::from).collect(),
        }
    }

    /// The same as it is concluded from, with names that can be shown.
    pub(crate) fn into_parts(self) -> (Vec<SocketsUnread>, Vec<ServerAddress>) {
        let namespaces = self.namespaces.into_iter().take(UNSEEN_MAX).map(SocketsUnread::from);
        let tiers = self.tiers.into_iter().take(UNSEEN_MAX).map(ServerAddress::from);
        (namespaces.collect(), tiers.collect())
    }
}

impl From<SocketsUnread> for Unread {
    fn from(unread: SocketsUnread) -> Self {
        match unread {
            SocketsUnread::NamespaceClosed { name, pid, os_error, tables } => {
                Self { of: Some((name, pid)), os_error, tables }
            }
            SocketsUnread::NotAnswered { os_error, tables } => Self { of: None, os_error, tables },
        }
    }
}

impl From<Unread> for SocketsUnread {
    fn from(Unread { of, os_error, tables }: Unread) -> Self {
        match of {
            Some((name, pid)) => {
                Self::NamespaceClosed { name: in_one_line(&name, NAME_CHARS_MAX), pid, os_error, tables }
            }
            None => Self::NotAnswered { os_error, tables },
        }
    }
}

impl From<ServerAddress> for Callee {
    fn from(address: ServerAddress) -> Self {
        match address {
            ServerAddress::Tcp { address } => Self::Tcp(address),
            ServerAddress::Unix { path } => Self::Unix(path),
        }
    }
}

impl From<Callee> for ServerAddress {
    fn from(callee: Callee) -> Self {
        match callee {
            Callee::Tcp(address) => Self::Tcp { address },
            Callee::Unix(path) => Self::Unix { path: in_one_line(&path, PATH_CHARS_MAX) },
        }
    }
}

/// Where the processes behind an address listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listens {
    /// The address that they listen on.
    pub at: SocketAddr,
    /// Whether nothing but its port says that they are behind the one that was asked for.
    pub by_port: bool,
}

/// Why the processes behind an address were not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotFound {
    /// Neither is the address one of that host's, nor does anything listen on the port.
    NotLocal(SocketAddr),
    /// The address is that host's, and nothing listens on the port.
    NotListening(SocketAddr),
    /// Something listens, and that user may not see what.
    PermissionDenied(SocketAddr),
    /// Something listens, and no process of that host holds the socket.
    NoOwner(SocketAddr),
    /// The agent itself listens.
    OwnProcess(SocketAddr),
    /// A directory cannot be listed.
    Unreadable(String, Option<i32>),
    /// The address is that host's, nothing listens on the port, and that user may not read where address translation leads.
    TranslationUnread(SocketAddr),
}

impl NotFound {
    /// The same with a path that can be shown.
    fn fit_to_be_shown(self) -> Self {
        match self {
            Self::Unreadable(path, os_error) => {
                Self::Unreadable(in_one_line(&path, PATH_CHARS_MAX), os_error)
            }
            other => other,
        }
    }
}

impl From<NotFound> for ServerUnwatched {
    fn from(reason: NotFound) -> Self {
        match reason {
            NotFound::NotLocal(address) => Self::NotLocal { address },
            NotFound::NotListening(address) => Self::NotListening { address },
            NotFound::PermissionDenied(address) => Self::PermissionDenied { address },
            NotFound::NoOwner(address) => Self::NoOwner { address },
            NotFound::OwnProcess(address) => Self::OwnProcess { address },
            NotFound::Unreadable(path, os_error) => Self::Unreadable { path, os_error },
            NotFound::TranslationUnread(address) => Self::TranslationUnread { address },
        }
    }
}

/// The bytes of a message. Nothing that derives its format can fail to be written to memory.
pub(super) fn written(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, Vec::new()).unwrap_or_default()
}

/// The message that the bytes are, all of them.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProtocolError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(ProtocolError::Malformed { length: bytes.len() }),
    }
}

/// The longest name of a host that is shown.
const NAME_CHARS_MAX: usize = 64;

/// The longest name of a kernel or a processor that is kept: kernels take no longer one, and processors have shorter ones.
const MODEL_CHARS_MAX: usize = 64;

/// The most addresses of which it is told whether their processes were found: more than a load calls.
const ADDRESSES_MAX: usize = 4_096;

/// The longest path of a unix socket: what the kernel takes. Other paths that are told are shorter.
const PATH_CHARS_MAX: usize = 108;

impl About {
    /// The same with names that can be shown: short, in one line, without control characters.
    #[must_use]
    pub fn fit_to_be_shown(self) -> Self {
        let shown = self.host.chars().filter(|c| !c.is_control() && !c.is_whitespace());
        let host: String = shown.take(NAME_CHARS_MAX).collect();
        let machine = Host {
            kernel: in_one_line(&self.machine.kernel, MODEL_CHARS_MAX),
            processor: in_one_line(&self.machine.processor, MODEL_CHARS_MAX),
            ..self.machine
        };
        Self { host: if host.is_empty() { "unnamed".to_owned() } else { host }, machine, ..self }
    }
}
