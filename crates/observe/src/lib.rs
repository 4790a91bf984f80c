//! Watches the servers: /proc, PSI, cgroups, sockets, and who talks to whom.
//!
//! [`find`] names the processes behind an address: those that listen on it and, from their sockets,
//! the tiers behind them. A [`Watcher`] then looks at them, at this process (the generator) and at the
//! host once a period, and keeps what the kernel counted as [`model::counters::Counters`]: raw,
//! cumulative, stamped with the monotonic clock. Rates are derived elsewhere.
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
pub use topology::{Topology, find, find_in};
pub use watcher::Watcher;

/// A process number.
pub type Pid = u32;
