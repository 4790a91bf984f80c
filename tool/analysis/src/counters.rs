//! What the operating system counted: raw, cumulative, as read. Rates are derived elsewhere.
//!
//! Times are microseconds unless the name says otherwise. Counters only grow, except across a
//! restart of what they count; gauges say so.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sample of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// When, microseconds of the monotonic clock shared with [`crate::ticks::Tick`].
    pub at_us: u64,
    /// One entry per online processor, by number.
    pub cpus: Vec<Cpu>,
    /// The processes of interest: the generator, the server, its downstream tiers.
    pub processes: Vec<Process>,
    /// Whole block devices (no partitions).
    pub disks: Vec<Disk>,
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
    /// Listening sockets of the processes of interest.
    pub listeners: Vec<Listener>,
    /// TCP counters of the server's network namespace.
    pub tcp: Tcp,
    /// The same of the generator's network namespace, which may be the same one.
    pub generator_tcp: Tcp,
    /// Connections to the server and between the tiers behind it; `None` where this sample did not look at them.
    pub hops: Option<Vec<Hop>>,
    /// How many further addresses had connections, fewer each than those of `hops`: there were too many to tell of all. 0 where
    /// this sample did not look at them.
    #[serde(default)]
    pub hops_left_out: u64,
    /// Pressure stall information of the host.
    pub pressure: Pressure,
    /// Memory of the host.
    pub memory: Memory,
    /// Limits on the memory of the server and of the tiers behind it; `None` where this sample did not look at them, or could not
    /// read any.
    pub memory_limits: Option<Vec<MemoryLimit>>,
    /// What limits connections in the generator's network namespace, and in the server's if that is another; `None` where
    /// this sample did not look at it.
    pub connection_limits: Option<Vec<ConnectionLimits>>,
}

/// A sample of a database server's own counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseSample {
    /// When, microseconds of the monotonic clock shared with [`crate::ticks::Tick`].
    pub at_us: u64,
    /// Transactions that wait for a lock which another transaction holds (gauge).
    pub waiting: u64,
    /// Sessions that run a statement, waiting ones included, or hold a transaction open, where the server reports that
    /// (gauge). The session that asks is not counted.
    pub at_work: u64,
    /// Time that waits for row locks took, summed over those that have ended; `None` where the server does not count it.
    pub waited_us: Option<u64>,
}

/// Time one processor spent in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The processor's number.
    pub number: u32,
    /// User mode, `nice` included.
    pub user_us: u64,
    /// Kernel mode, interrupts included.
    pub system_us: u64,
    /// Idle, nothing waiting for a disk.
    pub idle_us: u64,
    /// Idle while a task waited for a disk.
    pub iowait_us: u64,
    /// Taken by the hypervisor.
    pub steal_us: u64,
    /// Soft interrupts, part of kernel mode: what the kernel does with packets that arrive, timers, blocks.
    pub softirq_us: u64,
    /// Packets dropped because the processor's queue of them was full.
    pub packets_dropped: u64,
    /// Times that a soft interrupt of the network used up its time with packets left to handle.
    pub squeezes: u64,
}

/// The role of a process in the measurement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The load generator itself.
    Generator,
    /// Serves the target's port.
    #[default]
    Server,
    /// The server, or another downstream process, talks to it.
    Downstream,
}

