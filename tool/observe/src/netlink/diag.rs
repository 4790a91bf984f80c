//! Sockets by sock_diag(7), which tells the backlog of listeners, the peer of unix sockets, and who sent last.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Attributes, NetlinkSocket, u32_at};
use crate::exchange::{End, Exchange};
use crate::proc::network::{TcpSocket, TcpState};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The older request, which knows no family: one walk through the kernel's table of connections finds those of both. The
/// table is large even where there are few connections.
const TCPDIAG_GETSOCK: u16 = 18;
const AF_UNIX: u8 = libc::AF_UNIX as u8;
const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const IPPROTO_TCP: u8 = libc::IPPROTO_TCP as u8;
/// struct tcp_info.
const INET_DIAG_INFO: u8 = 2;

/// A set of states to request, one bit per kernel state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct States(u32);

impl States {
    const ESTABLISHED: u32 = 1 << 1;
    const TIME_WAIT: u32 = 1 << 6;
    /// Connections that hold a local port: established, or closed a short while ago.
    pub(crate) const HOLDING: Self = Self(Self::ESTABLISHED | Self::TIME_WAIT);
    /// Listeners only.
    pub(crate) const LISTENING: Self = Self(1 << 10);
    /// Listeners and established connections.
    pub(crate) const OPEN: Self = Self(Self::LISTENING.0 | Self::ESTABLISHED);
}

/// The TCP sockets of the namespace, IPv4 and IPv6.
pub(crate) fn tcp_sockets(netlink: &mut NetlinkSocket, states: States) -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    dump_tcp(netlink, states, 0, |reply| sockets.extend(tcp_socket(reply)))?;
    Ok(sockets)
}

/// The TCP sockets that listen or are connected, each with what it tells about the exchange on it.
pub(crate) fn tcp_ends(netlink: &mut NetlinkSocket) -> io::Result<Vec<(TcpSocket, End)>> {
    let mut ends = Vec::new();
    dump_tcp(netlink, States::OPEN, 1 << (INET_DIAG_INFO - 1), |reply| {
        ends.extend(tcp_socket(reply).map(|socket| (socket, end(reply))));
    })?;
    Ok(ends)
}

fn dump_tcp(
    netlink: &mut NetlinkSocket,
    states: States,
    extensions: u8,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    // struct inet_diag_req: family, prefix lengths, extensions, the socket: any, states, reserved.
    let mut request = vec![0, 0, 0, extensions];
    request.resize(52, 0);
    request.extend(states.0.to_ne_bytes());
    request.resize(60, 0);
    if netlink.dump(TCPDIAG_GETSOCK, &request, &mut each).is_ok() {
        return Ok(());
    }
    for family in [AF_INET, AF_INET6] {
        // struct inet_diag_req_v2: family, protocol, extensions, padding, states, then the socket: any.
        let mut request = vec![family, IPPROTO_TCP, extensions, 0];
        request.extend(states.0.to_ne_bytes());
        request.resize(56, 0);
        netlink.dump(SOCK_DIAG_BY_FAMILY, &request, &mut each)?;
    }
    Ok(())
}

/// Parses the queues of struct inet_diag_msg, and struct tcp_info (include/uapi/linux/tcp.h) behind it.
pub(super) fn end(reply: &[u8]) -> End {
    let queue = |at| u32_at(reply, at).unwrap_or(0);
    let info = Attributes::after(reply, 72).find(INET_DIAG_INFO.into()).unwrap_or_default();
    let field = |at| u32_at(info, at);
    End {
        unread: queue(56) > 0,
        unacknowledged: queue(60) > 0,
        exchange: field(156).map(|sent_data_segments| Exchange {
            sent_ms_ago: field(44).unwrap_or(0),
            received_ms_ago: field(52).unwrap_or(0),
            acknowledged_ms_ago: field(56).unwrap_or(0),
            sent_segments: field(136).unwrap_or(0),
            received_segments: field(140).unwrap_or(0),
            received_data_segments: field(152).unwrap_or(0),
            sent_data_segments,
        }),
    }
}

/// Parses struct inet_diag_msg.
pub(super) fn tcp_socket(reply: &[u8]) -> Option<TcpSocket> {
    let family = *reply.first()?;
    let state = TcpState::from_number(*reply.get(1)?);
    let queue = |at| u32_at(reply, at).map(u64::from);
    Some(TcpSocket {
        local: SocketAddr::new(ip(family, reply.get(8..24)?)?, port(reply.get(4..6)?)?),
        remote: SocketAddr::new(ip(family, reply.get(24..40)?)?, port(reply.get(6..8)?)?),
        state,
        receive_queue: queue(56)?,
        backlog: if state == TcpState::Listen { queue(60)? } else { 0 },
        inode: queue(68)?,
    })
}

