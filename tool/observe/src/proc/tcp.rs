//! `/proc/net/tcp` and `/proc/net/tcp6` (Documentation/networking/proc_net_tcp.rst).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One TCP socket of a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) state: State,
    /// Bytes to read; of a listener, connections waiting to be accepted.
    pub(crate) receive_queue: u64,
    /// Of a listener, how many may wait; 0 where the source does not tell.
    pub(crate) backlog: u64,
    /// 0 for a socket no process holds.
    pub(crate) inode: u64,
}

/// The states that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Established,
    Listen,
    Other,
}

impl State {
    /// From the kernel's number (include/net/tcp_states.h).
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Established,
            10 => Self::Listen,
            _ => Self::Other,
        }
    }
}

/// Sockets of either file; IPv4 addresses mapped into IPv6 come out as IPv4.
pub(crate) fn parse(text: &str) -> Vec<Socket> {
    text.lines().skip(1).filter_map(socket).collect()
}

fn socket(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, receive_queue) = fields.get(4)?.split_once(':')?;
    Some(Socket {
        local: endpoint(fields.get(1)?)?,
        remote: endpoint(fields.get(2)?)?,
        state: State::from_number(u8::from_str_radix(fields.get(3)?, 16).ok()?),
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 94 1 000000000231a817 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 02:000A70A5 00000000     0        0 95 2 000000000231a817 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:D432 06 00000000:00000000 03:000A70A5 00000000     0        0 0 2
";

    #[test]
    #[cfg(target_endian = "little")]
    fn listeners_connections_and_leftovers() {
        let sockets = parse(TABLE);
        let local: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let listener = Socket {
            local,
            remote: "0.0.0.0:0".parse().unwrap(),
            state: State::Listen,
            receive_queue: 3,
            backlog: 0,
            inode: 94,
        };
        assert_eq!(sockets[0], listener);
        assert_eq!((sockets[1].remote.port(), sockets[1].state), (0xD431, State::Established));
        assert_eq!((sockets[2].inode, sockets[2].state), (0, State::Other));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn ipv6_and_mapped_ipv4() {
        let text = "head\n 0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0 0 0 7 1\n\
             1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:0051 01 00000000:00000000 00:0 0 0 0 8 1\n";
        let sockets = parse(text);
        assert_eq!(sockets[0].local, "[::1]:80".parse().unwrap());
        assert_eq!(sockets[1].remote, "127.0.0.1:81".parse().unwrap());
    }
}
