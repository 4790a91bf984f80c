//! Sockets by sock_diag(7): for listeners the backlog, for unix sockets the peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Attributes, Socket as Netlink, u32_at};
use crate::proc::tcp::{Socket, State};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_UNIX: u8 = libc::AF_UNIX as u8;
const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const IPPROTO_TCP: u8 = libc::IPPROTO_TCP as u8;

/// Sets of states to ask for: one bit per kernel state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct States(u32);

impl States {
    const ESTABLISHED: u32 = 1 << 1;
    /// Listeners only.
    pub(crate) const LISTENING: Self = Self(1 << 10);
    /// Listeners and established connections.
    pub(crate) const OPEN: Self = Self(Self::LISTENING.0 | Self::ESTABLISHED);
}

/// TCP sockets of the namespace, IPv4 and IPv6.
pub(crate) fn tcp_sockets(netlink: &mut Netlink, states: States) -> io::Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    for family in [AF_INET, AF_INET6] {
        // struct inet_diag_req_v2: family, protocol, extensions, padding, states, then which socket: any.
        let mut request = vec![family, IPPROTO_TCP, 0, 0];
        request.extend(states.0.to_ne_bytes());
        request.resize(56, 0);
        netlink.dump(SOCK_DIAG_BY_FAMILY, &request, |answer| sockets.extend(tcp_socket(answer)))?;
    }
    Ok(sockets)
}

/// struct inet_diag_msg.
pub(super) fn tcp_socket(answer: &[u8]) -> Option<Socket> {
    let family = *answer.first()?;
    let state = State::from_number(*answer.get(1)?);
    let queue = |at| u32_at(answer, at).map(u64::from);
    Some(Socket {
        local: SocketAddr::new(ip(family, answer.get(8..24)?)?, port(answer.get(4..6)?)?),
        remote: SocketAddr::new(ip(family, answer.get(24..40)?)?, port(answer.get(6..8)?)?),
        state,
        receive_queue: queue(56)?,
        backlog: if state == State::Listen { queue(60)? } else { 0 },
        inode: queue(68)?,
    })
}

fn port(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.first_chunk().copied()?))
}

/// Addresses are in network order; IPv4 takes the first of four words.
fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => Some(Ipv4Addr::from(bytes.first_chunk::<4>().copied()?).into()),
        AF_INET6 => Some(IpAddr::from(Ipv6Addr::from(bytes.first_chunk::<16>().copied()?)).to_canonical()),
        _ => None,
    }
}

/// A unix stream socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnixSocket {
    pub(crate) inode: u64,
    pub(crate) listening: bool,
    /// The other end.
    pub(crate) peer: Option<u64>,
    /// The name it is bound to; that of its listener for an accepted one.
    pub(crate) name: Vec<u8>,
}

/// Unix sockets of the namespace.
pub(crate) fn unix_sockets(netlink: &mut Netlink) -> io::Result<Vec<UnixSocket>> {
    const SHOW_NAME_AND_PEER: u32 = 0x1 | 0x4;
    // struct unix_diag_req: family, protocol, padding, states, inode, what to show, cookie.
    let mut request = vec![AF_UNIX, 0, 0, 0];
    request.extend(States::OPEN.0.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(SHOW_NAME_AND_PEER.to_ne_bytes());
    request.resize(24, 0);
    let mut sockets = Vec::new();
    netlink.dump(SOCK_DIAG_BY_FAMILY, &request, |answer| sockets.extend(unix_socket(answer)))?;
    Ok(sockets)
}

/// struct unix_diag_msg.
pub(super) fn unix_socket(answer: &[u8]) -> Option<UnixSocket> {
    const UNIX_DIAG_NAME: u16 = 0;
    const UNIX_DIAG_PEER: u16 = 2;
    let attributes = Attributes::after(answer, 16);
    Some(UnixSocket {
        inode: u32_at(answer, 4)?.into(),
        listening: State::from_number(*answer.get(2)?) == State::Listen,
        peer: attributes.find(UNIX_DIAG_PEER).and_then(|value| u32_at(value, 0)).map(u64::from),
        name: attributes.find(UNIX_DIAG_NAME).unwrap_or_default().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::super::View;
    use super::*;

    #[test]
    fn a_listener_with_its_queue_and_backlog() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(bind).unwrap();
            let addr = listener.local_addr().unwrap();
            let _waiting = [TcpStream::connect(addr).unwrap(), TcpStream::connect(addr).unwrap()];
            let sockets = tcp_sockets(&mut View::open(None).unwrap().diag, States::LISTENING).unwrap();
            let found = sockets.iter().find(|socket| socket.local == addr).unwrap();
            assert_eq!((found.state, found.receive_queue), (State::Listen, 2));
            assert!(found.backlog >= 128 && found.inode > 0);
        }
    }

    #[test]
    fn connected_sockets_are_as_in_proc() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let told = tcp_sockets(&mut View::open(None).unwrap().diag, States::OPEN).unwrap();
        let read = crate::proc::tcp::parse(&std::fs::read_to_string("/proc/net/tcp").unwrap());
        // A local port may be in use towards several remote ones.
        let ours = |sockets: &[Socket]| {
            let mut ours = sockets.iter().filter(|socket| (socket.local, socket.remote) == (local, remote));
            ours.next().cloned()
        };
        assert!(ours(&told).is_some());
        assert_eq!(ours(&told), ours(&read));
    }

    #[test]
    fn a_unix_connection_leads_to_its_listener() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let _accepted = listener.accept().unwrap();
        let sockets = unix_sockets(&mut View::open(None).unwrap().diag).unwrap();
        let name = path.to_str().unwrap().as_bytes();
        let named: Vec<_> = sockets.iter().filter(|socket| socket.name.starts_with(name)).collect();
        assert_eq!(named.iter().filter(|socket| socket.listening).count(), 1);
        let accepted = named.iter().find(|socket| !socket.listening).unwrap();
        assert!(sockets.iter().any(|socket| socket.peer == Some(accepted.inode)));
    }
}