fn port(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.first_chunk().copied()?))
}

/// Parses an address in network order. IPv4 uses the first of four words.
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
    /// The name to which it is bound; for an accepted socket, its listener's.
    pub(crate) name: Vec<u8>,
    /// Bytes to read; for a listener, the connections waiting to be accepted.
    pub(crate) receive_queue: u64,
}

/// The unix sockets of the namespace.
pub(crate) fn unix_sockets(netlink: &mut NetlinkSocket) -> io::Result<Vec<UnixSocket>> {
    const SHOW_NAME_PEER_AND_QUEUES: u32 = 0x1 | 0x4 | 0x10;
    // struct unix_diag_req: family, protocol, padding, states, inode, what to show, cookie.
    let mut request = vec![AF_UNIX, 0, 0, 0];
    request.extend(States::OPEN.0.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(SHOW_NAME_PEER_AND_QUEUES.to_ne_bytes());
    request.resize(24, 0);
    let mut sockets = Vec::new();
    netlink.dump(SOCK_DIAG_BY_FAMILY, &request, |reply| sockets.extend(unix_socket(reply)))?;
    Ok(sockets)
}

/// Parses struct unix_diag_msg.
pub(super) fn unix_socket(reply: &[u8]) -> Option<UnixSocket> {
    const UNIX_DIAG_NAME: u16 = 0;
    const UNIX_DIAG_PEER: u16 = 2;
    const UNIX_DIAG_RQLEN: u16 = 4;
    let attributes = Attributes::after(reply, 16);
    Some(UnixSocket {
        inode: u32_at(reply, 4)?.into(),
        listening: TcpState::from_number(*reply.get(2)?) == TcpState::Listen,
        peer: attributes.find(UNIX_DIAG_PEER).and_then(|value| u32_at(value, 0)).map(u64::from),
        name: attributes.find(UNIX_DIAG_NAME).unwrap_or_default().to_vec(),
        receive_queue: attributes
            .find(UNIX_DIAG_RQLEN)
            .and_then(|value| u32_at(value, 0))
            .unwrap_or(0)
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::super::NetlinkSockets;
    use super::*;
    use crate::proc::network;

    #[test]
    fn a_listener_with_its_queue_and_backlog() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(bind).unwrap();
            let addr = listener.local_addr().unwrap();
            let _waiting = [TcpStream::connect(addr).unwrap(), TcpStream::connect(addr).unwrap()];
            let sockets =
                tcp_sockets(&mut NetlinkSockets::open(None).unwrap().diag, States::LISTENING).unwrap();
            let found = sockets.iter().find(|socket| socket.local == addr).unwrap();
            assert_eq!((found.state, found.receive_queue), (TcpState::Listen, 2));
            assert!(found.backlog >= 128 && found.inode > 0);
        }
    }

    #[test]
    fn connected_sockets_are_as_in_proc() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let by_netlink = tcp_sockets(&mut NetlinkSockets::open(None).unwrap().diag, States::OPEN).unwrap();
        let by_file = network::tcp_sockets(&std::fs::read_to_string("/proc/net/tcp").unwrap());
        // A local port may be connected to several remote ones.
        let ours = |sockets: &[TcpSocket]| {
            let mut ours = sockets.iter().filter(|socket| (socket.local, socket.remote) == (local, remote));
            ours.next().cloned()
        };
        assert!(ours(&by_netlink).is_some());
        assert_eq!(ours(&by_netlink), ours(&by_file));
    }

    #[test]
    fn a_unix_connection_leads_to_its_listener() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let _accepted = listener.accept().unwrap();
        let sockets = unix_sockets(&mut NetlinkSockets::open(None).unwrap().diag).unwrap();
        let name = path.to_str().unwrap().as_bytes();
        let named: Vec<_> = sockets.iter().filter(|socket| socket.name.starts_with(name)).collect();
        assert_eq!(named.iter().filter(|socket| socket.listening).count(), 1);
        let accepted = named.iter().find(|socket| !socket.listening).unwrap();
        assert!(sockets.iter().any(|socket| socket.peer == Some(accepted.inode)));
    }
}
