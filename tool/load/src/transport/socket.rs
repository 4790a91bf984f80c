//! The system calls on one TCP socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use analysis::ticks::ErrorKind;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, connect, recv, send,
    socket_with, sockopt,
};

/// Whether more bytes follow the ones being sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MoreToSend {
    /// These are the last bytes for now.
    No,
    /// More bytes follow, so the kernel may hold back a segment that is not full.
    Yes,
}

/// A non-blocking TCP socket that is connected or connecting.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Starts to connect to `address`. The first send reports the outcome.
    pub(crate) fn connect(address: &SocketAddr) -> Result<Self, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&fd, address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Socket { fd }),
            Err(error) => Err(error),
        }
    }

    /// Accepts the next connection of a non-blocking listener.
    pub(crate) fn accept(listener: impl AsFd) -> Result<Self, Errno> {
        let fd = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
        Ok(Socket { fd })
    }

    /// Makes the kernel send data without waiting for the acknowledgement of earlier data.
    pub(crate) fn set_nodelay(&self) -> Result<(), Errno> {
        sockopt::set_tcp_nodelay(&self.fd, true)
    }

    /// Closes the socket without a TIME_WAIT entry, which would occupy the local port for 60 s: at a few hundred
    /// connections per second the host would run out of ports. Sends a reset, which loses nothing because the server
    /// has sent everything by then.
    pub(crate) fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    #[inline]
    pub(crate) fn send(&self, bytes: &[u8], more: MoreToSend) -> Result<usize, Errno> {
        let flags = match more {
            MoreToSend::No => SendFlags::NOSIGNAL,
            MoreToSend::Yes => SendFlags::NOSIGNAL.union(SendFlags::MORE),
        };
        send(&self.fd, bytes, flags)
    }

    #[inline]
    pub(crate) fn recv(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(&self.fd, buffer, RecvFlags::empty()).map(|(_, received)| received)
    }

    /// Discards up to `room.len()` bytes in the kernel: MSG_TRUNC on a TCP socket copies nothing (tcp(7)). A kernel that
    /// copies all the same has room to do so.
    #[inline]
    pub(crate) fn discard(&self, room: &mut [u8]) -> Result<usize, Errno> {
        recv(&self.fd, room, RecvFlags::TRUNC).map(|(_, received)| received)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Classifies an error that the operating system reported on a socket.
pub(crate) fn error_kind(errno: Errno) -> ErrorKind {
    match errno {
        Errno::CONNREFUSED => ErrorKind::Refused,
        Errno::TIMEDOUT => ErrorKind::TimedOut,
        Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::HOSTDOWN | Errno::ACCESS => {
            ErrorKind::Unreachable
        }
        Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN => {
            ErrorKind::LocalLimit
        }
        _ => ErrorKind::Reset,
    }
}
