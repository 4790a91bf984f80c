//! A connection, plain or encrypted, behind the same few calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use analysis::ticks::ErrorKind;
use rustix::io::Errno;
use rustls::ClientConnection;

use super::socket::{MoreToSend, Socket, error_kind};

/// A connection to the server.
///
/// No call waits: one that cannot go on says so, and [`Stream::ready`] notes the event after which it can. A short read of a
/// stream socket means that the socket is empty (epoll(7)), so the read that would only confirm this is left out.
pub(crate) struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Whether the last read emptied the socket and no event has come since.
    drained: bool,
    /// Whether the server has closed its side. The end must then be read, however short the last read was.
    closed: bool,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// This many bytes.
    Bytes(usize),
    /// The server has closed its side, and everything has been read.
    End,
    /// Nothing until the next event.
    Blocked,
}

impl Stream {
    pub(crate) fn new(socket: Socket, tls: Option<Box<ClientConnection>>) -> Self {
        Stream { socket, tls, drained: false, closed: false }
    }

    /// Notes an event; `closed` if it says that the server has closed its side.
    #[inline]
    pub(crate) fn ready(&mut self, closed: bool) {
        self.drained = false;
        self.closed |= closed;
    }

    /// Whether the server is known to have closed its side.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether received bytes can be discarded unseen.
    #[inline]
    pub(crate) fn can_discard(&self) -> bool {
        self.tls.is_none()
    }

    /// Continues the TLS handshake. Returns true once it is complete; without TLS, at once.
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

    /// Sends as much as the kernel accepts. Returns the number of bytes accepted.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], more: MoreToSend) -> Result<usize, ErrorKind> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.send(bytes, more) {
                Ok(sent) => Ok(sent),
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                Err(error) => Err(error_kind(error)),
            };
        };
        let taken = io::Write::write(&mut tls.writer(), bytes).map_err(|_| ErrorKind::Tls)?;
        self.flush()?;
        Ok(taken)
    }

    /// Whether TLS has passed everything on to the kernel.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Sends what TLS has buffered. Returns true if nothing is left.
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

    /// Discards up to `room.len()` received bytes. Call only if [`Stream::can_discard`].
    #[inline]
    pub(crate) fn discard(&mut self, room: &mut [u8]) -> Result<Received, ErrorKind> {
        if self.drained {
            return Ok(Received::Blocked);
        }
        let found = self.socket.discard(room);
        self.received(found, room.len())
    }

    /// Closes the connection. Unless the server has closed first, leaves no TIME_WAIT entry on this host.
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
                // The end came without a close_notify. The framing shows whether the response is complete.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Received::End),
                Err(_) => return Err(ErrorKind::Tls),
            }
            match self.receive_tls()? {
                Received::Bytes(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// Moves encrypted bytes from the socket into TLS.
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
            // Tries to send the alert that gives the reason. The connection has failed either way.
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

/// The socket below TLS.
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
        Ok(self.socket.send(bytes, MoreToSend::No)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn raw_error(error: &io::Error) -> ErrorKind {
    Errno::from_io_error(error).map_or(ErrorKind::Tls, error_kind)
}
