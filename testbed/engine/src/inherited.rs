//! Listening sockets that the process was started with: socket activation, sd_listen_fds(3).

use std::{
    env, io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    process,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::{Errno, FdFlags, fcntl_setfd},
    net::{AddressFamily, SocketType, getsockname, sockopt},
};

use crate::listen::Listeners;

/// The first descriptor that is passed: SD_LISTEN_FDS_START.
const FIRST: RawFd = 3;

/// Why a server cannot listen on the sockets that it was started with.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// It is no listening TCP socket.
    #[error("descriptor {number}, passed to this process to listen on, is {what}; {remedy}")]
    WrongKind {
        /// The descriptor's number.
        number: RawFd,
        /// What it is.
        what: &'static str,
        /// What to change.
        remedy: &'static str,
    },
    /// They listen on different addresses.
    #[error(
        "the sockets passed to this process listen on {first} and on {other}, and a server listens on one address; \
         pass it one, or start another server for the other"
    )]
    Several {
        /// The address of one.
        first: SocketAddr,
        /// The address of another.
        other: SocketAddr,
    },
    /// The system refuses to say what it is.
    #[error("descriptor {number}, passed to this process to listen on, cannot be used: {source}")]
    System {
        /// The descriptor's number.
        number: RawFd,
        /// What the system said.
        source: io::Error,
    },
}

/// Takes the sockets that whoever started this process passed to it. `None` if there are none, or they were taken before.
///
/// To be called before the process opens descriptors of its own that it keeps.
///
/// # Errors
/// When one of them is no listening TCP socket, or they listen on different addresses.
pub fn inherited() -> Result<Option<Listeners>, InheritedError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let is_for_this = variable("LISTEN_PID") == Some(process::id());
    let count = variable::<RawFd>("LISTEN_FDS").filter(|count| is_for_this && *count > 0);
    let Some(count) = count.filter(|_| !TAKEN.swap(true, Relaxed)) else { return Ok(None) };
    let mut sockets = Vec::new();
    let mut address = None;
    for number in FIRST..FIRST.saturating_add(count) {
        let (socket, at) = taken(number)?;
        match address {
            Some(first) if first != at => return Err(InheritedError::Several { first, other: at }),
            _ => address = Some(at),
        }
        sockets.push(socket);
    }
    Ok(address.map(|address| Listeners::of(address, sockets)))
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}

fn taken(number: RawFd) -> Result<(OwnedFd, SocketAddr), InheritedError> {
    // SAFETY: used while this function runs; its calls fail if the number is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let address = checked(borrowed, number)?;
    // SAFETY: it is an open socket, which the environment says is this process's; `inherited` takes it once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    prepare(&socket).map_err(|errno| InheritedError::System { number, source: errno.into() })?;
    Ok((socket, address))
}

/// The address of a socket that has been found to be a listening one of TCP.
fn checked(socket: BorrowedFd<'_>, number: RawFd) -> Result<SocketAddr, InheritedError> {
    let wrong = |what, remedy| Err(InheritedError::WrongKind { number, what, remedy });
    let failed = |errno: Errno| InheritedError::System { number, source: errno.into() };
    let family = match sockopt::socket_domain(socket) {
        Ok(family) => family,
        Err(Errno::BADF) => return wrong("not open", "LISTEN_FDS counts more than was passed"),
        Err(Errno::NOTSOCK) => return wrong("not a socket", "pass a socket of ListenStream=ADDRESS:PORT"),
        Err(errno) => return Err(failed(errno)),
    };
    let kind = sockopt::socket_type(socket).map_err(failed)?;
    if family == AddressFamily::UNIX {
        return wrong("a Unix socket", "clients are told apart by IP address: use ListenStream=ADDRESS:PORT");
    }
    if !matches!(family, AddressFamily::INET | AddressFamily::INET6) || kind != SocketType::STREAM {
        return wrong("not a TCP socket", "use ListenStream=ADDRESS:PORT, not ListenDatagram or another");
    }
    if !sockopt::socket_acceptconn(socket).map_err(failed)? {
        return wrong("a connection or a socket that does not listen", "use Accept=no");
    }
    getsockname(socket).and_then(SocketAddr::try_from).map_err(failed)
}

/// Sets what sockets of our own have from the start.
fn prepare(socket: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    fcntl_setfl(socket, fcntl_getfl(socket)? | OFlags::NONBLOCK)?;
    // Connections inherit it.
    sockopt::set_tcp_nodelay(socket.as_fd(), true)
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream, UdpSocket},
        os::fd::AsRawFd,
        os::unix::net::UnixListener,
    };

    use super::*;

    fn what(socket: &impl AsFd) -> String {
        let socket = socket.as_fd();
        checked(socket, socket.as_raw_fd()).unwrap_err().to_string()
    }

    #[test]
    fn only_a_listening_tcp_socket_is_taken_and_others_are_named() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listening.local_addr().unwrap();
        assert_eq!(checked(listening.as_fd(), 0).unwrap(), at);
        let connection = TcpStream::connect(at).unwrap();
        assert!(what(&connection).contains("Accept=no"));
        assert!(what(&UdpSocket::bind("127.0.0.1:0").unwrap()).contains("not a TCP socket"));
        let folder = tempfile::tempdir().unwrap();
        let local = UnixListener::bind(folder.path().join("socket")).unwrap();
        assert!(what(&local).contains("a Unix socket"));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(what(&file).contains("not a socket"));
    }

    #[test]
    fn a_process_that_was_passed_nothing_has_nothing_to_take() {
        assert!(inherited().unwrap().is_none());
    }
}
