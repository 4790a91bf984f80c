//! `uring`: loops over io_uring(7). The kernel does the transfers and tells when they are done.
//!
//! Each loop has a ring of its own, to which only its thread submits (SINGLE_ISSUER), and which runs the
//! kernel's part of completions when the loop asks for them, not in between (DEFER_TASKRUN). One multishot
//! accept and one multishot receive for each connection stay armed; received bytes come in buffers that
//! the loop provides for all of its connections, so an idle connection holds none.
//!
//! # Who owns a buffer
//!
//! **What the kernel may write to or read from belongs to the loop, never to a task, until the last
//! completion says that the kernel has let go of it.** Tasks come and go at any time, by a deadline, a panic
//! or the end of the server, and leave operations behind them. Hence:
//!
//! - Bytes the ring is to send move into the socket's [`source::Source`] and back to the connection afterwards.
//! - Buffers to receive into lie in a [`shelf::Shelf`]; a full one moves out, and another takes its place.
//! - A source is removed only when no operation of its socket is in flight ([`reactor::Reactor::abandon`]
//!   cancels them, [`reactor::Reactor::complete`] sees the last one end); its descriptor is closed
//!   then and not before, so that no operation meets another socket under the same number.
//! - A loop that ends waits for all of it, and would rather leak than free what the kernel still holds.
//!
//! # What goes through the ring, and what does not
//!
//! Whatever may have to wait goes through the ring: connections, input, and output that the socket does not
//! take at once. What need not wait does not, because that measured better: a response is sent by send(2) at
//! once, which spares a second pass through the ring and the task (5 % of the work of a 1 KB request), and files
//! go out by sendfile(2). A splice of the ring would be handed to a kernel thread, and reading into memory
//! would copy every byte once more.

mod connection;
mod denial;
mod reactor;
mod ring;
mod shelf;
mod source;
#[cfg(test)]
mod tests;
mod worker;

use self::worker::Worker;
use crate::{
    error::EngineError,
    loops,
    server::{Options, Server},
    service::Factory,
};

/// Starts the loops, each with a ring of its own.
pub(crate) fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
    loops::start::<Worker<F>, F>(options, factory)
}
