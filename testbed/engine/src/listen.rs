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
    net::{
        Shutdown, SocketFlags, acceptfrom_with, bind, getpeername, getsockname, listen, shutdown, sockopt,
    },
};

use crate::{
    connection_limit::{ConnectionLimit, Permit},
    counters::Counters,
    error::EngineError,
    net,
    options::Options,
};

/// Sockets of one address, for [`Options::bound`]: bound by this process, or passed to it.
#[derive(Clone, Debug)]
pub struct Listeners {
    address: SocketAddr,
    sockets: Arc<[OwnedFd]>,
}

impl Listeners {
    /// Binds `count` sockets to one address, at which nobody is answered yet.
    ///
    /// # Errors
    /// When the address is in use, reserved, or not one of this host.
    pub fn bind(address: SocketAddr, count: usize) -> Result<Self, EngineError> {
        let failed = |source| EngineError::listen(address, source);
        let first = bound(address).map_err(failed)?;
        let local = local_address(&first).map_err(failed)?;
        let mut sockets = vec![first];
        if count > 1 {
            // The first socket was bound without SO_REUSEPORT, so that a port that another server uses is detected: the
            // system would let two servers of one user share it. Only now may the others join.
            sockopt::set_socket_reuseport(&sockets[0], true).map_err(|errno| failed(errno.into()))?;
        }
        for _ in 1..count {
            sockets.push(sharing(local).map_err(failed)?);
        }
        Ok(Self { address: local, sockets: sockets.into() })
    }

    /// Sockets that are bound to `address` already.
    pub(crate) fn of(address: SocketAddr, sockets: Vec<OwnedFd>) -> Self {
        Self { address, sockets: sockets.into() }
    }

    /// The address of all of them.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// Ends what an earlier start has the sockets beyond the first `count` listen to: clients that the system gives to one
    /// that nobody accepts from would wait for ever.
    fn keep_quiet_beyond(&self, count: usize) {
        let listens = |socket: &&OwnedFd| sockopt::socket_acceptconn(socket).unwrap_or(false);
        for unused in self.sockets.iter().skip(count).filter(listens) {
            // One that does not listen would keep the mark, and its connections with it.
            let _ = shutdown(unused, Shutdown::Both);
        }
    }

    /// Descriptors for `count` loops, some of which may stand for the same socket.
    fn duplicated(&self, count: usize) -> io::Result<Vec<OwnedFd>> {
        self.sockets.iter().cycle().take(count).map(OwnedFd::try_clone).collect()
    }
}

/// Opens `count` non-blocking listening sockets on the address of the options. Returns that address and the sockets.
pub(crate) fn open(options: &Options, count: usize) -> Result<(SocketAddr, Vec<OwnedFd>), EngineError> {
    let bound = match &options.bound {
        Some(bound) => bound.clone(),
        None => Listeners::bind(options.listen, count)?,
    };
    let failed = |source| EngineError::listen(bound.address, source);
    bound.keep_quiet_beyond(count);
    let sockets = bound.duplicated(count).map_err(failed)?;
    let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
    for socket in &sockets {
        listen(socket, backlog).map_err(|errno| failed(errno.into()))?;
    }
    Ok((bound.address, sockets))
}

fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = net::tcp_socket(&address, SocketFlags::NONBLOCK)?;
    // Connections of an earlier run that are still in TIME_WAIT must not block the port.
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

/// The outcome of accepting.
#[derive(Debug)]
pub(crate) enum Accept {
    /// A connection.
    Connection(Accepted),
    /// A connection was closed unserved, because its client has as many as it may. Others may wait behind it.
    Refused,
    /// No client waits.
    Empty,
    /// The connection limit is reached. The caller's notifier is signalled when a connection closes.
    Full,
    /// The system is out of descriptors or memory. The caller should pause rather than spin.
    Exhausted,
}

/// Accepts from one listening socket, within the connection limit.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: OwnedFd,
    flags: SocketFlags,
    limit: Arc<ConnectionLimit>,
    log: Arc<AcceptLog>,
}

impl Acceptor {
    /// `flags` apply to the accepted sockets.
    pub(crate) fn new(
        listener: OwnedFd,
        flags: SocketFlags,
        limit: Arc<ConnectionLimit>,
        log: Arc<AcceptLog>,
    ) -> Self {
        Self { listener, flags: flags | SocketFlags::CLOEXEC, limit, log }
    }

    /// Closes a connection unserved.
    pub(crate) fn refuse(&self, accepted: Accepted, error: &io::Error) {
        drop(accepted);
        self.log.refused(self.limit.counters(), error);
    }