/// One process. Command lines are not kept: they may hold secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Start time in clock ticks after boot; with `pid` it names a process for good.
    pub started_ticks: u64,
    /// The kernel's short name of it.
    pub name: String,
    /// The file that it runs, without the folders: `python3.11` for a script that has a name of its own. Empty where that may
    /// not be read.
    pub program: String,
    /// Its role in the measurement.
    pub role: Role,
    /// CPU time in user mode.
    pub user_us: u64,
    /// CPU time in kernel mode.
    pub system_us: u64,
    /// CPU time, user and kernel, of children that have ended and were waited for. Children that were
    /// sampled while they lived count here only with the time nobody saw.
    pub reaped_children_us: u64,
    /// Time its threads were runnable but waited for a processor.
    pub run_queue_wait_us: u64,
    /// Its live threads (all of them up to a limit the observer states; the busiest ones beyond it).
    pub threads: Vec<Thread>,
    /// How many threads it has (gauge).
    pub thread_count: u32,
    /// How many processors it may run on (gauge).
    pub allowed_cpus: u32,
    /// The numbers of those processors, ascending (gauge); empty where they are not known.
    /// Numbers tell a server pinned beside its generator from one that shares its processor.
    pub allowed_cpu_numbers: Vec<u32>,
    /// Open descriptors (gauge); `None` where it may not be read.
    pub open_files: Option<u64>,
    /// Soft limit on open descriptors (gauge).
    pub open_files_limit: Option<u64>,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Bytes read from block devices; `None` where it may not be read.
    pub disk_read_bytes: Option<u64>,
    /// Bytes written towards block devices.
    pub disk_written_bytes: Option<u64>,
    /// Resident memory (gauge).
    pub resident_bytes: u64,
    /// The tightest CPU limit of its cgroup and those around it.
    pub cpu_quota: Option<CpuQuota>,
    /// Limits of its cgroups on block devices; empty if there are none.
    pub io_limits: Vec<IoLimit>,
    /// The container that it runs in, by the path of its cgroup.
    pub container: Option<Container>,
    /// The service of the init system that it runs in, such as `nginx.service`; `None` in a container.
    pub unit: Option<String>,
}

/// A container, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// What runs it, such as `docker` or `containerd`; empty where that is not known.
    pub engine: String,
    /// The first 12 digits of its identifier; empty where it is known by its name alone.
    pub id: String,
    /// The name that people gave it; absent where that may not be read.
    pub name: Option<String>,
    /// The pod around it: its name, or its identifier where that may not be read.
    pub pod: Option<String>,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Thread number.
    pub tid: u32,
    /// The kernel's short name of it.
    pub name: String,
    /// CPU time, user and kernel.
    pub cpu_us: u64,
    /// Time runnable but waiting for a processor.
    pub run_queue_wait_us: u64,
    /// Its present state (gauge).
    pub state: ThreadState,
    /// The address of the futex that it waits for (gauge); `None` where it waits for none, or that may not be read.
    pub futex: Option<u64>,
}

/// The state of a thread when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ThreadState {
    /// On a processor or waiting for one.
    Running,
    /// Asleep, waiting for something that is not told apart.
    #[default]
    Sleeping,
    /// Asleep in a futex: a lock or a condition.
    Futex,
    /// Uninterruptible: almost always a disk.
    Disk,
    /// Stopped, traced or dead.
    Other,
}

/// Which futexes the threads of the server and of the tiers behind it waited for at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLook {
    /// When, microseconds of the monotonic clock shared with [`crate::ticks::Tick`].
    pub at_us: u64,
    /// The processes with several threads, as far as they were looked at and their futexes may be read.
    pub processes: Vec<ProcessLook>,
}

/// What the threads of one process waited for at one moment, where the system call that they are in tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLook {
    /// Its role in the measurement.
    pub role: Role,
    /// The kernel's short name of it.
    pub name: String,
    /// How many threads it has.
    pub threads: u32,
    /// How many of them were looked at, spread evenly over all.
    pub looked_at: u32,
    /// The address of the futex, for each of those that waited for one.
    pub futexes: Vec<u64>,
    /// How many of them slept until a time.
    pub asleep: u32,
}

/// A cgroup CPU quota (v1 or v2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The cgroup's path below the mount point.
    pub cgroup: String,
    /// The limit, in cores.
    pub cores: f64,
    /// Enforcement periods so far.
    pub periods: u64,
    /// Periods in which the group was stopped.
    pub throttled_periods: u64,
    /// Time the group's runnable threads were kept stopped, summed over processors.
    pub throttled_us: u64,
    /// CPU time the whole group used; 0 where that is not counted.
    pub usage_us: u64,
}

