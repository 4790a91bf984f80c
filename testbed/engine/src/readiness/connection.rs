//! A connection that tries each transfer at once, and makes its task wait only if the socket is not ready.

use std::{
    fs::File,
    future::poll_fn,
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    task::{Poll, ready},
    time::Duration,
};

use rustix::net::{SendFlags, Shutdown, SocketFlags};

use super::{
    poller::{Interest, Poller, Received},
    reactor::Reactor,
};
use crate::{
    buffer::Input,
    connection_limit::Permit,
    deadline::Deadline,
    listen::Accepted,
    loops::{self, Key},
    net,
    service::{self, Pace, Waiting},
};

/// A connection driven by a loop over the poller `P`.
pub(crate) struct Connection<P: Poller> {
    reactor: Rc<Reactor<P>>,
    key: Key,
    socket: OwnedFd,
    peer: SocketAddr,
    input: Input,
    output: Vec<u8>,
    deadline: Deadline,
    /// Whether everything received has been answered. Always false on a connection that this side opened.
    answered: bool,
    /// The place of an accepted connection. Dropped after the socket.
    permit: Option<Permit>,
}

impl<P: Poller> Connection<P> {
    pub(crate) fn accepted(accepted: Accepted, reactor: Rc<Reactor<P>>) -> Self {
        Self::new(accepted.socket, accepted.peer, reactor, Some(accepted.permit))
    }

    fn new(socket: OwnedFd, peer: SocketAddr, reactor: Rc<Reactor<P>>, permit: Option<Permit>) -> Self {
        Self {
            key: reactor.add_source(),
            reactor,
            socket,
            peer,
            input: Input::new(),
            output: Vec::new(),
            deadline: Deadline::none(),
            answered: permit.is_some(),
            permit,
        }
    }

    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        let (readable, ended) = self.reactor.may_receive(self.key);
        let ending = self.is_between_requests() && (ended || self.reactor.draining());
        if !ending && !readable {
            return self.wait_to_receive();
        }
        if !self.reactor.turn.spend() {
            return Poll::Pending;
        }
        match self.reactor.receive(self.socket.as_fd(), self.key, &mut self.input) {
            Poll::Ready(Ok(received)) => Poll::Ready(Ok(self.received(received))),
            Poll::Ready(Err(error)) if !net::would_wait(&error) => Poll::Ready(Err(error)),
            Poll::Ready(Err(_)) if ending => Poll::Ready(Ok(0)),
            Poll::Ready(Err(_)) | Poll::Pending => {
                self.reactor.exhausted(self.key, Interest::Read);
                self.wait_to_receive()
            }
        }
    }

    fn received(&mut self, Received { count, room }: Received) -> usize {
        self.reactor.note_moved();
        self.input.adapt(count, room);
        self.answered &= count == 0;
        if count < room {
            // A short read has emptied the socket, and later input causes an event: epoll(7), Q9.
            self.reactor.exhausted(self.key, Interest::Read);
        }
        count
    }

    fn is_between_requests(&self) -> bool {
        self.answered && self.input.is_empty()
    }

    /// Gives memory that is not in use back, and waits.
    fn wait_to_receive(&mut self) -> Poll<io::Result<usize>> {
        let mut buffers = self.reactor.buffers.borrow_mut();
        self.input.release(&mut buffers);
        if self.output.is_empty() {
            buffers.give(std::mem::take(&mut self.output));
        }
        drop(buffers);
        self.wait(Interest::Read).map_ok(|()| 0)
    }

    /// Never returns ready without an error.
    fn wait(&self, interest: Interest) -> Poll<io::Result<()>> {
        let between_requests = interest == Interest::Read && self.is_between_requests();
        self.reactor.wait(self.socket.as_fd(), self.key, interest, between_requests, self.deadline.at())
    }

    /// Makes one outgoing transfer as soon as the socket takes it.
    fn poll_transfer<T>(&self, transfer: impl FnOnce(&OwnedFd) -> io::Result<T>) -> Poll<io::Result<T>> {
        if !self.reactor.is_ready(self.key, Interest::Write) {
            ready!(self.wait(Interest::Write))?;
        }
        if !self.reactor.turn.spend() {
            return Poll::Pending;
        }
        match transfer(&self.socket) {
            Err(error) if net::would_wait(&error) => {
                self.reactor.exhausted(self.key, Interest::Write);
                ready!(self.wait(Interest::Write))?;
                Poll::Pending
            }
            done => {
                self.reactor.note_moved();
                Poll::Ready(done)
            }
        }
    }

    async fn send(&mut self, flags: SendFlags) -> io::Result<()> {
        self.send_all(&self.output, flags).await?;
        self.mark_answered(!self.output.is_empty());
        self.output.clear();
        Ok(())
    }

    async fn send_all(&self, bytes: &[u8], flags: SendFlags) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            let count = poll_fn(|_| self.poll_transfer(|socket| net::send(socket, rest, flags))).await?;
            self.deadline.note_sent(count as u64);
            sent += count;
        }
        Ok(())
    }

    async fn send_range(&mut self, file: &File, mut offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length);
        while offset < end {
            let transfer = |socket: &OwnedFd| net::send_file(socket, file, offset, end - offset);
            let count = poll_fn(|_| self.poll_transfer(transfer)).await?;
            self.deadline.note_sent(count);
            offset += count;
        }
        self.mark_answered(length > 0);
        Ok(())
    }

    fn mark_answered(&mut self, sent_some: bool) {
        self.answered |= sent_some && self.permit.is_some();
    }

    async fn open(&self, to: SocketAddr) -> io::Result<Self> {
        let socket = net::tcp_socket(&to, SocketFlags::NONBLOCK)?;
        P::can_watch(socket.as_fd())?;
        let mut connection = Self::new(socket, to, Rc::clone(&self.reactor), None);
        connection.deadline.set_at(self.deadline.at());
        poll_fn(|_| connection.poll_transfer(|socket| net::connect(socket, &to))).await?;
        connection.deadline.set(None);
        Ok(connection)
    }
}

impl<P: Poller> Drop for Connection<P> {
    fn drop(&mut self) {
        self.reactor.remove_source(self.socket.as_fd(), self.key);
    }
}

impl<P: Poller> service::Connection for Connection<P> {
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

    fn output(&mut self) -> &mut Vec<u8> {
        if self.output.capacity() == 0 {
            self.output = self.reactor.buffers.borrow_mut().take();
        }
        &mut self.output
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.send(SendFlags::empty()).await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(net::more_if(!bytes.is_empty())).await?;
        self.send_all(bytes, SendFlags::empty()).await?;
        self.mark_answered(!bytes.is_empty());
        Ok(())
    }

    async fn send_file(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        self.send(net::more_if(length > 0)).await?;
        self.send_range(file, offset, length).await
    }

    fn awaits(&mut self, what: Waiting) {
        self.answered = self.permit.is_some() && what != Waiting::Within;
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
        self.reactor.draining()
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self> {
        self.open(to).await
    }

    async fn sleep(&self, how_long: Duration) {
        loops::sleep(&self.reactor.turn, &self.reactor.timers, how_long).await;
    }

    fn is_stale(&mut self) -> bool {
        !self.input.is_empty() || net::is_stale(&self.socket)
    }
}
