//! The models whose services run in processes of their own. Within a process they belong to the blocking family.
//!
//! A parent process is forked from the caller's when the server starts. It accepts or lets others accept, forks the
//! processes that serve, and reaps them. It makes no service and starts no thread.
//!
//! # Why forking is safe here
//!
//! A fork copies the calling thread only: a lock that another thread holds at that moment stays locked in the copy for
//! ever. The parent has one thread, so nothing is locked when it forks. The parent itself is forked from the caller. If
//! that has one thread too, as `nstar serve` does, the same holds. If it has more, the C library still keeps the
//! allocator intact, but a lock of the caller's own may be lost; the log warns of that.
//!
//! # Which process ends which
//!
//! - Drain and abort are written into memory that all processes share ([`Control`](crate::control::Control)). The parent
//!   is woken by its notifier and signals its children: SIGTERM to end when idle, SIGKILL at the deadline.
//! - The parent holds one end of a socket pair, the caller the other. When the caller's end closes, the caller is gone,
//!   and the parent kills its children and exits.
//! - The kernel kills the children of a parent that died (PR_SET_PDEATHSIG).
//! - The end of a child interrupts the parent (SIGCHLD), which reaps it and releases what it held.

mod children;
mod fork;
mod parent;
pub(crate) mod prefork;
pub(crate) mod processes;
