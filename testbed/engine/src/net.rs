//! The socket system calls that all models share, retried when a signal interrupts them.

use std::{
    fs::File,
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    io::{Errno, retry_on_intr},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt},
};

/// The most bytes of a file sent by one call, so that a large file does not hold up a loop.
const FILE_CHUNK: u64 = 2 << 20;

/// Receives into the first `room` bytes of `into`'s spare capacity. Returns the number of bytes received.
pub(crate) fn receive(
    socket: impl AsFd,
    (into, room): (&mut Vec<u8>, usize),
    flags: RecvFlags,
) -> io::Result<usize> {
    let socket = socket.as_fd();
    let spare = into.spare_capacity_mut();
    let room = room.min(spare.len());
    let count = retry_on_intr(|| {
        rustix::net::recv(socket, &mut spare[..room], flags).map(|((received, _), _)| received.len())
    })?;
    // SAFETY: the kernel has written the first `count` bytes of the spare capacity.
    unsafe { into.set_len(into.len() + count) };
    Ok(count)
}

/// Sends as many of `bytes` as the socket takes. A broken connection gives an error, never a signal.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    let socket = socket.as_fd();
    Ok(retry_on_intr(|| rustix::net::send(socket, bytes, flags | SendFlags::NOSIGNAL))?)
}

/// The flag that holds back a partial segment if more `follows` at once.
pub(crate) fn more_if(follows: bool) -> SendFlags {
    if follows { SendFlags::MORE } else { SendFlags::empty() }
}

/// Sends as many as the socket takes of the `length` bytes of `file` from `offset`.
///
/// # Errors
/// `UnexpectedEof` when the file ends earlier.
pub(crate) fn send_file(socket: impl AsFd, file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let count = usize::try_from(length.min(FILE_CHUNK)).unwrap_or(usize::MAX);
    let socket = socket.as_fd();
    let sent = retry_on_intr(|| rustix::fs::sendfile(socket, file, Some(&mut offset.clone()), count))?;
    if sent == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(sent as u64) }
}

/// Connects a non-blocking socket. Called again once the socket is writable, returns the outcome.
///
/// # Errors
/// `WouldBlock` while the connection is being established.
pub(crate) fn connect(socket: impl AsFd, to: &SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, to) {
        Ok(()) | Err(Errno::ISCONN) => Ok(()),
        Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether an idle connection is closed or broken, or has received bytes that nobody asked for.
pub(crate) fn is_stale(socket: impl AsFd) -> bool {
    let peeked = rustix::net::recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(peeked, Err(Errno::AGAIN | Errno::INTR))
}

/// Whether a peer that has sent nothing never will, because it has closed or the connection broke.
pub(crate) fn is_gone(socket: impl AsFd) -> bool {
    let peeked = rustix::net::recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(peeked, Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
}

/// Makes a TCP socket of the family of `address` that sends small writes at once.
///
/// Connections inherit TCP_NODELAY from the listening socket that accepts them.
pub(crate) fn tcp_socket(address: &SocketAddr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// Whether the call failed only because it would have had to wait.
pub(crate) fn would_wait(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
