//! The seam between a service and the concurrency model that runs it.
//!
//! A service is an async function over a connection. The connection owns its buffers, so that
//! readiness models (read when told to) and completion models (hand over a buffer, get it back
//! full) look the same from here, and so that blocking models can simply block inside a call.

use std::{fs::File, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

/// What an accepted connection's next input is awaited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Waiting {
    /// More of a request, or of another tier's answer; or it does not wait.
    Within,
    /// The first request.
    First,
    /// Another request, after all before it were answered.
    Next,
}

/// A byte stream to one peer, with its buffers.
///
/// Every waiting call fails with [`io::ErrorKind::TimedOut`] once the deadline set by
/// [`set_deadline`](Connection::set_deadline) has passed.
pub trait Connection: Sized + 'static {
    /// The peer's address.
    fn peer(&self) -> SocketAddr;

    /// The public key that the peer has proved to have, where a layer above TCP has asked it to. TCP does not.
    fn proven_key(&self) -> Option<&[u8]> {
        None
    }

    /// Bytes received and not yet consumed.
    fn input(&self) -> &[u8];

    /// Forgets the first `count` bytes of [`input`](Connection::input).
    fn consume(&mut self, count: usize);

    /// Waits for more input and appends it; returns how many bytes came, 0 once the peer has closed its side.
    ///
    /// Between requests (no input left, and something sent since the last input came, or none came yet) it
    /// also returns 0 once the connection is to end ([`draining`](Self::draining)), so that idle ones do not stay; but
    /// one that never brought a request is ended for no other's sake. Connections to another tier are not ended so.
    fn fill(&mut self) -> impl Future<Output = io::Result<usize>>;

    /// Says what the next [`fill`](Connection::fill) of an accepted connection is for, without input left. A connection
    /// tells by what came and what was sent; a layer above it that gives the bytes another meaning knows better.
    fn awaits(&mut self, what: Waiting);

    /// From now on one [`fill`](Connection::fill) reads so many bytes at most, and asks the kernel for so many. Without
    /// this the connection chooses, and asks for more while more comes. 0 counts as 1.
    fn read_at_most(&mut self, bytes: usize);

    /// Bytes to be sent by the next [`flush`](Connection::flush) or [`send_file`](Connection::send_file).
    fn output(&mut self) -> &mut Vec<u8>;

    /// Sends all of [`output`](Connection::output) and leaves it empty.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Sends [`output`](Connection::output), and lets the peer know that this was all, where there is a way to: what ends
    /// without it may have been cut short by somebody on the way. TCP has no way but to close.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> {
        async { if self.output().is_empty() { Ok(()) } else { self.flush().await } }
    }

    /// Sends [`output`](Connection::output), then `bytes`: for those worth not being copied into the output first.
    fn send_bytes(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
        async {
            self.output().extend_from_slice(bytes);
            self.flush().await
        }
    }

    /// Sends [`output`](Connection::output), then `length` bytes of `file` from `offset`, without copying them
    /// through this process where the model can. Fails with [`io::ErrorKind::UnexpectedEof`] when the file is shorter.
    fn send_file(
        &mut self,
        file: &Arc<File>,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = io::Result<()>>;

    /// From now on, waiting longer than `after` fails. `None` waits for ever.
    fn set_deadline(&mut self, after: Option<Duration>);

    /// Says that no more will be sent (half-close); input may still be read.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Whether to close after the request in hand: the server has been told to stop, or others wait for the worker
    /// that this connection holds.
    fn draining(&self) -> bool;

    /// Opens a connection to another tier, driven by the same model, within this connection's deadline.
    /// The new connection has none yet. Any connection of the same service may use it later.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self>>;

    /// Waits.
    fn sleep(&self, how_long: Duration) -> impl Future<Output = ()>;

    /// Whether the peer has closed or broken an idle connection, or spoken unasked; asked without waiting.
    /// Kept connections to another tier are checked by this before they are used again.
    fn is_stale(&mut self) -> bool;
}

/// What a server does with a connection. Made once per worker, loop or process; never shared between threads.
pub trait Service<C: Connection>: 'static {
    /// Serves one connection until it is to be closed. Dropping the connection closes it.
    fn serve(&self, connection: C) -> impl Future<Output = ()>;
}

/// Makes a service for each worker, loop or process, after it has started: what the service opens is its own.
///
/// Where every connection has a thread or process of its own, that is once per connection (and once more when the
/// server starts, to find out whether it can be made): share what is dear through the factory.
///
/// A factory holds no thread and no connection of its own: a process forked from the one that started the server
/// has a copy of its memory, but none of its threads, and must not speak on its connections.
/// [`offload::Pool`](crate::offload::Pool) may be in it.
pub trait Factory: Send + Sync + 'static {
    /// The service for one kind of connection.
    type Service<C: Connection>: Service<C>;

    /// Makes one.
    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>>;
}

impl<F: Factory> Factory for Arc<F> {
    type Service<C: Connection> = F::Service<C>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        (**self).make()
    }
}
