//! A connection whose every call blocks the calling thread.

use std::{
    fs::File,
    io,
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::net::{
    RecvFlags, SendFlags, Shutdown,
    sockopt::{Timeout, set_socket_timeout},
};

use super::registry::{BlockingSocket, Registry};
use crate::{
    buffer::Input,
    clock::{self, Micros, NEVER},
    connection_limit::Permit,
    control::Control,
    deadline::Deadline,
    listen::Accepted,
    net,
    service::{self, Pace, Waiting},
};

/// A connection whose every call blocks the calling thread.
#[derive(Debug)]
pub struct Connection {
    socket: Arc<BlockingSocket>,
    key: usize,
    registry: Arc<Registry>,
    peer: SocketAddr,
    input: Input,
    output: Vec<u8>,
    deadline: Deadline,
    receive_timeout: SocketTimeout,
    send_timeout: SocketTimeout,
    /// What the next wait for input is for, if all input has been consumed by then.
    next: Waiting,
    /// The place of an accepted connection. Dropped after the socket.
    permit: Option<Permit>,
}

impl Connection {
    /// Opens a connection outside of any server, for background work and command lines. Connecting takes at most
    /// `patience`; the connection has no deadline afterwards.
    ///
    /// # Errors
    /// When the connection is refused or not established in time.
    pub fn dial(to: SocketAddr, patience: Duration) -> io::Result<Self> {
        let registry = Arc::new(Registry::new(Arc::new(Control::new(Vec::new()))));
        let stream = TcpStream::connect_timeout(&to, patience)?;
        stream.set_nodelay(true)?;
        Self::new(stream.into(), to, registry, None)
    }

    pub(crate) fn accepted(accepted: Accepted, registry: Arc<Registry>) -> io::Result<Self> {
        Self::new(accepted.socket, accepted.peer, registry, Some(accepted.permit))
    }

    fn new(
        descriptor: OwnedFd,
        peer: SocketAddr,
        registry: Arc<Registry>,
        permit: Option<Permit>,
    ) -> io::Result<Self> {
        let socket = Arc::new(BlockingSocket::new(descriptor));
        let key = registry.add(Arc::clone(&socket))?;
        Ok(Self {
            socket,
            key,
            registry,
            peer,
            input: Input::new(),
            output: Vec::new(),
            deadline: Deadline::none(),
            receive_timeout: SocketTimeout::new(Timeout::Recv),
            send_timeout: SocketTimeout::new(Timeout::Send),
            next: if permit.is_some() { Waiting::First } else { Waiting::Within },
            permit,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        let waiting = if self.input.is_empty() { self.next } else { Waiting::Within };
        loop {
            self.registry.set_waiting(&self.socket, waiting);
            let ending = self.registry.ends(waiting);
            self.receive_timeout.arm(&self.socket, &self.deadline)?;
            let flags = if ending { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
            let (buffer, room) = self.input.room();
            match net::receive_once(&self.socket, (buffer, room), flags) {
                Ok(count) => {
                    self.input.adapt(count, room);
                    self.registry.set_waiting(&self.socket, Waiting::Within);
                    if count > 0 {
                        self.next = Waiting::Within;
                    }
                    return Ok(count);
                }
                Err(error) if !net::would_wait(&error) => return Err(error),
                Err(_) if ending => return Ok(0),
                Err(_) => {}
            }
        }
    }

    fn send(&mut self, flags: SendFlags) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        let sent = self.send_all(&output, flags);
        self.output = output;
        sent?;
        self.output.clear();
        Ok(())
    }

    fn send_all(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            self.send_timeout.arm(&self.socket, &self.deadline)?;
            match net::send_once(&self.socket, rest, flags) {
                Ok(count) => {
                    sent += count;
                    self.deadline.note_sent(count as u64);
                }
                Err(error) if net::would_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.mark_answered(sent > 0);
        Ok(())
    }

    fn send_range(&mut self, file: &File, mut offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length);
        while offset < end {
            self.send_timeout.arm(&self.socket, &self.deadline)?;
            // The kernel's time-out is for each part of a call, so that a long one might hardly ever end.
            let length = (end - offset).min(self.deadline.sent_at_most());
            match net::send_file_once(&self.socket, file, offset, length) {
                Ok(count) => {
                    offset += count;
                    self.deadline.note_sent(count);
                }
                Err(error) if net::would_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.mark_answered(length > 0);
        Ok(())
    }

    fn mark_answered(&mut self, sent_some: bool) {
        if sent_some && self.permit.is_some() {
            self.next = Waiting::Next;
        }
    }

    fn open(&self, to: SocketAddr) -> io::Result<Self> {
        let stream = match self.deadline.at() {
            NEVER => TcpStream::connect(to)?,
            deadline => TcpStream::connect_timeout(&to, Duration::from_micros(remaining(deadline)?))?,
        };
        stream.set_nodelay(true)?;
        Self::new(stream.into(), to, Arc::clone(&self.registry), None)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.registry.remove(self.key);
    }
}

impl service::Connection for Connection {
    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn input(&self) -> &[u8] {
        self.input.unread()
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.receive()
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.send(SendFlags::empty())
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(net::more_if(!bytes.is_empty()))?;
        self.send_all(bytes, SendFlags::empty())
    }

    async fn send_file(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        self.send(net::more_if(length > 0))?;
        self.send_range(file, offset, length)
    }

    fn awaits(&mut self, what: Waiting) {
        self.next = what;
    }

    fn read_at_most(&mut self, bytes: usize) {
        self.input.read_at_most(bytes);
    }

    fn set_deadline(&mut self, after: Option<Duration>) {
        self.deadline.set(after);
    }

    fn set_pace(&mut self, pace: Pace) {
        self.deadline.set_pace(pace);
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.socket, Shutdown::Write)?)
    }

    fn draining(&self) -> bool {
        self.registry.ending()
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self> {
        self.open(to)
    }

    async fn sleep(&self, how_long: Duration) {
        let end = Instant::now().checked_add(how_long);
        let left = || end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        while !left().is_zero() && !self.registry.aborted() {
            thread::park_timeout(left());
        }
    }

    fn is_stale(&mut self) -> bool {
        !self.input.is_empty() || net::is_stale(&self.socket)
    }
}

/// How late a call may end, to save another call that would set its time-out.
const LATE_MAX_US: Micros = 100_000;

/// The time-out that the kernel applies to a socket's blocking calls. It is set only when a shorter one is needed: a
/// call that ends too early checks the true deadline and goes on.
#[derive(Debug)]
struct SocketTimeout {
    which: Timeout,
    /// The time-out now; [`NEVER`] until one is set.
    set: Micros,
}

impl SocketTimeout {
    const fn new(which: Timeout) -> Self {
        Self { which, set: NEVER }
    }

    /// Prepares a call that must end at `deadline` or soon after.
    fn arm(&mut self, socket: &BlockingSocket, deadline: &Deadline) -> io::Result<()> {
        if deadline.at() == NEVER {
            return Ok(());
        }
        let remaining = remaining(deadline.at())?.min(deadline.blocks_at_most());
        let late = (remaining / 16).min(LATE_MAX_US);
        if self.set > remaining.saturating_add(late) {
            // Zero would mean no time-out.
            let timeout = remaining.max(1_000);
            set_socket_timeout(socket, self.which, Some(Duration::from_micros(timeout)))?;
            self.set = timeout;
        }
        Ok(())
    }
}

/// The time left, or `TimedOut` if there is none.
fn remaining(deadline: Micros) -> io::Result<Micros> {
    match clock::until(deadline) {
        0 => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}
