//! The seam between a service and the concurrency model that runs it.
//!
//! A service is an async function over a connection. The connection owns its buffers, so readiness models (read when
//! the socket is ready) and completion models (hand a buffer over, get it back full) look the same from here, and
//! blocking models can simply block inside a call.

use std::{fs::File, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

/// What an accepted connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Waiting {
    /// More of a request, more of another tier's response, or nothing.
    Within,
    /// The first request.
    First,
    /// Another request, after all earlier ones were answered.
    Next,
}

/// The least that a peer must take of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// So many bytes ..
    pub bytes: u64,
    /// .. within this time each.
    pub within: Duration,
}

/// A byte stream to one peer, with its buffers.
///
/// Every waiting call fails with [`io::ErrorKind::TimedOut`] once the deadline set by
/// [`set_deadline`](Connection::set_deadline) has passed.
pub trait Connection: Sized + 'static {
    /// The peer's address.
    fn peer(&self) -> SocketAddr;

    /// The peer's public key, if a layer above TCP verified one.
    fn proven_key(&self) -> Option<&[u8]> {
        None
    }

    /// Bytes received and not yet consumed.
    fn input(&self) -> &[u8];

    /// Removes the first `count` bytes of [`input`](Connection::input).
    fn consume(&mut self, count: usize);

    /// Waits for more input and appends it. Returns how many bytes came, and 0 once the peer has closed its side.
    ///
    /// Between requests it also returns 0 once the connection should end ([`draining`](Self::draining)), so that idle
    /// connections do not stay open, and once the server is full and this connection has been idle for a second or more,
    /// to make room for a client that waits. A connection is between requests when no input is left, and either none came
    /// yet or something was sent since the last came. Connections to another tier are never ended this way.
    fn fill(&mut self) -> impl Future<Output = io::Result<usize>>;

    /// States what the next [`fill`](Connection::fill) of an accepted connection is for, once no input is left. By
    /// default the connection infers it from what came and what was sent. A layer above that gives the bytes another
    /// meaning, such as encryption, knows better.
    fn awaits(&mut self, what: Waiting);

    /// Limits each [`fill`](Connection::fill) from now on to `bytes`, which is also how many the kernel is asked for.
    /// 0 counts as 1. Without a limit the connection chooses, and asks for more while reads come back full.
    fn read_at_most(&mut self, bytes: usize);

    /// The bytes that the next [`flush`](Connection::flush) or [`send_file`](Connection::send_file) will send.
    fn output(&mut self) -> &mut Vec<u8>;

    /// Sends all of [`output`](Connection::output) and leaves it empty.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Sends [`output`](Connection::output), and tells the peer that this was all, if the protocol can. A stream that
    /// ends without it may have been cut short on the way. With plain TCP the only way is to close.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> {
        async { if self.output().is_empty() { Ok(()) } else { self.flush().await } }
    }

    /// Sends [`output`](Connection::output), then `bytes`, for bytes that are too many to copy into the output first.
    fn send_bytes(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
        async {
            self.output().extend_from_slice(bytes);
            self.flush().await
        }
    }

    /// Sends [`output`](Connection::output), then `length` bytes of `file` from `offset`, if possible without copying
    /// them through this process. Fails with [`io::ErrorKind::UnexpectedEof`] if the file is shorter.
    fn send_file(
        &mut self,
        file: &Arc<File>,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = io::Result<()>>;

    /// Makes every call that waits fail once `after` has passed from now. `None` removes the deadline.
    fn set_deadline(&mut self, after: Option<Duration>);

    /// Sets a deadline that moves on while the peer takes what is sent at this pace, however long that is: a peer that
    /// stalls is found soon, and one that is slow gets everything. Ends with the next
    /// [`set_deadline`](Connection::set_deadline).
    fn set_pace(&mut self, pace: Pace);

    /// Tells the peer that no more will be sent (half-close). Input may still be read.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Whether to close after the current request, because the server is stopping or others wait for the worker that
    /// this connection holds.
    fn draining(&self) -> bool;

    /// Opens a connection to another tier, driven by the same model, within this connection's deadline. The new
    /// connection has no deadline yet. Any connection of the same service may use it later.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self>>;

    /// Sleeps for `how_long`.
    fn sleep(&self, how_long: Duration) -> impl Future<Output = ()>;

    /// Whether the peer of an idle connection has closed it, broken it, or sent something unasked. Does not wait. Call
    /// it before using a kept connection to another tier again.
    fn is_stale(&mut self) -> bool;
}

/// What a server does with a connection. Made once per worker, loop or process, and never shared between threads.
pub trait Service<C: Connection>: 'static {
    /// Serves one connection. Dropping the connection closes it.
    fn serve(&self, connection: C) -> impl Future<Output = ()>;
}

/// Makes a service for each worker, loop or process after it has started, so what the service opens is its own.
///
/// In models where every connection has a thread or process of its own, a service is made per connection, and once more
/// when the server starts, to find out whether that works. Whatever is expensive should be shared through the factory.
///
/// A factory must not hold threads or connections of its own: a process forked from the one that started the server has
/// a copy of its memory but none of its threads, and must not use its connections. It may hold an
/// [`offload::Pool`](crate::offload::Pool).
pub trait Factory: Send + Sync + 'static {
    /// The service for one kind of connection.
    type Service<C: Connection>: Service<C>;

    /// Makes a service.
    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>>;

    /// Brings up to date what a forked process inherits. Models that fork call it before each fork, in the process that does.
    fn refresh(&self) {}
}

impl<F: Factory> Factory for Arc<F> {
    type Service<C: Connection> = F::Service<C>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        (**self).make()
    }

    fn refresh(&self) {
        (**self).refresh();
    }
}
