//! The address of a client, by which failed logins are counted.

use std::net::IpAddr;

use engine::service::Connection;
use http_io::server::Exchange;

/// The address that a request comes from, or the one that a trusted proxy names. If the sender is `trusted` without being
/// such a proxy, it is a file server, which puts the address last in `X-Forwarded-For`.
pub(crate) fn address<C: Connection>(exchange: &Exchange<'_, C>, trusted: bool) -> IpAddr {
    let (peer, requester) = (exchange.peer().ip().to_canonical(), exchange.requester().address);
    if requester != peer || !trusted {
        return requester;
    }
    exchange.header("x-forwarded-for").and_then(last).unwrap_or(peer)
}

fn last(list: &[u8]) -> Option<IpAddr> {
    let last = list.rsplit(|&byte| byte == b',').next()?;
    std::str::from_utf8(last).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_counts_and_other_text_is_ignored() {
        assert_eq!(last(b"192.0.2.1"), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(last(b"10.0.0.1, 2001:db8::1 "), Some("2001:db8::1".parse().unwrap()));
        for nonsense in [&b""[..], b"unknown", b"192.0.2.1, x", b"\xff"] {
            assert_eq!(last(nonsense), None);
        }
    }
}
