//! Converts addresses to and from libp2p's.

use std::net::{IpAddr, SocketAddr};

use libp2p_core::{Multiaddr, multiaddr::Protocol};

/// A TCP address for libp2p.
pub(crate) fn to_multi(address: SocketAddr) -> Multiaddr {
    Multiaddr::from(address.ip()).with(Protocol::Tcp(address.port()))
}

/// The TCP address in one of libp2p's, if it is one.
pub(crate) fn of_multi(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some(SocketAddr::new(ip, port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_addresses_come_back_and_others_are_none() {
        for address in ["127.0.0.1:80", "[::1]:65535"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(of_multi(&to_multi(address)), Some(address));
        }
        for other in ["/ip4/127.0.0.1/udp/1", "/dns4/example.org/tcp/1", "/memory/1", "/ip4/127.0.0.1"] {
            assert_eq!(of_multi(&other.parse().unwrap()), None, "{other}");
        }
    }
}
