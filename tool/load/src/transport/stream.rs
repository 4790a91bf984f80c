//! A connection as the users see it: plain or encrypted, the same few calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use analysis::sample::ErrorKind;
use rustix::io::Errno;
use rustls::ClientConnection;

use super::socket::{Socket, error_kind};

/// A connection to the server.
///
/// A call that cannot go on says so instead of waiting. [`Stream::ready`] says that it may go on: an
/// event came. Since a short read of a stream socket means that it is empty (epoll(7)), the read that
/// would only find that out again is left out.
pub(crate) struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// The last read found the socket empty, and no event came since.
    drained: bool,
    /// The peer has closed its side: the end is to be read, however short a read was.
    closed: bool,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes.
    Bytes(usize),
    /// The peer has closed, and everything was read.
    End,
    /// Nothing until the next event.
    Blocked,
}

/// Whether the caller has more to send at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// These bytes are the last for now.
    Nothing,
    /// More follows: a segment that is not full may wait for it.
    Follows,
}

impl Stream {
    pub(crate) fn new(socket: Socket, tls: Option<Box<ClientConnection>>) -> Self {
        Stream { socket, tls, drained: false, closed: false }
    }

    /// Takes note of an event; `closed` if it says that the peer has closed its side.
    #[inline]
    pub(crate) fn ready(&mut self, closed: bool) {
        self.drained = false;
        self.closed |= closed;
    }

    /// Whether the peer is known to have closed its side.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether received bytes may be dropped unseen.
    #[inline]
    pub(crate) fn can_discard(&self) -> bool {
        self.tls.is_none()
    }

    /// Goes on with the TLS handshake; whether it is over. At once without TLS.
    pub(crate) fn handshake(&mut self) -> Result<bool, ErrorKind> {
        loop {
            let flushed = self.flush()?;
            let Some(tls) = &mut self.tls else { return Ok(true) };
            if !flushed || !tls.is_handshaking() {
                return Ok(flushed);
            }
            match self.receive_tls()? {
                Received::Bytes(_) => {}
                Received::Blocked => return Ok(false),
                Received::End => return Err(ErrorKind::Tls),
            }
        }
    }

    /// Sends what the kernel takes; how much that was.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], rest: Rest) -> Result<usize, ErrorKind> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.send(bytes, rest) {
                Ok(sent) => Ok(sent),
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                Err(error) => Err(error_kind(error)),
            };
        };
        let taken = io::Write::write(&mut tls.writer(), bytes).map_err(|_| ErrorKind::Tls)?;
        self.flush()?;
        Ok(taken)
    }

    /// Whether everything that was sent has left.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Sends what TLS still holds; whether that is everything.
    pub(crate) fn flush(&mut self) -> Result<bool, ErrorKind> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Raw { socket: &self.socket, drained: &mut self.drained }) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(raw_error(&error)),
            }
        }
        Ok(true)
    }

    /// Reads into `buffer`.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8]) -> Result<Received, ErrorKind> {
        if self.tls.is_some() {
            return self.recv_tls(buffer);
        }
        if self.drained {
            return Ok(Received::Blocked);
        }
        let found = self.socket.recv(buffer);
        self.received(found, buffer.len())
    }

    /// Drops up to the length of `room` received bytes; only where [`Stream::can_discard`].
    #[inline]
    pub(crate) fn discard(&mut self, room: &mut [u8]) -> Result<Received, ErrorKind> {
        if self.drained {
            return Ok(Received::Blocked);
        }
        let found = self.socket.discard(room);
        self.received(found, room.len())
    }

    /// Ends the connection. If the peer has not closed first, without a TIME_WAIT entry here.
    pub(crate) fn close(self) {
        if !self.closed {
            self.socket.reset();
        }
    }

    #[inline]
    fn received(&mut self, found: Result<usize, Errno>, asked: usize) -> Result<Received, ErrorKind> {
        match found {
            Ok(0) => {
                self.closed = true;
                Ok(Received::End)
            }
            Ok(count) => {
                self.drained = count < asked && !self.closed;
                Ok(Received::Bytes(count))
            }
            Err(Errno::AGAIN) => {
                self.drained = true;
                Ok(Received::Blocked)
            }
            Err(Errno::INTR) => Ok(Received::Bytes(0)),
            Err(error) => Err(error_kind(error)),
        }
    }

    fn recv_tls(&mut self, buffer: &mut [u8]) -> Result<Received, ErrorKind> {
        loop {
            let Some(tls) = &mut self.tls else { return Ok(Received::End) };
            match io::Read::read(&mut tls.reader(), buffer) {
                Ok(0) => return Ok(Received::End),
                Ok(count) => return Ok(Received::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without a close_notify; framing tells whether the response was complete.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Received::End),
                Err(_) => return Err(ErrorKind::Tls),
            }
            match self.receive_tls()? {
                Received::Bytes(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// Takes encrypted bytes off the socket into TLS.
    fn receive_tls(&mut self) -> Result<Received, ErrorKind> {
        let Some(tls) = &mut self.tls else { return Ok(Received::End) };
        if self.drained {
            return Ok(Received::Blocked);
        }
        let read = tls.read_tls(&mut Raw { socket: &self.socket, drained: &mut self.drained });
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Blocked),
            Err(error) => return Err(raw_error(&error)),
        };
        self.drained &= !self.closed;
        if tls.process_new_packets().is_err() {
            // The alert that says why is worth a try; the connection is over either way.
            let _ = self.flush();
            return Err(ErrorKind::Tls);
        }
        if count == 0 {
            self.closed = true;
            return Ok(Received::End);
        }
        Ok(Received::Bytes(count))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The socket under TLS.
struct Raw<'a> {
    socket: &'a Socket,
    drained: &'a mut bool,
}

impl io::Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.socket.recv(buffer);
        *self.drained = match found {
            Ok(count) => count < buffer.len(),
            Err(error) => error == Errno::AGAIN,
        };
        Ok(found?)
    }
}

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.socket.send(bytes, Rest::Nothing)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn raw_error(error: &io::Error) -> ErrorKind {
    Errno::from_io_error(error).map_or(ErrorKind::Tls, error_kind)
}
