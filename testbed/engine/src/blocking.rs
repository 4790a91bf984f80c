//! The blocking family: a read waits in the kernel, inside the future's poll, so the future is never pending on I/O.

pub(crate) mod accept_loop;
pub(crate) mod connection;
pub(crate) mod pool;
mod queue;
mod refusals;
pub(crate) mod registry;
pub(crate) mod threads;
