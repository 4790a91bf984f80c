//! Address translation of connections, as connection tracking tells it (ctnetlink; needs root).

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

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
/// `CTA_STATUS`, and in it `IPS_OFFLOAD`.
const STATUS: u16 = 3;
const OFFLOADED: u32 = 1 << 14;
/// `CTA_PROTOINFO`, and in it `CTA_PROTOINFO_TCP`, and in that `CTA_PROTOINFO_TCP_STATE`.
const PROTOCOL_INFO: u16 = 4;
const TCP_INFO: u16 = 1;
const TCP_STATE: u16 = 1;
/// `TCP_CONNTRACK_ESTABLISHED`; then the states of a connection that ends, from `_FIN_WAIT` to `_CLOSE`.
const ESTABLISHED: u8 = 3;
const FIN_WAIT: u8 = 4;
const CLOSE: u8 = 8;
/// `CTA_TIMEOUT`, in seconds.
const TIMEOUT: u16 = 7;
/// `CTA_FILTER`, and in it `CTA_FILTER_ORIG_FLAGS`: by which parts of the original tuple a dump is filtered. Linux before 5.8 does
/// not know it, and dumps all of the family.
const FILTER: u16 = 25;
const ORIGINAL_FLAGS: u16 = 1;
/// `CTA_FILTER_F_CTA_IP_DST`, `_PROTO_NUM` and `_PROTO_DST_PORT`.
const BY_DESTINATION: u32 = (1 << 1) | (1 << 3) | (1 << 5);

/// Most tracked connections that are read to see where an address leads.
const ENTRIES_MAX: usize = 4_096;

/// Most addresses that one leads to, as far as they are told.
const SERVERS_MAX: usize = 16;

/// An address whose connections had their last packet so much earlier than those of another may be out of use, seconds.
const IDLE_S: u32 = 60;

/// The same of an address whose connections have all ended: another service may have it sooner, as after a restart.
const ENDED_S: u32 = 1;

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

/// One of the two who see a connection, each with the other's address as translation leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The one that made it.
    Client,
    /// The one that accepted it.
    Server,
}

/// Connections to an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called<'a> {
    /// The address, as clients know it.
    pub(crate) service: SocketAddr,
    /// The addresses of the host whose connections count, loopback aside. They all take one way, so that the last of them tells
    /// whether they are translated. `None`: connections of anybody count, which may take several.
    pub(crate) from: Option<&'a BTreeSet<IpAddr>>,
}

impl Called<'_> {
    fn includes(self, entry: &Entry) -> bool {
        let client = entry.begun.client.ip();
        let is_from_there = self.from.is_none_or(|own| client.is_loopback() || own.contains(&client));
        entry.begun.server == self.service && is_from_there
    }
}

/// For how long the kernel keeps a connection after its last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// One that is established, where nothing is left to acknowledge (`nf_conntrack_tcp_timeout_established`), seconds.
    pub(crate) established_s: u32,
    /// Where something is (`nf_conntrack_tcp_timeout_unacknowledged`), seconds.
    pub(crate) unacknowledged_s: u32,
    /// One that ends, by its state: `nf_conntrack_tcp_timeout_fin_wait`, `_close_wait`, `_last_ack`, `_time_wait` and `_close`,
    /// seconds.
    pub(crate) ending_s: [u32; 5],
}

impl Timeouts {
    /// How long ago the last packet came, of a connection in one of the states in which it ends; seconds.
    fn ending_idle_s(self, state: u8, left_s: u32) -> Option<u32> {
        let whole_s = self.ending_s.get(usize::from(state.checked_sub(FIN_WAIT)?))?;
        Some(whole_s.saturating_sub(left_s))
    }

    /// How long ago the last packet came, of an established connection that is kept for so long from now; seconds.
    fn idle_s(self, left_s: u32) -> u32 {
        // A busy connection has mostly something to acknowledge, and then less time left than an idle one.
        let is_acknowledged = left_s > self.unacknowledged_s;
        let unacknowledged_s = self.unacknowledged_s.min(self.established_s);
        let whole_s = if is_acknowledged { self.established_s } else { unacknowledged_s };
        whole_s.saturating_sub(left_s)
    }
}

/// What connection tracking knows of the use of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It is not established yet, or in a state that is not known.
    NotOpen,
    /// It is established, and forgotten after so many seconds without a packet.
    Established { left_s: u32 },
    /// It ends or has ended, and is forgotten after so many seconds: entries outlast their connections by minutes.
    Ending { state: u8, left_s: u32 },
    /// Its packets pass by connection tracking, which takes it back when they cease.
    Offloaded,
}

