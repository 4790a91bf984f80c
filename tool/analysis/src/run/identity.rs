//! What resources are and who holds them, as values that programs can compare.

use std::{fmt, ops::Deref};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{IoRate, Role, ServerAddress};

/// Words for people, beside typed data in the run file.
///
/// They are empty in memory: `report` puts them in when it writes a file. When it reads one it takes them out, and turns
/// them into [`Identity::Named`] or a finding that is `Told` where the file holds nothing typed beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Words(String);

impl Words {
    /// The words; empty where there are none.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the words out; empty where there are none.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Words {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Words {
    fn from(words: String) -> Self {
        Self(words)
    }
}

/// Kinds of things that stop a server.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// All the processors that the holder may use.
    Cpu,
    /// One thread at the speed of one core, while others are idle.
    SingleThread,
    /// A cgroup's CPU quota.
    CpuQuota,
    /// A block device, or a cgroup's limit on one.
    Disk,
    /// A link, or a shaper on it.
    Network,
    /// Mutual exclusion inside the server or its database.
    Lock,
    /// A fixed number of workers, all of them waiting.
    WorkerPool,
    /// The listen queue.
    AcceptQueue,
    /// The limit on open descriptors.
    FileDescriptors,
    /// Memory.
    Memory,
    /// A fixed number of connections to the tier behind, all of them in use.
    ConnectionPool,
    /// A tier behind the server that nobody observes.
    Upstream,
    /// A collector of garbage that stops everything else in its process.
    GarbageCollection,
    /// A limit on requests per second.
    RateLimit,
    /// The soft interrupts of one processor: the kernel's work on packets that arrive.
    Softirq,
    /// The load generator itself.
    Generator,
    /// Never saturated.
    None,
    /// Saturated, and no evidence says why; or a kind of a newer version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The name of the host that something is on, where several hosts were observed; `None`: the generator's own host.
pub type HostName = Option<String>;

/// Processes of one name and role, taken together: all workers of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Processes {
    /// Their role in the measurement.
    pub role: Role,
    /// The kernel's name of them.
    pub name: String,
    /// The process number, where one process did the work of the whole sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Most of them at any one step.
    pub processes: u32,
    /// The host, or the container, that they run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: HostName,
}

impl Processes {
    /// Whether both are the same tier; the numbers of its processes may have changed.
    pub fn are(&self, other: &Self) -> bool {
        (self.role, &self.name, &self.on) == (other.role, &other.name, &other.on)
    }
}

/// A resource, or whoever holds one. It has the same value at every step of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Identity {
    /// A group of processes; as a resource, the processors that they may use.
    Processes(Processes),
    /// Their busiest thread, where they may use more than one processor.
    Thread(Processes),
    /// The CPU quota that they are under.
    Quota(Processes),
    /// The limit of their cgroup on a block device.
    IoLimit(DiskLimit),
    /// A block device.
    Disk {
        /// Kernel name, such as `vda`.
        name: String,
        /// Its host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
    },
    /// A network interface.
    Link {
        /// Kernel name, such as `eth0`.
        name: String,
        /// Its host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
    },
    /// One processor, and the soft interrupts that it handles.
    Processor {
        /// Its number.
        number: u32,
        /// Its host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
    },
    /// All processors of a host.
    Host {
        /// The host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
    },
    /// The load generator.
    Generator,
    /// The locks of a database.
    DatabaseLocks(Database),
    /// A listen queue.
    ListenQueue {
        /// The port that it belongs to.
        port: u16,
    },
    /// A tier that is called and not observed.
    Upstream {
        /// Its address.
        address: ServerAddress,
        /// The processes that call it.
        of: Processes,
    },
    /// Processes of the tiers' host that are not part of the test.
    OtherProcesses {
        /// The host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
    },
    /// Known only by a name for people, as in run files from before identities were typed.
    Named {
        /// The name.
        name: String,
    },
}

/// A limit of a cgroup on a block device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct DiskLimit {
    /// The processes under it.
    pub of: Processes,
    /// The kind of use that is limited.
    pub rate: IoRate,
    /// Kernel name of the device.
    pub device: String,
}

/// A database whose locks were watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "known_by", rename_all = "kebab-case")]
pub enum Database {
    /// Its processes were seen behind the server.
    Processes(Processes),
    /// It was only asked.
    Address {
        /// Its name in reports, without credentials.
        name: String,
    },
}

impl Identity {
    /// The kind of resource.
    pub fn kind(&self) -> ResourceKind {
        match self {
            Self::Processes(_) | Self::Host { .. } | Self::OtherProcesses { .. } => ResourceKind::Cpu,
            Self::Thread(_) => ResourceKind::SingleThread,
            Self::Quota(_) => ResourceKind::CpuQuota,
            Self::Disk { .. } | Self::IoLimit(_) => ResourceKind::Disk,
            Self::Link { .. } => ResourceKind::Network,
            Self::Processor { .. } => ResourceKind::Softirq,
            Self::Generator => ResourceKind::Generator,
            Self::DatabaseLocks(_) => ResourceKind::Lock,
            Self::ListenQueue { .. } => ResourceKind::AcceptQueue,
            Self::Upstream { .. } => ResourceKind::Upstream,
            Self::Named { .. } => ResourceKind::Unknown,
        }
    }

    /// The processes that hold it, where it is theirs.
    pub fn processes(&self) -> Option<&Processes> {
        match self {
            Self::Processes(of) | Self::Thread(of) | Self::Quota(of) => Some(of),
            Self::IoLimit(limit) => Some(&limit.of),
            Self::DatabaseLocks(Database::Processes(of)) => Some(of),
            _ => None,
        }
    }

    /// An identity of which only a name for people is known; nothing for an empty name.
    pub fn named(name: impl Into<String>) -> Option<Self> {
        Some(name.into()).filter(|name| !name.is_empty()).map(|name| Self::Named { name })
    }
}

/// The unit of a resource's use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Unit {
    /// Processors' worth of time.
    Cores,
    /// Threads' worth of time.
    Threads,
    /// Block devices.
    Devices,
    /// Bits per second.
    BitsPerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Read requests per second.
    ReadsPerSecond,
    /// Write requests per second.
    WritesPerSecond,
    /// Sessions of a database.
    Sessions,
    /// A unit that this version does not know.
    Other(String),
}

impl Unit {
    const KNOWN: [Self; 8] = [
        Self::Cores,
        Self::Threads,
        Self::Devices,
        Self::BitsPerSecond,
        Self::BytesPerSecond,
        Self::ReadsPerSecond,
        Self::WritesPerSecond,
        Self::Sessions,
    ];

    /// The unit as the run file writes it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cores => "cores",
            Self::Threads => "threads",
            Self::Devices => "devices",
            Self::BitsPerSecond => "bits/s",
            Self::BytesPerSecond => "bytes/s",
            Self::ReadsPerSecond => "reads/s",
            Self::WritesPerSecond => "writes/s",
            Self::Sessions => "sessions",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for Unit {
    fn from(name: String) -> Self {
        let known = Self::KNOWN.into_iter().find(|unit| unit.as_str() == name);
        known.unwrap_or(Self::Other(name))
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.as_str().to_owned()
    }
}
