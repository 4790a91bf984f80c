//! Models whose services run in processes of their own.
//!
//! A front process is forked from the caller's when the server starts. It accepts, or lets others accept, forks the
//! processes that serve, and reaps them; it makes no service and starts no thread.
//!
//! # Why forking is safe here
//!
//! A fork copies the calling thread only: a lock that another thread holds at that moment stays locked in the copy for
//! ever. The front has one thread, so nothing is locked when it forks. The front itself is forked from the caller:
//! where that has one thread too (as `nstar serve` does) the same holds; where it has more, the C library still keeps
//! the allocator whole, but a lock of the caller's own may be lost, which is told as a warning.
//!
//! # Who ends whom
//!
//! - Drain and abort are written into memory that all share ([`Control`](crate::control::Control)); the front is
//!   woken by its notifier, and signals its children: SIGTERM to end when idle, SIGKILL at the deadline.
//! - The front holds one end of a socket pair whose other end is the caller's: when that closes, the caller is gone,
//!   and the front kills its children and ends.
//! - The kernel kills the children of a front that died (PR_SET_PDEATHSIG).
//! - A child's end interrupts the front (SIGCHLD), which reaps it and gives back what it held.

mod fork;
mod front;
mod household;
mod inherited;
pub(crate) mod signals;

pub(crate) use fork::{Ended, become_child, fork};
pub(crate) use front::{Front, start};
pub(crate) use household::Household;
