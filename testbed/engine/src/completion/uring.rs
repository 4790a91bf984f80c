//! `uring`: loops over io_uring(7). The kernel makes the transfers and reports when they are done.
//!
//! Each loop has a ring of its own, to which only its thread submits (SINGLE_ISSUER) and which runs the kernel's part of
//! completions when the loop asks for them, not in between (DEFER_TASKRUN). One multishot accept, and one multishot
//! receive for each connection, stay armed. Received bytes come in buffers that the loop provides for all of its
//! connections, so an idle connection holds none.
//!
//! # Who owns a buffer
//!
//! **Whatever the kernel may write to or read from belongs to the loop, never to a task, until the last completion says
//! that the kernel no longer uses it.** Tasks may end at any time, by a deadline, a panic or the end of the server, and
//! leave operations behind. Hence:
//!
//! - Bytes that the ring sends move into the socket's [`source::Source`], and back to the connection afterwards.
//! - Buffers to receive into lie in a [`buffer_ring::BufferRing`]. A full one moves out, and another takes its place.
//! - A source is removed only when no operation of its socket is in flight: [`reactor::Reactor::abandon`] cancels them,
//!   and [`reactor::Reactor::complete`] handles the end of the last. Its descriptor is closed then and not before, so
//!   that no operation meets another socket under the same number.
//! - A loop that ends waits for all of them, and leaks memory rather than free what the kernel still uses.
//!
//! # What goes through the ring, and what does not
//!
//! Whatever may have to wait goes through the ring: connections, input, and output that the socket does not take at
//! once. Everything else does not, because that measured better. A response goes out by send(2) at once, which saves a
//! second pass through ring and task (5 % of the work of a 1 KB request), and files go out by sendfile(2): the ring would
//! hand a splice to a kernel thread, and reading into memory would copy every byte once more.

mod buffer_ring;
mod connection;
mod event_loop;
mod operation;
mod reactor;
mod ring;
mod source;
#[cfg(test)]
mod tests;
mod unavailable;

use self::event_loop::EventLoop;
use crate::{
    error::EngineError,
    implementation::{Description, Implementation},
    loops,
    options::Options,
    server::Server,
    service::Factory,
};

/// The model `uring`.
pub(crate) struct Uring;

impl Implementation for Uring {
    const DESCRIPTION: Description =
        Description { has_loops: true, ..Description::named(unavailable::MODEL) };

    fn start<F: Factory>(options: &Options, factory: F) -> Result<Server, EngineError> {
        loops::start::<EventLoop<F>, F>(options, factory)
    }
}
