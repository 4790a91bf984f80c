//! Watches the servers: /proc, PSI, cgroups, sockets, and who talks to whom.
//!
//! [`find`] names the processes behind an address: those that listen on it and, found from their sockets, the tiers
//! behind them. A [`Watcher`] then samples them, this process (the generator) and the host once a period. It keeps what
//! the kernel counted as [`analysis::counters::Counters`]: raw, cumulative, stamped with the monotonic clock. Rates are
//! derived elsewhere.
//!
//! ```no_run
//! # fn main() -> Result<(), observe::ObserveError> {
//! use std::time::Duration;
//! use observe::{KernelPaths, Watcher, find, monotonic_us};
//!
//! let topology = find(([127, 0, 0, 1], 8080).into())?;
//! let watcher = Watcher::start(KernelPaths::default(), topology, Duration::from_millis(250))?;
//! let start_us = monotonic_us();
//! // ... put it under load ...
//! let samples = watcher.between(start_us, monotonic_us());
//! # Ok(())
//! # }
//! ```
//!
//! # What can be seen
//!
//! Root sees everything. Other users see their own processes in full, and of others' the CPU time, states and memory,
//! but not which sockets they hold, so [`find`] returns [`ObserveError::PermissionDenied`]. Whatever may not be read is
//! absent, never zero, wherever [`analysis::counters`] can express that.
//!
//! # Where the figures come from
//!
//! - CPU time of a process: its CPU clock (`clock_getcpuclockid(3)`), in nanoseconds and with ended threads included,
//!   split into user and kernel mode by the ticks of `/proc/PID/stat`. Those alone are rounded to ten milliseconds, and
//!   the threads' schedstat alone loses ended threads.
//! - Run-queue wait: the schedstat of each thread, kept when the thread ends.
//! - CPU time of children too short-lived to be sampled: their parent's account of the children it waited for. A parent
//!   that ignores `SIGCHLD` has none, and the time shows only in the figures of its cgroup and of the host.
//! - Listen backlogs, peers of unix sockets, shapers and routes: netlink.
//! - Requests outstanding between tiers: unread bytes and the times and counts of segments that sock_diag(7) tells of
//!   each connection. The contents of connections are never read.
//!
//! Linux only. All files are found through [`KernelPaths`], so that a test can lay out its own.

mod clock;
mod cpu_limit;
mod error;
mod exchange;
mod facts;
mod host;
mod interface;
mod kernel_files;
mod netlink;
mod off_cpu;
mod proc;
mod profiler;
mod profiling;
mod sampler;
mod settings;
mod speed;
mod stoppable;
mod topology;
mod watcher;

pub use clock::monotonic_us;
pub use cpu_limit::CpuLimit;
pub use error::ObserveError;
pub use facts::{facts, facts_in};
pub use host::host;
pub use interface::{Interface, RootQdisc, TokenBucket};
pub use kernel_files::{KernelPaths, Pid};
pub use profiling::{Profiling, ProgramTables};
pub use settings::{SettingError, Settings};
pub use speed::SpeedProbe;
pub use stoppable::Stoppable;
pub use topology::Topology;
pub use topology::find::{Found, find, find_all, find_for_far_load, find_in};
pub use watcher::{Taken, Thinning, Watcher, covering};