impl Activity {
    fn of(entry: Attributes<'_>) -> Self {
        let number = |kind| Some(u32::from_be_bytes(*entry.find(kind)?.first_chunk()?));
        if number(STATUS).is_some_and(|status| status & OFFLOADED != 0) {
            return Self::Offloaded;
        }
        let state = entry.nested(PROTOCOL_INFO).nested(TCP_INFO).find(TCP_STATE);
        match (state, number(TIMEOUT)) {
            (Some([ESTABLISHED]), Some(left_s)) => Self::Established { left_s },
            (Some([state @ FIN_WAIT..=CLOSE]), Some(left_s)) => Self::Ending { state: *state, left_s },
            _ => Self::NotOpen,
        }
    }
}

/// A tracked connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// As its client sees it.
    begun: Tuple,
    /// As its server sees it.
    served: Tuple,
    activity: Activity,
}

impl Entry {
    /// What the other side sees of the connection of which this side sees the tuple; `None` if this is another one.
    fn other_side(self, tuple: Tuple, side: Side) -> Option<Tuple> {
        let (this, other) = match side {
            Side::Client => (self.begun, self.served),
            Side::Server => (self.served, self.begun),
        };
        (this == tuple).then_some(other)
    }

    /// When it was used last; `None` if it was not open yet.
    fn idle(self, timeouts: Timeouts) -> Option<Idle> {
        let open = |seconds| Idle { seconds, has_ended: false };
        match self.activity {
            Activity::NotOpen => None,
            Activity::Established { left_s } => Some(open(timeouts.idle_s(left_s))),
            Activity::Ending { state, left_s } => {
                timeouts.ending_idle_s(state, left_s).map(|seconds| Idle { seconds, has_ended: true })
            }
            Activity::Offloaded => Some(open(0)),
        }
    }
}

/// When a connection was used last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Idle {
    /// How long ago its last packet came.
    seconds: u32,
    has_ended: bool,
}

impl Idle {
    /// Whether what it leads to is in use, given the connection that was used last.
    fn is_in_use(self, last: Self) -> bool {
        let most_s = if self.has_ended { ENDED_S } else { IDLE_S };
        self.seconds.saturating_sub(last.seconds) <= most_s
    }
}

/// What the other side sees of a connection beyond all translation in the namespace of the socket; `None` where it is not
/// tracked.
pub(crate) fn other_side(netlink: &mut NetlinkSocket, tuple: Tuple, side: Side) -> io::Result<Option<Tuple>> {
    let mut found = None;
    let asked = netlink.get(GET, &question(tuple, side), |reply| found = entry(reply));
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(found.and_then(|entry| entry.other_side(tuple, side))),
    }
}

