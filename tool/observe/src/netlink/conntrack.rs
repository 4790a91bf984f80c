//! Address translation of connections, as connection tracking tells it (ctnetlink; needs root).

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::NETFILTER;

use super::{Attributes, NetlinkSocket, attribute, inside};
use crate::topology::namespaces::Namespace;

/// `IPCTNL_MSG_CT_GET` of `NFNL_SUBSYS_CTNETLINK`.
const GET: u16 = 0x101;
const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;
const IPPROTO_TCP: u8 = libc::IPPROTO_TCP as u8;
const NESTED: u16 = 0x8000;
/// struct nfgenmsg.
const HEADER: usize = 4;

/// `CTA_TUPLE_ORIG`, `CTA_TUPLE_REPLY`.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
/// `CTA_TUPLE_IP`, and in it `CTA_IP_V4_SRC`; the destination follows. Those of IPv6 are two later.
const ADDRESSES: u16 = 1;
const V4_SOURCE: u16 = 1;
const V6_SOURCE: u16 = 3;
/// `CTA_TUPLE_PROTO`, and in it `CTA_PROTO_NUM`, `CTA_PROTO_SRC_PORT`, `CTA_PROTO_DST_PORT`.
const PROTOCOL: u16 = 2;
const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// The two ends of a TCP connection, as somebody sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tuple {
    /// From where it comes.
    pub(crate) client: SocketAddr,
    /// Where it leads.
    pub(crate) server: SocketAddr,
}

/// Opens a socket that asks about the connections of a namespace.
pub(crate) fn open(namespace: &Namespace) -> io::Result<NetlinkSocket> {
    let here = || NetlinkSocket::open(Some(NETFILTER));
    match namespace.entrance() {
        Some(path) => inside(&path, here)?,
        None => here(),
    }
}

/// The ends of a connection behind all translation in the namespace of the socket; `None` where it is not tracked.
pub(crate) fn behind(netlink: &mut NetlinkSocket, tuple: Tuple) -> io::Result<Option<Tuple>> {
    let mut found = None;
    let asked = netlink.get(GET, &question(tuple), |reply| found = answer(reply, tuple));
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(found),
    }
}

/// What the server sees of a connection that begins as this tuple.
pub(super) fn answer(reply: &[u8], asked: Tuple) -> Option<Tuple> {
    let attributes = Attributes::after(reply, HEADER);
    let original = tuple(attributes.nested(ORIGINAL))?;
    // Replies come from the server, whatever address the client knows.
    let Tuple { client: server, server: client } = tuple(attributes.nested(REPLY))?;
    (original == asked).then_some(Tuple { client, server })
}

fn question(Tuple { client, server }: Tuple) -> Vec<u8> {
    let (family, source_kind) = if client.is_ipv4() { (AF_INET, V4_SOURCE) } else { (AF_INET6, V6_SOURCE) };
    let addresses =
        [attribute(source_kind, &bytes(client.ip())), attribute(source_kind + 1, &bytes(server.ip()))];
    let protocol = [
        attribute(NUMBER, &[IPPROTO_TCP]),
        attribute(SOURCE_PORT, &client.port().to_be_bytes()),
        attribute(DESTINATION_PORT, &server.port().to_be_bytes()),
    ];
    let nested = |kind: u16, value: &[u8]| attribute(kind | NESTED, value);
    let tuple = [nested(ADDRESSES, &addresses.concat()), nested(PROTOCOL, &protocol.concat())];
    let mut question = vec![family, 0, 0, 0];
    question.extend(nested(ORIGINAL, &tuple.concat()));
    question
}

fn bytes(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn tuple(attributes: Attributes<'_>) -> Option<Tuple> {
    let (addresses, protocol) = (attributes.nested(ADDRESSES), attributes.nested(PROTOCOL));
    let ip = |later: u16| {
        let v4 = addresses.find(V4_SOURCE + later).and_then(|bytes| bytes.first_chunk::<4>());
        let v6 = || addresses.find(V6_SOURCE + later).and_then(|bytes| bytes.first_chunk::<16>());
        v4.map(|octets| IpAddr::from(*octets)).or_else(|| v6().map(|octets| IpAddr::from(*octets)))
    };
    let port = |kind| Some(u16::from_be_bytes(*protocol.find(kind)?.first_chunk()?));
    Some(Tuple {
        client: SocketAddr::new(ip(0)?, port(SOURCE_PORT)?),
        server: SocketAddr::new(ip(1)?, port(DESTINATION_PORT)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple_of(client: &str, server: &str) -> Tuple {
        Tuple { client: client.parse().unwrap(), server: server.parse().unwrap() }
    }

    /// What the kernel answers: the tuple that was asked for, and that of the replies.
    fn reply(original: Tuple, replies: Tuple) -> Vec<u8> {
        let mut reply = question(original);
        let mut second = question(replies).split_off(HEADER);
        second[2] = REPLY as u8;
        reply.extend(second);
        reply
    }

    #[test]
    fn the_server_is_where_replies_come_from() {
        for (client, service, server) in [
            ("10.0.0.1:40000", "10.96.0.10:80", "10.0.0.7:8080"),
            ("[fd00::1]:40000", "[fd00:9::1]:80", "[fd00::7]:8080"),
        ] {
            let (asked, replies) = (tuple_of(client, service), tuple_of(server, client));
            assert_eq!(answer(&reply(asked, replies), asked), Some(tuple_of(client, server)));
            assert_eq!(answer(&reply(asked, replies), replies), None, "another connection");
        }
    }

    #[test]
    fn an_answer_cut_short_says_nothing() {
        let asked = tuple_of("10.0.0.1:40000", "10.96.0.10:80");
        let whole = reply(asked, tuple_of("10.0.0.7:8080", "10.0.0.1:40000"));
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length], asked), None, "{length} bytes");
        }
    }
}
