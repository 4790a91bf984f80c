//! The models whose services run in processes of their own. Within a process they belong to the blocking family.
//!
//! A front process is forked from the caller's when the server starts. It accepts or lets others accept, forks the
//! processes that serve, and reaps them. It makes no service and starts no thread.
//!
//! # Why forking is safe here
//!
//! A fork copies the calling thread only: a lock that another thread holds at that moment stays locked in the copy for
//! ever. The front has one thread, so nothing is locked when it forks. The front itself is forked from the caller. If
//! that has one thread too, as `nstar serve` does, the same holds. If it has more, the C library still keeps the
//! allocator intact, but a lock of the caller's own may be lost; the log warns of that.
//!
//! # Which process ends which
//!
//! - Drain and abort are written into memory that all processes share ([`Control`](crate::control::Control)). The front
//!   is woken by its notifier and signals its children: SIGTERM to end when idle, SIGKILL at the deadline.
//! - The front holds one end of a socket pair, the caller the other. When the caller's end closes, the caller is gone,
//!   and the front kills its children and exits.
//! - The kernel kills the children of a front that died (PR_SET_PDEATHSIG).
//! - The end of a child interrupts the front (SIGCHLD), which reaps it and releases what it held.

mod children;
mod fork;
mod front;
pub(crate) mod prefork;
pub(crate) mod processes;
