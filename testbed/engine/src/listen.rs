//! Listening sockets, and accepting from them.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rustix::{
    io::Errno,
    net::{SocketFlags, acceptfrom_with, bind, getpeername, getsockname, listen, sockopt},
};

use crate::{
    counters::{Counters, Gate, Permit},
    error::EngineError,
    net,
};

/// Opens `count` non-blocking sockets that share one address, and tells which address it is.
pub(crate) fn open(
    address: SocketAddr,
    backlog: u32,
    count: usize,
) -> Result<(SocketAddr, Vec<OwnedFd>), EngineError> {
    let failed = |source| EngineError::listen(address, source);
    let first = bound(address).map_err(failed)?;
    let local = local_address(&first).map_err(failed)?;
    let mut sockets = vec![first];
    if count > 1 {
        // The first socket was bound without sharing, so that a port in use by another server is found out
        // (the system would let two servers of one user share it). Only now may the others join.
        sockopt::set_socket_reuseport(&sockets[0], true).map_err(|errno| failed(errno.into()))?;
    }
    for _ in 1..count {
        sockets.push(sharing(local).map_err(failed)?);
    }
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    for socket in &sockets {
        listen(socket, backlog).map_err(|errno| failed(errno.into()))?;
    }
    Ok((local, sockets))
}

/// Whether a server could listen there now. It may be told so before it makes what a failed start would leave behind.
///
/// # Errors
/// As [`start`](crate::start) where it could not.
pub fn check(address: SocketAddr) -> Result<(), EngineError> {
    bound(address).map(drop).map_err(|source| EngineError::listen(address, source))
}

fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = net::tcp_socket(&address, SocketFlags::NONBLOCK)?;
    // Connections of an earlier run that linger in TIME_WAIT do not hold the port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket)
}

fn sharing(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = net::tcp_socket(&address, SocketFlags::NONBLOCK)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket)
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(getsockname(socket)?)?)
}

/// An accepted connection, with its place among the open ones.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: SocketAddr,
    pub(crate) permit: Permit,
}

/// What accepting came to.
#[derive(Debug)]
pub(crate) enum Accept {
    /// A connection.
    Connection(Accepted),
    /// Nobody waits.
    Empty,
    /// As many connections are open as may be; the worker's notifier is rung when one closes.
    Full,
    /// The system is short of something; better wait a little than spin.
    Exhausted,
}

/// Accepts from one listening socket, within the limit.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: OwnedFd,
    flags: SocketFlags,
    gate: Arc<Gate>,
    trouble: Arc<Trouble>,
}

impl Acceptor {
    /// `flags` hold for the accepted sockets.
    pub(crate) fn new(listener: OwnedFd, flags: SocketFlags, gate: Arc<Gate>, trouble: Arc<Trouble>) -> Self {
        Self { listener, flags: flags | SocketFlags::CLOEXEC, gate, trouble }
    }

    /// Closes a connection unserved.
    pub(crate) fn refuse(&self, accepted: Accepted, error: &io::Error) {
        drop(accepted);
        self.trouble.refused(self.gate.counters(), error);
    }

    /// The next waiting connection. Does not wait for one.
    pub(crate) fn accept(&self) -> Accept {
        let Some(permit) = self.gate.enter() else { return Accept::Full };
        loop {
            match acceptfrom_with(&self.listener, self.flags) {
                Ok((socket, peer)) => {
                    let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) else { continue };
                    permit.count_accepted();
                    return Accept::Connection(Accepted { socket, peer, permit });
                }
                Err(Errno::AGAIN) => return Accept::Empty,
                Err(errno) if concerns_one_connection(errno) => {}
                Err(errno) => return self.failed(errno),
            }
        }
    }

    /// The next of the connections that the kernel has accepted already.
    pub(crate) fn admit(&self, lobby: &mut VecDeque<OwnedFd>) -> Accept {
        while !lobby.is_empty() {
            let Some(permit) = self.gate.enter() else { return Accept::Full };
            let Some(socket) = lobby.pop_front() else { break };
            permit.count_accepted();
            // One that has broken meanwhile has no peer: it has come and gone.
            let peer = getpeername(&socket).ok().flatten();
            let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) else { continue };
            return Accept::Connection(Accepted { socket, peer, permit });
        }
        Accept::Empty
    }

    /// What a failure to accept comes to.
    pub(crate) fn failed(&self, errno: Errno) -> Accept {
        if errno == Errno::AGAIN || concerns_one_connection(errno) {
            return Accept::Empty;
        }
        self.gate.counters().count_accept_error();
        self.trouble.tell(errno);
        Accept::Exhausted
    }

    /// What holds for accepted sockets.
    pub(crate) const fn flags(&self) -> SocketFlags {
        self.flags
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Errors of a connection that broke while it waited to be accepted: accept(2), "Error handling".
fn concerns_one_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::PERM
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
            | Errno::TIMEDOUT
    )
}

/// Says once that accepting fails, and once that a connection is refused; counters tell how often.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    told: AtomicBool,
    told_refusal: AtomicBool,
}

impl Trouble {
    fn tell(&self, errno: Errno) {
        if self.told.swap(true, Relaxed) {
            return;
        }
        let error = io::Error::from(errno);
        tracing::warn!(
            %error,
            "cannot accept connections for now and will keep trying; \
             if descriptors ran out, raise the limit (`ulimit -n`)"
        );
    }

    /// A connection was closed unserved.
    pub(crate) fn refused(&self, counters: &Counters, error: &io::Error) {
        counters.count_refused();
        if self.told_refusal.swap(true, Relaxed) {
            tracing::debug!(%error, "a connection was closed unserved");
        } else {
            tracing::warn!(%error, "a connection was closed unserved; others will only be counted");
        }
    }
}
