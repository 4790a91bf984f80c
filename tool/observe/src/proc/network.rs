//! The files of a network namespace: interfaces, addresses, sockets, TCP's counters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use analysis::counters::{Interface, Tcp, Tracked};

use super::number;

/// Name and traffic of each interface in `/proc/net/dev` (proc_pid_net(5)). The rest comes from elsewhere.
pub(crate) fn interfaces(text: &str) -> Vec<Interface> {
    text.lines().skip(2).filter_map(interface).collect()
}

fn interface(line: &str) -> Option<Interface> {
    // An alias such as `eth0:1` contains a colon of its own.
    let (name, rest) = line.rsplit_once(':')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() < 16 {
        return None;
    }
    let at = |index| number(&fields, index);
    Some(Interface {
        name: name.trim().to_owned(),
        received_bytes: at(0),
        sent_bytes: at(8),
        dropped: at(3).saturating_add(at(11)),
        ..Interface::default()
    })
}

/// A namespace's own addresses in `/proc/net/fib_trie`: those that the kernel routes to itself (`host LOCAL` leaves).
pub(crate) fn own_ipv4(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in fib_trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.trim().parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// The interfaces' addresses in `/proc/net/if_inet6`: the 32 hexadecimal digits that begin each line.
pub(crate) fn own_ipv6(if_inet6: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)
    };
    if_inet6.lines().filter_map(address).collect()
}

/// A TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) state: TcpState,
    /// Bytes to read; for a listener, the connections waiting to be accepted.
    pub(crate) receive_queue: u64,
    /// For a listener, how many connections may wait; 0 if the source does not tell.
    pub(crate) backlog: u64,
    /// 0 for a socket that no process holds.
    pub(crate) inode: u64,
}

/// The states that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpState {
    Established,
    Listen,
    Other,
}

impl TcpState {
    /// Converts the kernel's number (include/net/tcp_states.h).
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Established,
            10 => Self::Listen,
            _ => Self::Other,
        }
    }
}

/// The sockets in `/proc/net/tcp` or `tcp6` (Documentation/networking/proc_net_tcp.rst). IPv4 addresses mapped into IPv6
/// come out as IPv4.
pub(crate) fn tcp_sockets(text: &str) -> Vec<TcpSocket> {
    text.lines().skip(1).filter_map(socket).collect()
}

fn socket(line: &str) -> Option<TcpSocket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, receive_queue) = fields.get(4)?.split_once(':')?;
    Some(TcpSocket {
        local: endpoint(fields.get(1)?)?,
        remote: endpoint(fields.get(2)?)?,
        state: TcpState::from_number(u8::from_str_radix(fields.get(3)?, 16).ok()?),
        receive_queue: u64::from_str_radix(receive_queue, 16).ok()?,
        backlog: 0,
        inode: fields.get(9)?.parse().ok()?,
    })
}

fn endpoint(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(SocketAddr::new(address_of(address)?.to_canonical(), port))
}

