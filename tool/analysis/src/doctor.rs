//! What on a host would spoil a measurement: facts of it, twice, a moment apart, and what they mean.

mod checks;
mod facts;
mod observers;
mod rules;
mod setting;

pub use checks::{Check, Unmade};
pub use facts::{
    Facts, HostProcess, LimitedMemory, LinkOffloads, ListenQueue, Processor, ServerNetwork, Sockets, Subject,
    SubjectFacts,
};
pub use observers::Known;
pub use setting::{Change, PACKET_QUEUE, Setting, Undo, left_alone, remedies};

use schemars::JsonSchema;
use serde::Serialize;

use self::facts::Process;
use crate::counters::Tracked;
use crate::run::HostName;

/// Something that would spoil a measurement, or may.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// Processes of a tier may open few files, and a connection is one.
    OpenFiles {
        /// The one whose limit is lowest.
        #[serde(serialize_with = "Subject::plainly")]
        #[schemars(with = "Option<Process>")]
        of: Subject,
        /// How many of the tier may open few.
        processes: u32,
        /// The lowest limit.
        limit: u64,
    },
    /// There are few local ports.
    FewPorts {
        /// How many.
        ports: u64,
    },
    /// Many local ports are held by connections that have ended.
    TimeWait {
        /// How many.
        held: u64,
        /// How many ports there are.
        ports: u64,
        /// `net.ipv4.tcp_tw_reuse`: 0 off, 1 on, 2 on loopback alone.
        reuse: Option<u64>,
    },
    /// Listen queues are short.
    ListenQueue {
        /// `net.core.somaxconn`.
        limit: u64,
    },
    /// A listen queue of the server is shorter than the limit on all of them.
    Backlog {
        /// The name of the process that listens.
        name: String,
        /// Its number.
        pid: u32,
        /// The port.
        port: u16,
        /// How many connections may wait.
        most: u64,
    },
    /// The queue of handshakes is short.
    SynQueue {
        /// `net.ipv4.tcp_max_syn_backlog`.
        limit: u64,
    },
    /// Packets that arrive were dropped from a full queue.
    PacketsDropped {
        /// How many a second.
        per_s: f64,
        /// `net.core.netdev_max_backlog`.
        limit: Option<u64>,
    },
    /// None was dropped meanwhile, but a notable share of all that have arrived since the host started.
    DroppedSinceStart {
        /// How many.
        packets: u64,
        /// `net.core.netdev_max_backlog`.
        limit: Option<u64>,
    },
    /// The table of tracked connections is nearly full.
    Tracking {
        /// Its use.
        table: Tracked,
    },
    /// Processors run slower when there is little to do.
    Governor {
        /// The governor.
        name: String,
        /// How many processors have it.
        processors: u32,
    },
    /// Processors that are idle take long to wake.
    IdleStates {
        /// How long from the deepest state, microseconds.
        wake_us: u64,
        /// How many processors may enter it.
        processors: u32,
    },
    /// Generator and server may run on the same processors.
    SharedProcessors {
        /// How many they share.
        shared: u32,
        /// How many the server may use.
        servers: u32,
    },
    /// Processors of the generator and of the server are halves of one core.
    SharedCores {
        /// One of the generator's, and its sibling of the server's.
        pair: [u32; 2],
    },
    /// The server may run on several nodes of memory.
    Nodes {
        /// How many.
        nodes: u32,
    },
    /// Generator and server, on processors of their own, use one node of memory, though there are several.
    SharedNode {
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// Generator and server are on different nodes of memory.
    NodesApart {
        /// The first node of the generator.
        generator: u32,
        /// The node of the server.
        server: u32,
    },
    /// The hypervisor gave this host's processors to others.
    Steal {
        /// Share of their time, 0 to 1.
        share: f64,
    },
    /// Cgroups limit the processors of a tier's processes.
    Quota {
        /// The one whose limit is lowest.
        #[serde(serialize_with = "Subject::plainly")]
        #[schemars(with = "Option<Process>")]
        of: Subject,
        /// How many of the tier are under a limit.
        processes: u32,
        /// The lowest limit, in processors.
        cores: f64,
    },
    /// Cgroups of a tier's processes have nearly used up the memory that they may use.
    Memory {
        /// The one that has the smallest share left.
        #[serde(serialize_with = "Subject::plainly")]
        #[schemars(with = "Option<Process>")]
        of: Subject,
        /// How many of the tier have little left.
        processes: u32,
        /// What the cgroup of that one may use, and what it uses.
        memory: LimitedMemory,
    },
    /// Memory was read back from swap.
    Swapping {
        /// Pages a second.
        pages_per_s: f64,
    },
    /// The kernel gives large pages to everybody, and moves memory to make them.
    HugePages,
    /// A process that is no part of the measurement is at work.
    Neighbour {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
        /// Processors in use.
        cores: f64,
    },
    /// Processes are at work that are in no list of them, because they end before the next look or may not be seen.
    ShortLived {
        /// Processors in use, at least.
        cores: f64,
    },
    /// Reading the clock takes a system call.
    Clock {
        /// The source in use.
        source: String,
        /// A faster one that is there.
        better: Option<String>,
    },
    /// A link is slow, or takes turns.
    Link {
        /// Its name.
        name: String,
        /// Bits a second.
        bits_per_s: f64,
        /// Whether both directions work at once.
        full_duplex: bool,
    },
    /// The processors do work on packets that a link could take off them.
    Offloads {
        /// The name of the link.
        link: String,
        /// Whether they cut large pieces into packets: TSO is off.
        segmentation: bool,
        /// Whether they handle each packet that arrives by itself: GRO is off.
        receive: bool,
    },
    /// This nstar was built without optimisation.
    DebugBuild,
    /// A server seems to be built without optimisation.
    DebugServer {
        /// Its name.
        name: String,
        /// The number of one of its processes.
        pid: u32,
        /// How many of its processes are.
        processes: u32,
    },
    /// A fault of the server's network namespace, which is not that of whoever asks.
    Within {
        /// The name of a process in it.
        name: String,
        /// The number of that process.
        pid: u32,
        /// The fault.
        fault: Box<Fault>,
    },
}

