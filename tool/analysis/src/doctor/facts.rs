//! What a host says of itself at one instant.

use crate::counters::{Cpu, Tracked};

/// Facts of a host. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Processes whose limits matter: this one, and those of the server.
    pub subjects: Vec<(Subject, SubjectFacts)>,
    /// Limits on connections.
    pub sockets: Sockets,
    /// Links that are up, but the loopback: name, bits a second, whether both directions work at once.
    pub links: Vec<(String, f64, bool)>,
}

/// Whose a limit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Whoever runs nstar from here makes the load.
    Generator,
    /// A process of the server, or of a tier behind it.
    Server {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
    },
}

/// Limits of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubjectFacts {
    /// Files that it may open; of the generator the hard limit, to which it raises the soft one. Absent where there is no limit.
    pub open_files: Option<u64>,
    /// Processors that it may run on.
    pub allowed: Vec<u32>,
    /// Processors that its cgroup lets it use.
    pub quota_cores: Option<f64>,
}

/// The settings of a processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// Limits on connections, of the network namespace of whoever asks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sockets {
    /// `net.core.somaxconn`.
    pub listen_queue: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_queue: Option<u64>,
    /// `net.core.netdev_max_backlog`.
    pub packet_queue: Option<u64>,
    /// Packets dropped from it so far.
    pub packets_dropped: u64,
    /// Local ports that there are.
    pub ports: Option<u64>,
    /// Connections that have ended and hold their port.
    pub time_wait: u64,
    /// `net.ipv4.tcp_tw_reuse`.
    pub reuse: Option<u64>,
    /// The table of tracked connections.
    pub tracked: Option<Tracked>,
}