/// The kernel prints addresses as 32-bit words in its own byte order.
fn address_of(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (place, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                place.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// TCP's counters in `/proc/net/snmp` and `/proc/net/netstat`, which hold a line of names and a line of values per
/// protocol. Absent counters are zero.
pub(crate) fn tcp_counters(snmp: &str, netstat: &str) -> Tcp {
    Tcp {
        retransmits: value(snmp, "Tcp:", "RetransSegs"),
        segments_sent: value(snmp, "Tcp:", "OutSegs"),
        opened: value(snmp, "Tcp:", "ActiveOpens"),
        handshakes_retried: value(netstat, "TcpExt:", "TCPSynRetrans"),
        listen_overflows: value(netstat, "TcpExt:", "ListenOverflows"),
        listen_drops: value(netstat, "TcpExt:", "ListenDrops"),
    }
}

/// Closed connections whose ports are still held, in `/proc/net/sockstat`.
pub(crate) fn time_wait(sockstat: &str) -> u64 {
    after(sockstat, "TCP:", "tw")
}

/// TCP sockets in use, in `/proc/net/sockstat`.
pub(crate) fn in_use(sockstat: &str) -> u64 {
    after(sockstat, "TCP:", "inuse")
}

/// The number after a name, on the line that begins so.
fn after(text: &str, line: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|found| found.strip_prefix(line)).unwrap_or_default();
    let mut words = line.split_whitespace().skip_while(|word| *word != name);
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The first and the last local port for connections, in `/proc/sys/net/ipv4/ip_local_port_range`.
pub(crate) fn local_ports(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    let range = (numbers.next()??, numbers.next()??);
    (range.0 <= range.1).then_some(range)
}

/// The table of tracked connections in `/proc/net/stat/nf_conntrack`: a line of names, and one of hexadecimal numbers for
/// each processor, in which the number of entries is the whole table's. `most` stands elsewhere.
pub(crate) fn tracked(stat: &str) -> Option<Tracked> {
    let mut lines = stat.lines();
    let names: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name| names.iter().position(|found| *found == name);
    let entries = column("entries")?;
    let refusals = ["insert_failed", "drop", "early_drop"].map(column);
    let mut found = None;
    for line in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let at = |index: usize| u32::from_str_radix(fields.get(index)?, 16).ok().map(u64::from);
        let Some(connections) = at(entries) else { continue };
        let tracked: &mut Tracked = found.get_or_insert_default();
        tracked.connections = tracked.connections.max(connections);
        let refused = refusals.into_iter().flatten().filter_map(at);
        tracked.refused = refused.fold(tracked.refused, u64::saturating_add);
    }
    found
}

fn value(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.split_whitespace().next() == Some(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|pair| pair.0 == name).and_then(|pair| pair.1.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn bytes_and_drops_both_ways() {
        let text = "Inter-|   Receive    |  Transmit\n face |bytes packets errs drop\n\
             lo:    3193      29    0    0    0     0          0         0     3194      29    0    0    0     0       0          0\n\
             eth0:624685682 33478 0 2 0 0 0 0 1987932 20307 0 3 0 0 0 0\n broken: 1 2\n";
        let found = interfaces(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].received_bytes, found[0].sent_bytes), (3193, 3194));
        assert_eq!((found[1].name.as_str(), found[1].dropped), ("eth0", 5));
    }

    #[test]
    fn held_ports_and_their_range() {
        let sockstat =
            "sockets: used 19\nTCP: inuse 5 orphan 0 tw 28231 alloc 5 mem 333\nUDP: inuse 0 mem 0\n";
        assert_eq!(time_wait(sockstat), 28_231);
        assert_eq!((time_wait("TCP: inuse 5 tw\n"), time_wait("TCP: tw -3"), time_wait("")), (0, 0, 0));
        assert_eq!(local_ports("32768\t60999\n"), Some((32_768, 60_999)));
        for wrong in ["", "32768", "60999 32768", "1 70000", "a b"] {
            assert_eq!(local_ports(wrong), None, "{wrong}");
        }
    }

    pub(crate) const CONNTRACK: &str = "\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
0000000c  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000002 00000010 00000001 00000000  00000000 00000000 00000000 00000000
0000000c  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000000  00000000 00000000 00000000 00000000
";

    #[test]
    fn tracked_connections_are_one_table_and_refusals_are_summed() {
        assert_eq!(tracked(CONNTRACK), Some(Tracked { connections: 12, most: 0, refused: 20 }));
        let older = "entries  searched found\n0000000c  00000000 00000001\n";
        assert_eq!(tracked(older), Some(Tracked { connections: 12, most: 0, refused: 0 }));
        assert_eq!(
            (tracked(""), tracked("entries drop\n"), tracked("found\n1\n"), tracked("entries\nzz\n")),
            (None, None, None, None)
        );
    }

    #[test]
    fn local_leaves_of_the_trie() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
             \x20    |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n     |-- 192.0.2.2\n        /32 host LOCAL\n";
        assert_eq!(own_ipv4(text), vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 2)]);
    }

    #[test]
    fn interface_addresses() {
        let text = "00000000000000000000000000000001 01 80 10 80       lo\nfd00 04 40 00 80 eth0\n";
        assert_eq!(own_ipv6(text), vec![Ipv6Addr::LOCALHOST]);
    }

    pub(crate) const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 94 1 000000000231a817 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 02:000A70A5 00000000     0        0 95 2 000000000231a817 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:D432 06 00000000:00000000 03:000A70A5 00000000     0        0 0 2
";

    #[test]
    #[cfg(target_endian = "little")]
    fn listeners_connections_and_leftovers() {
        let sockets = tcp_sockets(TABLE);
        let local: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let listener = TcpSocket {
            local,
            remote: "0.0.0.0:0".parse().unwrap(),
            state: TcpState::Listen,
            receive_queue: 3,
            backlog: 0,
            inode: 94,
        };
        assert_eq!(sockets[0], listener);
        assert_eq!((sockets[1].remote.port(), sockets[1].state), (0xD431, TcpState::Established));
        assert_eq!((sockets[2].inode, sockets[2].state), (0, TcpState::Other));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn ipv6_and_mapped_ipv4() {
        let text = "head\n 0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0 0 0 7 1\n\
             1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:0051 01 00000000:00000000 00:0 0 0 0 8 1\n";
        let sockets = tcp_sockets(text);
        assert_eq!(sockets[0].local, "[::1]:80".parse().unwrap());
        assert_eq!(sockets[1].remote, "127.0.0.1:81".parse().unwrap());
    }

    pub(crate) const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoAlgorithm MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs\nTcp: 1 -1 7 33305 20213 4 0\n";

    #[test]
    fn names_find_their_values() {
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 0 5 6 3\nIpExt: X\nIpExt: 1\n";
        let expected = Tcp {
            retransmits: 4,
            segments_sent: 20_213,
            opened: 7,
            handshakes_retried: 3,
            listen_overflows: 5,
            listen_drops: 6,
        };
        assert_eq!(tcp_counters(SNMP, netstat), expected);
    }

    #[test]
    fn a_file_truncated_after_the_names_counts_nothing() {
        assert_eq!(tcp_counters("Tcp: OutSegs\n", ""), Tcp::default());
    }
}
