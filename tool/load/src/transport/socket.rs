//! The system calls on one TCP socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use analysis::sample::ErrorKind;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, connect, recv, send,
    socket_with, sockopt,
};

use super::stream::Rest;

/// A connected or connecting TCP socket, non-blocking.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Begins to connect to `address`. How that went, the first send tells.
    pub(crate) fn connect(address: &SocketAddr) -> Result<Self, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&fd, address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Socket { fd }),
            Err(error) => Err(error),
        }
    }

    /// The next connection that waits at a non-blocking listener.
    pub(crate) fn accept(listener: impl AsFd) -> Result<Self, Errno> {
        let fd = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
        Ok(Socket { fd })
    }

    /// Sends what is written without waiting for the acknowledgement of what went before.
    pub(crate) fn set_nodelay(&self) -> Result<(), Errno> {
        sockopt::set_tcp_nodelay(&self.fd, true)
    }

    /// Closes without leaving a TIME_WAIT entry, whose 60 s would bind up the local port: at a few
    /// hundred connections a second the ports would be used up. The peer has sent all it had to
    /// send, so the reset this sends loses nothing.
    pub(crate) fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    #[inline]
    pub(crate) fn send(&self, bytes: &[u8], rest: Rest) -> Result<usize, Errno> {
        let flags = match rest {
            Rest::Nothing => SendFlags::NOSIGNAL,
            Rest::Follows => SendFlags::NOSIGNAL.union(SendFlags::MORE),
        };
        send(&self.fd, bytes, flags)
    }

    #[inline]
    pub(crate) fn recv(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(&self.fd, buffer, RecvFlags::empty()).map(|(_, received)| received)
    }

    /// Takes up to the length of `room` off the socket without copying it: on a TCP socket MSG_TRUNC
    /// discards (tcp(7)). A kernel that copies all the same finds real room.
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

/// What kind of failure the operating system reported on a socket.
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
