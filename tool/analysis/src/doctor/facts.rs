//! What a host says of itself at one instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::Unmade;
use crate::counters::{Cpu, Role, Tracked};

/// Facts of a host. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// When they were read, microseconds of a monotonic clock.
    pub at_us: u64,
    /// Whether the program that measures was built without optimisation.
    pub debug_build: bool,
    /// The time of each processor.
    pub cpus: Vec<Cpu>,
    /// The settings of each processor.
    pub processors: Vec<Processor>,
    /// The source of the kernel's clock.
    pub clock: Option<String>,
    /// The sources that there are.
    pub clocks: Vec<String>,
    /// Who gets large pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// Pages read back from swap so far.
    pub swapped_in_pages: u64,
    /// Every process, and its CPU time so far.
    pub processes: Vec<HostProcess>,
    /// Processes whose limits matter: the generator, where it is on this host, and those of the server.
    pub subjects: Vec<(Subject, SubjectFacts)>,
    /// Limits on connections, of the network namespace of whoever asks.
    pub sockets: Sockets,
    /// The same of the server's network namespace, where that is another.
    pub server_network: Option<ServerNetwork>,
    /// The listen queues of the server.
    pub listeners: Vec<ListenQueue>,
    /// Links that are up, but the loopback: name, bits a second, whether both directions work at once.
    pub links: Vec<(String, f64, bool)>,
    /// What links take off the processors: those that are up and have a device behind them, also if they do not say how fast they
    /// are.
    pub offloads: Vec<LinkOffloads>,
    /// What could not be looked at for want of a right.
    pub unmade: Vec<Unmade>,
}

/// Whose a limit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// Whoever runs nstar from here makes the load.
    Generator,
    /// A process of the server, or of a tier behind it.
    Server {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
        /// Whether it serves the load, or is called by what does.
        role: Role,
    },
}

impl Subject {
    /// The program of a process, and its role: its tier, on its host. `None` for the generator.
    pub(super) fn tier(&self) -> Option<(Role, &str)> {
        match self {
            Self::Generator => None,
            Self::Server { name, role, .. } => Some((*role, name.as_str())),
        }
    }

    /// Writes a process without the name of its variant: its name, number and role, and nothing (`null`) for the generator.
    pub(super) fn plainly<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let process = match self {
            Self::Generator => None,
            Self::Server { name, pid, role } => Some(Process { name: name.clone(), pid: *pid, role: *role }),
        };
        process.serialize(serializer)
    }
}

/// A process of the server, or of a tier behind it; where there is none, it is the generator.
#[derive(Serialize, JsonSchema)]
pub(super) struct Process {
    /// Its name.
    name: String,
    /// Its number.
    pid: u32,
    /// Whether it serves the load, or is called by what does.
    role: Role,
}

/// Limits of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectFacts {
    /// Files that it may open; of the generator the hard limit, to which it raises the soft one. Absent where there is no limit.
    pub open_files: Option<u64>,
    /// Processors that it may run on.
    pub allowed: Vec<u32>,
    /// Processors that its cgroup lets it use.
    pub quota_cores: Option<f64>,
    /// Memory under the fullest limit of its cgroups. Absent where there is no limit.
    pub memory: Option<LimitedMemory>,
    /// Whether its program lies where debug builds are put.
    pub debug_build: bool,
}

/// What a cgroup may use of memory, and what it uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedMemory {
    /// What it may use, bytes.
    pub most_bytes: u64,
    /// What it uses, bytes, but for pages of files that were not read for a while: those the kernel takes back first. Kubernetes
    /// calls it the working set.
    pub used_bytes: u64,
}

impl LimitedMemory {
    /// The share that is in use, 0 to 1; no number, or infinite, where nothing may be used.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.used_bytes as f64 / self.most_bytes as f64
    }
}

/// The settings of a processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// The governor of its speed.
    pub governor: Option<String>,
    /// How long it takes to wake from the deepest idle state that it may enter, microseconds.
    pub wake_us: Option<u64>,
    /// The processors that share its core, itself included.
    pub siblings: Vec<u32>,
    /// Its node of memory.
    pub node: Option<u32>,
}

/// A process, and its CPU time so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// CPU time, microseconds.
    pub cpu_us: u64,
    /// Whether it is part of the measurement: the server, a tier behind it, or who asks.
    pub is_ours: bool,
}

/// The network namespace of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerNetwork {
    /// The name of a process in it.
    pub name: String,
    /// The number of that process.
    pub pid: u32,
    /// Limits on connections.
    pub sockets: Sockets,
}

/// A listen queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenQueue {
    /// The name of the process that listens.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// The port.
    pub port: u16,
    /// How many connections may wait.
    pub most: u64,
}

/// Work on packets that a link takes off the processors. What the kernel does not tell is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOffloads {
    /// The name of the link.
    pub link: String,
    /// Whether the device cuts large pieces of a TCP stream into packets (TSO, TCP segmentation offload).
    pub segmentation: Option<bool>,
    /// Whether packets that arrive are joined before the kernel handles them (GRO, generic receive offload).
    pub receive: Option<bool>,
}

/// Limits on connections, of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sockets {
    /// The kernel's name of the namespace; empty where that is not known, or none of its limits were looked at.
    pub network: String,
    /// `net.core.somaxconn`.
    pub listen_queue: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_queue: Option<u64>,
    /// `net.core.netdev_max_backlog`.
    pub packet_queue: Option<u64>,
    /// Packets dropped from it so far.
    pub packets_dropped: u64,
    /// Packets that arrived and were handled so far, as the kernel counts them, modulo 2^32 for each processor; 0 where that is
    /// not known.
    pub packets_handled: u64,
    /// Local ports that there are.
    pub ports: Option<u64>,
    /// Connections that have ended and hold their port.
    pub time_wait: u64,
    /// `net.ipv4.tcp_tw_reuse`.
    pub reuse: Option<u64>,
    /// The table of tracked connections.
    pub tracked: Option<Tracked>,
}