/// A limit of a cgroup on a block device (v1 or v2), and the use counted against it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimit {
    /// The cgroup's path below the mount point.
    pub cgroup: String,
    /// Kernel name of the device, such as `vda`.
    pub device: String,
    /// The kind of use that is limited.
    pub of: IoRate,
    /// The limit, a second.
    pub per_s: u64,
    /// How much was done so far, by all of the cgroup.
    pub done: u64,
}

/// A limit of a cgroup on memory (v1 or v2), and what was counted against it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// The cgroup's path below the mount point.
    pub cgroup: String,
    /// The watched processes under it, ascending.
    pub pids: Vec<u32>,
    /// The limit.
    pub limit_bytes: u64,
    /// Memory in use, cached files included (gauge).
    pub used_bytes: u64,
    /// Times that it was full, so that something was evicted to make room.
    pub reached: u64,
    /// Processes that the kernel killed to make room.
    pub killed: u64,
    /// Bytes of files that were read again soon after being evicted.
    pub refaulted_bytes: u64,
    /// Bytes that came back from swap.
    pub swapped_in_bytes: u64,
    /// Time in which some task of it waited for memory; `None` where that is not counted, as in version 1.
    pub stalled_us: Option<u64>,
}

/// A kind of use of a block device that can be limited.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum IoRate {
    /// Read requests.
    Reads,
    /// Write requests.
    #[default]
    Writes,
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WrittenBytes,
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Kernel name, such as `vda`.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time spent by reads, queueing included, summed over requests.
    pub read_us: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time spent by writes, queueing included, summed over requests.
    pub write_us: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Time spent by flushes.
    pub flush_us: u64,
    /// Time with at least one request in flight.
    pub busy_us: u64,
    /// Requests integrated over time: divided by elapsed time, the mean number in flight.
    pub weighted_us: u64,
    /// Requests in flight (gauge).
    pub in_flight: u64,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Kernel name, such as `eth0`; followed by the namespace in brackets where it is not our own.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped on the way in or out.
    pub dropped: u64,
    /// Link speed, bits per second; `None` where the driver does not know (loopback, virtual).
    pub link_bits_per_s: Option<u64>,
    /// Rate of a shaping qdisc on the way out (tbf, htb, netem, cake), bits per second.
    pub shaped_bits_per_s: Option<u64>,
    /// Packets a shaping qdisc had to delay.
    pub shaper_overlimits: u64,
    /// Packets a qdisc dropped.
    pub qdisc_dropped: u64,
    /// Bytes waiting in the qdisc (gauge).
    pub qdisc_backlog_bytes: u64,
    /// Whether the load's traffic goes through it.
    pub carries_load: bool,
}

/// A listening TCP socket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The process that owns it.
    pub pid: u32,
    /// Connections waiting to be accepted (gauge), summed where SO_REUSEPORT gives several sockets.
    pub waiting: u64,
    /// How many may wait; 0 where the kernel does not tell.
    pub backlog: u64,
}

/// TCP counters of a network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Connections that this end began to open.
    pub opened: u64,
    /// Segments of handshakes, SYN and SYN/ACK, that were sent again; part of `retransmits`.
    pub handshakes_retried: u64,
    /// Connections that found a listen queue full.
    pub listen_overflows: u64,
    /// Connection attempts dropped by a listener, overflows included.
    pub listen_drops: u64,
}

/// What limits the connections of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionLimits {
    /// Whether it is the server's namespace, and not that of the generator as well.
    pub of_server: bool,
    /// The table of tracked connections; `None` where none are tracked.
    pub tracked: Option<Tracked>,
    /// Closed connections whose ports are still held (gauge).
    pub time_wait: u64,
    /// Local ports for connections to one address (gauge); 0 where that is not known.
    pub local_ports: u64,
    /// The address towards which most of them are in use or held; `None` where that was not counted, because few are in use
    /// altogether.
    pub most_ports: Option<PortsHeld>,
}

/// Local ports in use towards one address, or held after their connections ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsHeld {
    /// The address.
    pub address: SocketAddr,
    /// Whether it is the address that the generator calls.
    pub is_target: bool,
    /// How many (gauge).
    pub ports: u64,
}