/// The addresses to which connections to an address are translated in the namespace of the socket, without those that were
/// last used long before others; of very many not all.
pub(crate) fn leads_to(
    netlink: NetlinkSocket,
    called: Called<'_>,
    timeouts: Timeouts,
) -> io::Result<BTreeSet<SocketAddr>> {
    let mut found = Vec::new();
    let mut entries = 0;
    netlink.dump_until(GET, &all_to(called.service), |reply| {
        found.extend(entry(reply));
        entries += 1;
        if entries >= ENTRIES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(in_use(&found, called, timeouts))
}

/// The addresses to which these connections are translated, as far as they are in use. Connections whose ends are gone without
/// a word stay established for days, and the address may be another service's by then.
fn in_use(entries: &[Entry], called: Called<'_>, timeouts: Timeouts) -> BTreeSet<SocketAddr> {
    let seen = entries.iter().filter(|entry| called.includes(entry));
    let seen = seen.filter_map(|entry| Some((entry.idle(timeouts)?, entry.served.server)));
    let (plain, mut led): (Vec<_>, Vec<_>) = seen.partition(|(_, server)| *server == called.service);
    led.sort_unstable();
    let Some(last) = led.first().map(|(idle, _)| *idle) else { return BTreeSet::new() };
    let is_plain = plain.iter().any(|(idle, _)| idle.seconds <= last.seconds);
    if called.from.is_some() && is_plain {
        return BTreeSet::new();
    }
    let mut servers = BTreeSet::new();
    for (_, server) in led.into_iter().filter(|(idle, _)| idle.is_in_use(last)) {
        if servers.len() < SERVERS_MAX {
            servers.insert(server);
        }
    }
    servers
}

/// Parses struct nfgenmsg and the attributes of a TCP connection.
pub(super) fn entry(reply: &[u8]) -> Option<Entry> {
    let attributes = Attributes::after(reply, HEADER);
    let begun = tuple(attributes.nested(ORIGINAL))?;
    // Replies come from the server, whatever address the client knows.
    let Tuple { client: server, server: client } = tuple(attributes.nested(REPLY))?;
    Some(Entry { begun, served: Tuple { client, server }, activity: Activity::of(attributes) })
}

/// Asks about the connection of which one side sees this tuple.
fn question(tuple: Tuple, side: Side) -> Vec<u8> {
    let Tuple { client, server } = tuple;
    let (kind, source, destination) = match side {
        Side::Client => (ORIGINAL, client, server),
        Side::Server => (REPLY, server, client),
    };
    let (family, source_kind) = if client.is_ipv4() { (AF_INET, V4_SOURCE) } else { (AF_INET6, V6_SOURCE) };
    let addresses =
        [attribute(source_kind, &bytes(source.ip())), attribute(source_kind + 1, &bytes(destination.ip()))];
    let protocol = [
        attribute(NUMBER, &[IPPROTO_TCP]),
        attribute(SOURCE_PORT, &source.port().to_be_bytes()),
        attribute(DESTINATION_PORT, &destination.port().to_be_bytes()),
    ];
    let tuple = [nested(ADDRESSES, &addresses.concat()), nested(PROTOCOL, &protocol.concat())];
    let mut question = vec![family, 0, 0, 0];
    question.extend(nested(kind, &tuple.concat()));
    question
}

/// Asks about all connections that clients made to an address.
fn all_to(service: SocketAddr) -> Vec<u8> {
    let nobody: IpAddr =
        if service.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let tuple = Tuple { client: SocketAddr::new(nobody, 0), server: service };
    let mut question = question(tuple, Side::Client);
    question.extend(nested(FILTER, &attribute(ORIGINAL_FLAGS, &BY_DESTINATION.to_ne_bytes())));
    question
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, value)
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
    if protocol.find(NUMBER)? != [IPPROTO_TCP] {
        return None;
    }
    Some(Tuple {
        client: SocketAddr::new(ip(0)?, port(SOURCE_PORT)?),
        server: SocketAddr::new(ip(1)?, port(DESTINATION_PORT)?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tuple_of(client: &str, server: &str) -> Tuple {
        Tuple { client: client.parse().unwrap(), server: server.parse().unwrap() }
    }

    /// What the kernel answers: the tuple that the client began with, and that of the replies to it.
    fn reply(begun: Tuple, served: Tuple) -> Vec<u8> {
        let mut reply = question(begun, Side::Client);
        reply.extend(question(served, Side::Server).split_off(HEADER));
        reply
    }

    /// Two connections whose ends are of one family.
    fn tuples() -> impl Strategy<Value = [Tuple; 2]> {
        let v4 = any::<[([u8; 4], u16); 4]>().prop_map(|ends| ends.map(SocketAddr::from));
        let v6 = any::<[([u8; 16], u16); 4]>().prop_map(|ends| ends.map(SocketAddr::from));
        let tuple = |client, server| Tuple { client, server };
        prop_oneof![v4, v6].prop_map(move |[a, b, c, d]| [tuple(a, b), tuple(c, d)])
    }

    proptest! {
        #[test]
        fn an_entry_comes_back_and_cut_short_says_nothing([begun, served] in tuples()) {
            let whole = reply(begun, served);
            let activity = Activity::NotOpen;
            prop_assert_eq!(entry(&whole), Some(Entry { begun, served, activity }));
            (0..whole.len()).for_each(|length| assert_eq!(entry(&whole[..length]), None, "{length} bytes"));
        }

        #[test]
        fn either_side_of_a_connection_leads_to_the_other([begun, served] in tuples()) {
            let entry = Entry { begun, served, activity: Activity::NotOpen };
            prop_assert_eq!(entry.other_side(begun, Side::Client), Some(served));
            prop_assert_eq!(entry.other_side(served, Side::Server), Some(begun));
        }
    }

    #[test]
    fn the_server_is_where_replies_come_from() {
        for (client, seen, service, server) in [
            ("10.0.0.1:40000", "10.0.0.1:40000", "10.96.0.10:80", "10.0.0.7:8080"),
            ("10.0.0.1:40000", "172.17.0.1:1025", "10.0.0.9:8080", "172.17.0.2:80"),
            ("[fd00::1]:40000", "[fd00::1]:40000", "[fd00:9::1]:80", "[fd00::7]:8080"),
        ] {
            let (begun, served) = (tuple_of(client, service), tuple_of(seen, server));
            let found = entry(&reply(begun, served)).unwrap();
            assert_eq!(found.other_side(begun, Side::Client), Some(served));
            assert_eq!(found.other_side(served, Side::Server), Some(begun));
            assert_eq!(found.other_side(tuple_of(server, client), Side::Client), None, "another one");
        }
    }

    const TIMEOUTS: Timeouts =
        Timeouts { established_s: 432_000, unacknowledged_s: 300, ending_s: [120, 60, 30, 120, 10] };

    const SERVICE: &str = "10.96.0.10:80";

    /// What the kernel answers about a connection to the service that this address serves, but for its activity.
    fn reply_of(server: &str) -> Vec<u8> {
        let client = "10.0.0.1:40000";
        reply(tuple_of(client, SERVICE), tuple_of(client, server))
    }

    /// The same of a connection in a state of TCP, with the seconds for which it is kept.
    fn in_state(server: &str, state: u8, left_s: u32) -> Entry {
        let mut reply = reply_of(server);
        reply.extend(attribute(TIMEOUT, &left_s.to_be_bytes()));
        let state = attribute(TCP_STATE, &[state]);
        reply.extend(nested(PROTOCOL_INFO, &nested(TCP_INFO, &state)));
        entry(&reply).unwrap()
    }

    fn used_by(entries: &[Entry], from: Option<&BTreeSet<IpAddr>>) -> Vec<String> {
        let servers = in_use(entries, Called { service: SERVICE.parse().unwrap(), from }, TIMEOUTS);
        servers.iter().map(SocketAddr::to_string).collect()
    }

    fn used(entries: &[Entry]) -> Vec<String> {
        used_by(entries, None)
    }

    /// The same of a connection that ended so many seconds ago (`TCP_CONNTRACK_TIME_WAIT`).
    fn ended(server: &str, idle_s: u32) -> Entry {
        in_state(server, 7, 120 - idle_s)
    }

    #[test]
    fn connections_lead_somewhere_once_they_are_established() {
        // From TCP_CONNTRACK_NONE to _SYN_SENT2.
        for state in 0..=9 {
            let is_used = used(&[in_state("10.0.0.7:8080", state, 9)]) == ["10.0.0.7:8080"];
            assert_eq!(is_used, (3..=8).contains(&state), "state {state}");
        }
        let untold = entry(&reply_of("10.0.0.7:8080")).unwrap();
        assert!(used(&[untold]).is_empty(), "neither state nor time-out");
        assert!(used(&[in_state(SERVICE, 3, 431_999)]).is_empty(), "it leads where it says");
    }

    #[test]
    fn of_connections_that_ended_the_last_tell_where_an_address_leads() {
        let [last, beside, before] = [("10.0.0.7:80", 1), ("10.0.0.8:80", 2), ("10.0.0.9:80", 3)]
            .map(|(server, idle_s)| ended(server, idle_s));
        assert_eq!(used(&[before, beside, last]), ["10.0.0.7:80", "10.0.0.8:80"]);
        assert_eq!(used(&[before]), ["10.0.0.9:80"], "there is no other");
        let open = |idle_s: u32| in_state("10.0.0.9:80", 3, 432_000 - idle_s);
        assert_eq!(used(&[open(61), last]), ["10.0.0.7:80", "10.0.0.9:80"], "it may be used again");
        assert_eq!(used(&[open(62), last]), ["10.0.0.7:80"], "its ends may be gone");
    }

    #[test]
    fn the_last_connection_of_a_host_tells_whether_any_is_translated() {
        let own = BTreeSet::from([IpAddr::from([10, 0, 0, 1])]);
        let led = |idle_s| ended("10.0.0.7:8080", idle_s);
        let plain = |idle_s| ended(SERVICE, idle_s);
        assert_eq!(used_by(&[plain(2), led(1)], Some(&own)), ["10.0.0.7:8080"]);
        assert!(used_by(&[plain(1), led(2)], Some(&own)).is_empty(), "it was translated before");
        assert!(used_by(&[plain(1), led(1)], Some(&own)).is_empty(), "which was the last is not known");
        assert_eq!(used(&[plain(1), led(2)]), ["10.0.0.7:8080"], "several hosts may take several ways");
        let other = BTreeSet::from([IpAddr::from([10, 0, 0, 2])]);
        assert!(used_by(&[led(1)], Some(&other)).is_empty(), "another host's");
    }

    #[test]
    fn connections_from_loopback_are_those_of_the_host() {
        let begun = tuple_of("127.0.0.1:40000", SERVICE);
        let served = tuple_of("127.0.0.1:40000", "10.0.0.7:8080");
        let entry = Entry { begun, served, activity: Activity::Established { left_s: 431_999 } };
        assert_eq!(used_by(&[entry], Some(&BTreeSet::new())), ["10.0.0.7:8080"]);
    }

    #[test]
    fn offloaded_connections_lead_somewhere_though_the_kernel_tells_no_state() {
        let offloaded = |status: u32| {
            let mut reply = reply_of("10.0.0.7:8080");
            reply.extend(attribute(STATUS, &status.to_be_bytes()));
            entry(&reply).unwrap()
        };
        assert_eq!(used(&[offloaded(0x400e)]), ["10.0.0.7:8080"]);
        assert!(used(&[offloaded(0x000e)]).is_empty(), "seen, assured and confirmed alone");
    }

    #[test]
    fn what_was_used_long_before_others_is_left_out() {
        let (busy, kept) = (in_state("10.0.0.7:80", 3, 299), in_state("10.0.0.8:80", 3, 431_950));
        let orphan = in_state("10.0.0.9:80", 3, 431_000);
        assert_eq!(used(&[orphan, busy, kept]), ["10.0.0.7:80", "10.0.0.8:80"], "in whatever order");
        assert_eq!(used(&[orphan]), ["10.0.0.9:80"], "there is no other");
        let again = in_state("10.0.0.9:80", 3, 431_999);
        assert_eq!(used(&[orphan, again, kept]), ["10.0.0.8:80", "10.0.0.9:80"], "it has a newer one too");
        let idle = |seconds: u32| in_state("10.0.0.7:80", 3, 300 - seconds);
        assert_eq!(used(&[idle(110), kept]), ["10.0.0.7:80", "10.0.0.8:80"], "a minute before");
        assert_eq!(used(&[idle(111), kept]), ["10.0.0.8:80"], "more than that");
    }

    #[test]
    fn idle_time_is_told_whichever_time_out_counts() {
        let idle = [432_000, 431_000, 301, 300, 299, 0].map(|left| TIMEOUTS.idle_s(left));
        assert_eq!(idle, [0, 1_000, 431_699, 0, 1, 300]);
        assert_eq!(TIMEOUTS.idle_s(u32::MAX), 0, "somebody set another");
        let short = Timeouts { established_s: 120, ..TIMEOUTS };
        assert_eq!([120, 60].map(|left| short.idle_s(left)), [0, 60]);
        let ending = [(4, 120), (5, 20), (6, 40), (7, 0), (8, 9), (9, 1), (3, 1)];
        let idle = ending.map(|(state, left_s)| TIMEOUTS.ending_idle_s(state, left_s));
        assert_eq!(idle, [Some(0), Some(40), Some(0), Some(120), Some(1), None, None]);
    }

    #[test]
    fn of_very_many_servers_those_used_last_are_told() {
        let of = |number: u32| in_state(&format!("10.0.1.{number}:80"), 3, 431_900 + number);
        let all: Vec<Entry> = (1..=40).map(of).collect();
        let last = all.iter().skip(40 - SERVERS_MAX).map(|entry| entry.served.server);
        let last: BTreeSet<SocketAddr> = last.collect();
        let called = Called { service: SERVICE.parse().unwrap(), from: None };
        assert_eq!(in_use(&all, called, TIMEOUTS), last);
    }

    #[test]
    fn other_protocols_are_left_out() {
        let plain = tuple_of("10.0.0.1:40000", "10.0.0.7:53");
        let mut udp = reply(plain, plain);
        let tcp = attribute(NUMBER, &[IPPROTO_TCP]);
        let at = udp.windows(tcp.len()).position(|bytes| bytes == tcp).unwrap();
        udp[at + 4] = libc::IPPROTO_UDP as u8;
        assert_eq!(entry(&udp), None);
    }
}
