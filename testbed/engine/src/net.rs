//! The socket system calls that all models share, retried when a signal interrupts them.

use std::{
    fs::File,
    io, mem,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
};

use rustix::{
    io::Errno,
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
    uninterrupted(|| receive_once(socket.as_fd(), (&mut *into, room), flags))
}

/// The same, but a signal interrupts it: a call that blocks begins its time-out anew each time it is made.
pub(crate) fn receive_once(
    socket: impl AsFd,
    (into, room): (&mut Vec<u8>, usize),
    flags: RecvFlags,
) -> io::Result<usize> {
    let spare = into.spare_capacity_mut();
    let room = room.min(spare.len());
    let ((received, _), _) = rustix::net::recv(socket, &mut spare[..room], flags)?;
    let count = received.len();
    // SAFETY: the kernel has written the first `count` bytes of the spare capacity.
    unsafe { into.set_len(into.len() + count) };
    Ok(count)
}

/// Sends as many of `bytes` as the socket takes. A broken connection gives an error, never a signal.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    uninterrupted(|| send_once(socket.as_fd(), bytes, flags))
}

/// The same, but a signal interrupts it, as for [`receive_once`].
pub(crate) fn send_once(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, flags | SendFlags::NOSIGNAL)?)
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
    uninterrupted(|| send_file_once(socket.as_fd(), file, offset, length))
}

/// The same, but a signal interrupts it, as for [`receive_once`].
pub(crate) fn send_file_once(
    socket: impl AsFd,
    file: &File,
    mut offset: u64,
    length: u64,
) -> io::Result<u64> {
    let count = usize::try_from(length.min(FILE_CHUNK)).unwrap_or(usize::MAX);
    let sent = rustix::fs::sendfile(socket, file, Some(&mut offset), count)?;
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

/// How long nothing has been sent or received on an established connection, in milliseconds. May be called in a signal
/// handler.
pub(crate) fn quiet_ms(socket: RawFd) -> Option<u32> {
    let info = tcp_info(socket)?;
    let established = info.tcpi_state == ESTABLISHED || info.tcpi_state == CLOSE_WAIT;
    established.then(|| info.tcpi_last_data_recv.min(info.tcpi_last_data_sent))
}

/// How many connections wait to be accepted from a listening socket.
pub(crate) fn listen_queue(listener: impl AsFd) -> usize {
    // For a listening socket the kernel gives the length of its queue in this field: tcp_get_info() in net/ipv4/tcp.c.
    tcp_info(listener.as_fd().as_raw_fd()).map_or(0, |info| info.tcpi_unacked as usize)
}

/// States of a connection: enum in include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;
const CLOSE_WAIT: u8 = 8;

fn tcp_info(socket: RawFd) -> Option<libc::tcp_info> {
    // SAFETY: all fields are integers, which may be zero.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    let into = (&raw mut info).cast();
    // SAFETY: the kernel writes at most `length` bytes there. Older kernels write fewer and leave the rest zero.
    let asked = unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, into, &raw mut length) };
    (asked == 0).then_some(info)
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

/// Whether the call failed only because it would have had to wait, or wait longer.
pub(crate) fn would_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