/// Connections that a firewall or address translation keeps track of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tracked {
    /// How many there are (gauge).
    pub connections: u64,
    /// How many there may be (gauge); 0 where that is not known.
    pub most: u64,
    /// Packets dropped and connections given up because there was no room for more, or they could not be entered.
    pub refused: u64,
}

/// The address that a connection leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum ServerAddress {
    /// A TCP address.
    Tcp {
        /// Address and port.
        address: SocketAddr,
    },
    /// A unix socket.
    Unix {
        /// Its path, or its abstract name after an `@`.
        path: String,
    },
}

impl ServerAddress {
    /// Whether only processes of the same host can call it by this address.
    #[must_use]
    pub fn is_within_a_host(&self) -> bool {
        match self {
            Self::Tcp { address } => address.ip().is_loopback(),
            Self::Unix { .. } => true,
        }
    }
}

/// The same in formats that do not name what they hold.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ServerAddress")]
enum UntaggedAddress {
    Tcp { address: SocketAddr },
    Unix { path: String },
}

/// How many threads of a process a sample covers at most. If there are more, it covers the busiest, and some of the others
/// in turn.
pub const SAMPLED_THREADS_MAX: usize = 256;

/// The most other ends of the connections to one address that are told.
pub const CLIENTS_MAX: usize = 16;

/// The connections that lead to one address, and the requests on them (gauges).
///
/// A request is outstanding from the moment it is sent until its response is. While nobody has read it, it is `unread`;
/// after that it is `held`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Where they lead.
    #[serde(with = "UntaggedAddress")]
    pub address: ServerAddress,
    /// The process that listens there; `None` where it is on another host or may not be seen.
    pub server: Option<u32>,
    /// The processes that call it, as far as they are watched, ascending.
    pub callers: Vec<u32>,
    /// The other ends of TCP connections, ascending: the first of them, up to [`CLIENTS_MAX`]. By these it is known again on
    /// the host of its callers.
    pub clients: Vec<SocketAddr>,
    /// Connections, those that wait to be accepted among them.
    pub connections: u64,
    /// How many of them were not there when this hop was looked at before; 0 at the first look.
    pub opened: u64,
    /// Connections that wait to be accepted.
    pub unaccepted: u64,
    /// Connections with a request that the server has not read.
    pub unread: u64,
    /// Connections with a request that was read and has no response yet.
    pub held: u64,
    /// Connections of which it is not known whether a request is held: unix sockets tell no more than what is unread.
    pub unclear: u64,
    /// Whether address translation may lead on from here to a server that is not known, and connection tracking, which tells
    /// to which, may not be read where it is called.
    pub translation_unread: bool,
}

impl Hop {
    /// An address to which no connection leads, and of which nothing else is known.
    #[must_use]
    pub fn without_connections(address: ServerAddress) -> Self {
        Self {
            address,
            server: None,
            callers: Vec::new(),
            clients: Vec::new(),
            connections: 0,
            opened: 0,
            unaccepted: 0,
            unread: 0,
            held: 0,
            unclear: 0,
            translation_unread: false,
        }
    }
}

/// Time in which tasks stalled for want of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Some task waited for a processor.
    pub cpu_some_us: u64,
    /// Some task waited for a disk.
    pub io_some_us: u64,
    /// All tasks waited for a disk.
    pub io_full_us: u64,
    /// Some task waited for memory.
    pub memory_some_us: u64,
    /// All tasks waited for memory.
    pub memory_full_us: u64,
}

/// Memory of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Total (gauge).
    pub total_bytes: u64,
    /// Available without swapping (gauge).
    pub available_bytes: u64,
    /// Bytes paged in from block devices: page-cache misses and swap.
    pub paged_in_bytes: u64,
    /// File pages that came back soon after being evicted: the cache is too small.
    pub cache_refaults: u64,
    /// Pages swapped in.
    pub swapped_in_pages: u64,
}