/// How sure it is that a fault changes the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// It does.
    Sure,
    /// It does for servers or loads of some kind, which are named with it.
    Depends,
    /// It may.
    Possible,
}

impl Fault {
    /// How sure it is that it changes the figures.
    pub fn certainty(&self) -> Certainty {
        match self {
            Self::PacketsDropped { .. }
            | Self::SharedProcessors { .. }
            | Self::Steal { .. }
            | Self::Swapping { .. }
            | Self::Neighbour { .. }
            | Self::DebugBuild => Certainty::Sure,
            // The kernel gives the ports again after a second.
            Self::TimeWait { reuse: Some(1), .. }
            | Self::DroppedSinceStart { .. }
            // They may be the server's own, where its processes may not be listed.
            | Self::ShortLived { .. }
            | Self::Governor { .. }
            | Self::IdleStates { .. }
            | Self::Nodes { .. }
            | Self::SharedNode { .. }
            | Self::NodesApart { .. }
            | Self::Offloads { .. }
            | Self::HugePages
            | Self::DebugServer { .. } => Certainty::Possible,
            Self::OpenFiles { .. }
            | Self::FewPorts { .. }
            | Self::TimeWait { .. }
            | Self::ListenQueue { .. }
            | Self::Backlog { .. }
            | Self::SynQueue { .. }
            | Self::Tracking { .. }
            | Self::SharedCores { .. }
            | Self::Quota { .. }
            | Self::Memory { .. }
            | Self::Clock { .. }
            | Self::Link { .. } => Certainty::Depends,
            Self::Within { fault, .. } => fault.certainty(),
        }
    }
}

/// The faults that are worth a word before a sweep, two at most: those that change the figures of some loads and servers, and of which
/// the run itself would not warn.
pub fn worth_a_word(faults: &[Fault]) -> impl Iterator<Item = &Fault> {
    const MOST: usize = 2;
    let is_told_by_the_run = |fault: &&Fault| {
        matches!(
            fault,
            Fault::DebugBuild | Fault::SharedProcessors { .. } | Fault::Quota { .. } | Fault::Backlog { .. }
        )
    };
    let weighs = |fault: &&Fault| fault.certainty() != Certainty::Possible;
    faults.iter().filter(weighs).filter(move |fault| !is_told_by_the_run(fault)).take(MOST)
}

/// What was found on a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Examined {
    /// The host.
    pub on: HostName,
    /// The faults, surest first.
    pub faults: Vec<Fault>,
    /// The facts that show them, as they are now.
    pub facts: Facts,
}

impl Examined {
    /// What two looks at a host show, of which the first is before the second.
    #[must_use]
    pub fn by(on: HostName, first: &Facts, second: Facts) -> Self {
        Self { on, faults: faults(first, &second), facts: second }
    }

    /// The same where all that the load calls is reached over loopback: there `net.ipv4.tcp_tw_reuse` 2, which is what kernels
    /// begin with, gives ports again as 1 does.
    #[must_use]
    pub fn over_loopback(mut self) -> Self {
        self.faults.retain(|fault| !matches!(fault, Fault::TimeWait { reuse: Some(2), .. }));
        self
    }
}

/// Everything that the facts show, surest first. The first look is before the second.
pub fn faults(first: &Facts, second: &Facts) -> Vec<Fault> {
    let mut found = rules::all(first, second);
    found.sort_by_key(Fault::certainty);
    found
}

#[cfg(test)]
mod tests;
