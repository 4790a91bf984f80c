//! From where somebody asks, as failures are counted.

use std::net::IpAddr;

use engine::service::Connection;
use http_io::server::Exchange;

/// The address that a request came from, or that a proxy which is believed asks for. Where whoever asks is `believed`
/// without being such a proxy: the last address in `X-Forwarded-For`, as the file server sends it.
pub(crate) fn address<C: Connection>(exchange: &Exchange<'_, C>, believed: bool) -> IpAddr {
    let (peer, requester) = (exchange.peer().ip().to_canonical(), exchange.requester().address);
    if requester != peer || !believed {
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
    fn the_last_address_counts_and_nonsense_does_not() {
        assert_eq!(last(b"192.0.2.1"), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(last(b"10.0.0.1, 2001:db8::1 "), Some("2001:db8::1".parse().unwrap()));
        for nonsense in [&b""[..], b"unknown", b"192.0.2.1, x", b"\xff"] {
            assert_eq!(last(nonsense), None);
        }
    }
}
