//! A connection whose transfers the kernel makes.

use std::{
    fs::File,
    future::poll_fn,
    io,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    task::{Poll, ready},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{SendFlags, Shutdown, SocketFlags, connect, sockopt},
};

use super::{reactor::Reactor, source::Socket};
use crate::{
    buffer::Input,
    deadline::Deadline,
    listen::Accepted,
    loops::{self, Key},
    net,
    service::{self, Pace, Waiting},
};

/// A connection driven by a loop over a ring.
pub(crate) struct Connection {
    reactor: Rc<Reactor>,
    key: Key,
    socket: Rc<Socket>,
    peer: SocketAddr,
    input: Input,
    output: Vec<u8>,
    deadline: Deadline,
    /// Whether it was accepted rather than opened by this side.
    accepted: bool,
    /// Whether everything received has been answered. Always false on a connection that this side opened.
    answered: bool,
}

impl Connection {
    pub(crate) fn accepted(accepted: Accepted, reactor: Rc<Reactor>) -> Self {
        let socket = Socket::new(accepted.socket, false, Some(accepted.permit));
        Self::new(socket, accepted.peer, reactor, true)
    }

    fn new(socket: Socket, peer: SocketAddr, reactor: Rc<Reactor>, accepted: bool) -> Self {
        let socket = Rc::new(socket);
        Self {
            key: reactor.add_source(Rc::clone(&socket)),
            reactor,
            socket,
            peer,
            input: Input::new(),
            output: Vec::new(),
            deadline: Deadline::none(),
            accepted,
            answered: accepted,
        }
    }

    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        if let Some(bytes) = self.reactor.take_received(self.key) {
            let bytes = bytes?;
            let count = bytes.len();
            self.input.append(bytes, &mut self.reactor.buffers.borrow_mut());
            self.answered &= count == 0;
            return Poll::Ready(Ok(count));
        }
        let between_requests = self.answered && self.input.is_empty();
        if between_requests && self.reactor.is_ending(self.key) && !net::is_stale(&self.socket) {
            return Poll::Ready(Ok(0));
        }
        self.release();
        self.reactor.wait_to_receive(self.key, between_requests, self.deadline.at()).map_ok(|()| 0)
    }

    /// Gives memory that is not in use back.
    fn release(&mut self) {
        let mut buffers = self.reactor.buffers.borrow_mut();
        self.input.release(&mut buffers);
        if self.output.is_empty() {
            buffers.give(std::mem::take(&mut self.output));
        }
    }

    /// Sends the output. As much as the socket takes is sent at once, which saves an operation and its completion; the
    /// rest is lent to the ring.
    async fn send(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = poll_fn(|_| self.poll_try_send()).await?;
        self.deadline.note_sent(sent as u64);
        let rest = self.output.get(sent..).unwrap_or_default();
        let left = rest.len() as u64;
        if left > self.deadline.sent_at_most() {
            // While the ring sends a long one, nothing tells whether the peer takes it.
            self.send_all(rest, SendFlags::empty()).await?;
        } else if left > 0 {
            self.reactor.send(self.key, std::mem::take(&mut self.output), sent)?;
            self.output = poll_fn(|_| self.reactor.poll_sent(self.key, self.deadline.at())).await?;
            self.deadline.note_sent(left);
        }
        self.output.clear();
        self.mark_answered();
        Ok(())
    }

    fn poll_try_send(&self) -> Poll<io::Result<usize>> {
        if self.reactor.is_sending(self.key) {
            // A send that was abandoned is still under way, and these bytes would end up in the middle of it.
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !self.reactor.turn.spend() {
            return Poll::Pending;
        }
        match net::send(&self.socket, &self.output, SendFlags::DONTWAIT) {
            Err(error) if net::would_wait(&error) => Poll::Ready(Ok(0)),
            done => Poll::Ready(done),
        }
    }

    /// Makes one outgoing transfer as soon as the socket takes it.
    fn poll_transfer<T>(&self, transfer: impl FnOnce(&Socket) -> io::Result<T>) -> Poll<io::Result<T>> {
        if !self.reactor.turn.spend() {
            return Poll::Pending;
        }
        match transfer(&self.socket) {
            Err(error) if net::would_wait(&error) => {
                ready!(self.reactor.wait_to_write(self.key, self.deadline.at()))?;
                Poll::Pending
            }
            done => Poll::Ready(done),
        }
    }

    /// Sends the output from where it lies. More follows at once.
    async fn send_head(&mut self) -> io::Result<()> {
        self.send_all(&self.output, SendFlags::MORE).await?;
        self.output.clear();
        Ok(())
    }

    /// Sends bytes from where they lie. They do not belong to the loop, so they are never lent to the kernel.
    async fn send_all(&self, bytes: &[u8], flags: SendFlags) -> io::Result<()> {
        let (mut sent, flags) = (0, flags | SendFlags::DONTWAIT);
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            let count = poll_fn(|_| self.poll_transfer(|socket| net::send(socket, rest, flags))).await?;
            self.deadline.note_sent(count as u64);
            sent += count;
        }
        Ok(())
    }

    async fn send_range(&mut self, file: &File, mut offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length);
        self.socket.set_nonblocking(true)?;
        while offset < end {
            let transfer = |socket: &Socket| net::send_file(socket, file, offset, end - offset);
            let count = poll_fn(|_| self.poll_transfer(transfer)).await?;
            self.deadline.note_sent(count);
            offset += count;
        }
        self.mark_answered();
        Ok(())
    }

    fn mark_answered(&mut self) {
        self.answered |= self.accepted;
    }

    async fn open(&self, to: SocketAddr) -> io::Result<Self> {
        let socket = net::tcp_socket(&to, SocketFlags::NONBLOCK)?;
        let begun = connect(&socket, &to);
        let mut connection = Self::new(Socket::new(socket, true, None), to, Rc::clone(&self.reactor), false);
        match begun {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                connection.deadline.set_at(self.deadline.at());
                connection.connected().await?;
                connection.deadline.set(None);
            }
            Err(errno) => return Err(errno.into()),
        }
        Ok(connection)
    }

    /// Waits for the outcome of connect(2).
    async fn connected(&self) -> io::Result<()> {
        let mut begun = false;
        poll_fn(|_| match begun && !self.reactor.is_waiting_to_write(self.key) {
            true => Poll::Ready(Ok(())),
            false => {
                begun = true;
                self.reactor.wait_to_write(self.key, self.deadline.at())
            }
        })
        .await?;
        Ok(sockopt::socket_error(&self.socket)??)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reactor.abandon(self.key);
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
        poll_fn(|_| self.poll_receive()).await
    }

    fn awaits(&mut self, what: Waiting) {
        self.answered = self.accepted && what != Waiting::Within;
    }

    fn read_at_most(&mut self, bytes: usize) {
        self.input.read_at_most(bytes);
        if let Some(bytes) = self.input.at_most() {
            self.reactor.read_at_most(self.key, bytes);
        }
    }

    fn output(&mut self) -> &mut Vec<u8> {
        if self.output.capacity() == 0 {
            self.output = self.reactor.buffers.borrow_mut().take();
        }
        &mut self.output
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.send().await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return self.send().await;
        }
        self.send_head().await?;
        self.send_all(bytes, SendFlags::empty()).await?;
        self.mark_answered();
        Ok(())
    }

    async fn send_file(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return self.send().await;
        }
        self.send_head().await?;
        self.send_range(file, offset, length).await
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
        self.reactor.draining()
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self> {
        self.open(to).await
    }

    async fn sleep(&self, how_long: Duration) {
        loops::sleep(&self.reactor.turn, &self.reactor.timers, how_long).await;
    }

    fn is_stale(&mut self) -> bool {
        !self.input.is_empty() || self.reactor.has_received(self.key) || net::is_stale(&self.socket)
    }
}