    /// Accepts the next waiting connection, without waiting for one. It returns after each one that it refuses too: a client may
    /// connect faster than it is refused, and what else the caller does must not wait for that to end.
    pub(crate) fn accept(&self) -> Accept {
        let Some(mut permit) = self.limit.acquire() else { return Accept::Full };
        loop {
            match acceptfrom_with(&self.listener, self.flags) {
                Ok((socket, peer)) => {
                    let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) else { continue };
                    match permit.count_accepted(peer) {
                        Ok(()) => return Accept::Connection(Accepted { socket, peer, permit }),
                        Err(error) => return self.refused(&error),
                    }
                }
                Err(Errno::AGAIN) => return Accept::Empty,
                Err(errno) if concerns_one_connection(errno) => {}
                Err(errno) => return self.failed(errno),
            }
        }
    }

    /// Accepts the next client that had connected before the server began to stop. `refusals` is how many waiting connections
    /// may still be refused for it, so that a client that goes on connecting does not hold up the stop.
    pub(crate) fn accept_last(&self, refusals: &mut usize) -> Option<Accepted> {
        loop {
            match self.accept() {
                Accept::Connection(accepted) => return Some(accepted),
                Accept::Refused if *refusals > 0 => *refusals -= 1,
                Accept::Refused | Accept::Empty | Accept::Full | Accept::Exhausted => return None,
            }
        }
    }

    fn refused(&self, error: &io::Error) -> Accept {
        self.log.refused(self.limit.counters(), error);
        Accept::Refused
    }

    /// Admits the next of the connections that the kernel has already accepted.
    pub(crate) fn admit(&self, accepted: &mut VecDeque<OwnedFd>) -> Accept {
        while !accepted.is_empty() {
            let Some(mut permit) = self.limit.acquire() else { return Accept::Full };
            let Some(socket) = accepted.pop_front() else { break };
            // A connection that has broken meanwhile has no peer.
            let peer = getpeername(&socket).ok().flatten();
            let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) else {
                self.limit.counters().count_accepted();
                continue;
            };
            match permit.count_accepted(peer) {
                Ok(()) => return Accept::Connection(Accepted { socket, peer, permit }),
                Err(error) => return self.refused(&error),
            }
        }
        Accept::Empty
    }

    /// Counts and logs a failure to accept, and returns what it means for the caller.
    pub(crate) fn failed(&self, errno: Errno) -> Accept {
        if errno == Errno::AGAIN || concerns_one_connection(errno) {
            return Accept::Empty;
        }
        self.limit.counters().count_accept_error();
        self.log.failed(errno);
        Accept::Exhausted
    }

    /// How many clients wait to be accepted.
    pub(crate) fn waiting(&self) -> usize {
        net::listen_queue(&self.listener)
    }

    /// The flags of accepted sockets.
    pub(crate) const fn flags(&self) -> SocketFlags {
        self.flags
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Whether this is the error of one connection that broke before it was accepted: accept(2), "Error handling".
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

/// Logs the first failure to accept and the first refused connection. Counters tell how many followed.
#[derive(Debug, Default)]
pub(crate) struct AcceptLog {
    failure_logged: AtomicBool,
    refusal_logged: AtomicBool,
}

impl AcceptLog {
    fn failed(&self, errno: Errno) {
        if self.failure_logged.swap(true, Relaxed) {
            return;
        }
        let error = io::Error::from(errno);
        tracing::warn!(
            %error,
            "cannot accept connections for now and will keep trying; \
             if descriptors ran out, raise the limit (`ulimit -n`)"
        );
    }

    /// Counts and logs a connection that was closed unserved.
    pub(crate) fn refused(&self, counters: &Counters, error: &io::Error) {
        counters.count_refused();
        if self.refusal_logged.swap(true, Relaxed) {
            tracing::debug!(%error, "a connection was closed unserved");
        } else {
            tracing::warn!(%error, "a connection was closed unserved; others will only be counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, TcpStream},
        time::{Duration, Instant},
    };

    use super::*;
    use crate::control::Control;

    /// An acceptor that gives each client one place, with so many connections of one client that wait.
    fn one_each(waiting: usize) -> (Acceptor, Vec<TcpStream>) {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = Options { max_connections_per_client: Some(1), ..Options::new(any) };
        let (address, mut sockets) = open(&options, 1).unwrap();
        let limit = Arc::new(ConnectionLimit::new(&options, Arc::new(Control::new(Vec::new()))));
        let listener = sockets.pop().unwrap();
        let acceptor = Acceptor::new(listener, SocketFlags::NONBLOCK, limit, Arc::default());
        let clients = (0..waiting).map(|_| TcpStream::connect(address).unwrap()).collect();
        let end = Instant::now() + Duration::from_secs(20);
        while acceptor.waiting() < waiting {
            assert!(Instant::now() < end, "the clients connect");
            std::thread::yield_now();
        }
        (acceptor, clients)
    }

    #[test]
    fn the_caller_has_its_turn_after_each_refused_connection() {
        let (acceptor, _clients) = one_each(4);
        let held = acceptor.accept();
        assert!(matches!(held, Accept::Connection(_)));
        for left in [2, 1, 0] {
            assert!(matches!(acceptor.accept(), Accept::Refused));
            assert_eq!(acceptor.waiting(), left);
        }
        assert!(matches!(acceptor.accept(), Accept::Empty));
    }

    #[test]
    fn a_client_that_goes_on_connecting_does_not_hold_up_a_stop() {
        let (acceptor, _clients) = one_each(4);
        let mut refusals = 1;
        let held = acceptor.accept_last(&mut refusals);
        assert!(held.is_some());
        assert!(acceptor.accept_last(&mut refusals).is_none());
        assert_eq!((refusals, acceptor.waiting()), (0, 1));
    }
}
