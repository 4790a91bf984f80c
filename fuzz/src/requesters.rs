//! Which client a trusted proxy names. The client itself writes all but the end of the field.

use std::net::{IpAddr, Ipv4Addr};

use http_io::server::{Network, Proxies};
use wire::{Limits, request};

/// The client's address as the proxy tells it.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

pub(crate) fn forwarded(bytes: &[u8]) {
    // Where there is no telling who the client is, the request is refused.
    if let Some(Some(found)) = requester("Forwarded", bytes, "for=192.0.2.1") {
        assert_eq!(found, CLIENT, "the client chose its address");
    }
}

pub(crate) fn x_forwarded_for(bytes: &[u8]) {
    if let Some(found) = requester("X-Forwarded-For", bytes, "192.0.2.1") {
        assert_eq!(found, Some(CLIENT), "the client chose its address");
    }
}

/// The client of a request with these fields of a client, one in each line, to which a proxy adds something. `None` if the
/// request is none; `None` within if it is refused for its client.
fn requester(name: &str, fields: &[u8], added: &str) -> Option<Option<IpAddr>> {
    let proxy: Network = "127.0.0.1".parse().expect("an address");
    let lines = fields.split(|&byte| byte == b'\n').map(|value| [name.as_bytes(), b": ", value].concat());
    let fields = lines.collect::<Vec<_>>().join(&b"\r\n"[..]);
    let start = &b"GET / HTTP/1.1\r\nHost: a\r\n"[..];
    let bytes = [start, &fields, b", ", added.as_bytes(), b"\r\n\r\n"].concat();
    let head = request::parse(&bytes, &Limits::default()).ok()??;
    let found = Proxies::from_iter([proxy]).requester(Ipv4Addr::LOCALHOST.into(), head.view(&bytes)).ok();
    assert!(found.is_none_or(|found| !found.came_encrypted), "only the client says that it came over TLS");
    Some(found.map(|found| found.address))
}
