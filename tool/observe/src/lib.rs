//! Watches the servers: /proc, PSI, cgroups, sockets, and who talks to whom.
//!
//! [`find`] names the processes behind an address: those that listen on it and, from their sockets,
//! the tiers behind them. A [`Watcher`] then looks at them, at this process (the generator) and at the
//! host once a period, and keeps what the kernel counted as [`analysis::counters::Counters`]: raw,
//! cumulative, stamped with the monotonic clock. Rates are derived elsewhere.
//!
//! ```no_run
//! # fn main() -> Result<(), observe::ObserveError> {
//! use std::time::Duration;
//! use observe::{Roots, Watcher, find, monotonic_us};
//!
//! let topology = find(([127, 0, 0, 1], 8080).into())?;
//! let watcher = Watcher::start(Roots::default(), topology, Duration::from_millis(250))?;
//! let start_us = monotonic_us();
//! // ... put it under load ...
//! let looks = watcher.between(start_us, monotonic_us());
//! # Ok(())
//! # }
//! ```
//!
//! # What may be seen
//!
//! Root sees everything. Another user sees processes of their own in full, and of others' CPU time, states
//! and memory; but not which sockets those hold, so that [`find`] says
//! [`ObserveError::PermissionDenied`]. What may not be read is absent, never zero, wherever
//! [`analysis::counters`] has a way to say so.
//!
//! # Where figures come from
//!
//! - CPU time of a process: its CPU clock (`clock_getcpuclockid(3)`), nanoseconds with ended threads
//!   included, split into user and kernel mode by the ticks of `/proc/PID/stat`. Those alone are rounded to
//!   ten milliseconds; the threads' schedstat alone forgets ended threads.
//! - Run-queue wait: schedstat of each thread, kept when the thread ends.
//! - CPU time of children too short-lived to be looked at: their parent's account of children it waited
//!   for. A parent that ignores `SIGCHLD` has none: that time is in the cgroup's and the host's figures only.
//! - Listen backlogs, peers of unix sockets, shapers and routes: netlink.
//!
//! Linux only. All files are reached through [`Roots`], so that a test can lay out its own.

mod clock;
mod error;
mod host;
mod look;
mod netlink;
mod proc;
mod reread;
mod roots;
mod topology;
mod watcher;

pub use clock::monotonic_us;
pub use error::ObserveError;
pub use host::host;
pub use roots::Roots;
pub use topology::{Topology, find, find_all, find_in};
pub use watcher::Watcher;

/// A process number.
pub type Pid = u32;
