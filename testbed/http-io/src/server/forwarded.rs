//! What proxies report of their clients: `Forwarded` (RFC 7239), and the older `X-Forwarded-For`.
//!
//! `Forwarded` is not a structured field: RFC 9651 parsers refuse its own examples.

use std::net::{IpAddr, SocketAddr};

/// One hop: whose request a proxy passed on, and how it had arrived. `None` if the proxy does not say, or not legibly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) address: Option<IpAddr>,
    /// Whether the request reached the proxy over TLS.
    pub(crate) encrypted: Option<bool>,
}

/// The hops in `Forwarded`, in order. `None` if a value is malformed: a quote that a client left open would swallow what
/// the proxy adds behind it.
pub(crate) fn forwarded<'h>(values: impl Iterator<Item = &'h [u8]>) -> Option<Vec<Hop>> {
    let mut hops = Vec::new();
    for value in values {
        let mut rest = std::str::from_utf8(value).ok()?.trim();
        while !rest.is_empty() {
            let (hop, after) = element(rest)?;
            hops.push(hop);
            rest = after;
        }
    }
    Some(hops)
}

/// Parses one element, `for=..;proto=..`. Returns what follows its comma too.
fn element(mut rest: &str) -> Option<(Hop, &str)> {
    let mut hop = Hop::default();
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = value(after)?;
        match name.trim() {
            name if name.eq_ignore_ascii_case("for") => hop.address = node(&value),
            name if name.eq_ignore_ascii_case("proto") => hop.encrypted = Some(is_https(&value)),
            name if name.is_empty() || name.contains([',', '"']) => return None,
            _ => {}
        }
        let after = after.trim_start();
        if after.is_empty() {
            return Some((hop, ""));
        }
        match after.strip_prefix(';') {
            Some(more) => rest = more,
            None => return after.strip_prefix(',').map(|more| (hop, more.trim_start())),
        }
    }
}

/// Parses a token or a quoted string. Returns what follows too.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        let (token, after) = text.split_at_checked(end)?;
        return (!token.contains('"')).then(|| (token.trim().to_owned(), after));
    };
    let (mut read, mut characters) = (String::new(), quoted.chars());
    loop {
        match characters.next()? {
            '"' => return Some((read, characters.as_str())),
            '\\' => read.push(characters.next()?),
            character => read.push(character),
        }
    }
}

/// The hops in `X-Forwarded-For`, in order.
pub(crate) fn x_forwarded_for<'h>(values: impl Iterator<Item = &'h [u8]>) -> Vec<Hop> {
    let entries = values.flat_map(|value| value.split(|&byte| byte == b','));
    let address = |entry: &[u8]| node(std::str::from_utf8(entry).ok()?.trim());
    entries.map(|entry| Hop { address: address(entry), encrypted: None }).collect()
}

/// Whether the last value of `X-Forwarded-Proto` is https.
pub(crate) fn x_forwarded_proto<'h>(values: impl Iterator<Item = &'h [u8]>) -> Option<bool> {
    let last = values.last()?.rsplit(|&byte| byte == b',').next()?;
    std::str::from_utf8(last).ok().map(|proto| is_https(proto.trim()))
}

fn is_https(proto: &str) -> bool {
    proto.eq_ignore_ascii_case("https")
}

/// Parses an address with or without a port; IPv6 with or without brackets. `None` for `unknown` and obfuscated names.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(values: &[&str]) -> Option<Vec<Hop>> {
        forwarded(values.iter().map(|value| value.as_bytes()))
    }

    fn addresses(values: &[&str]) -> Option<Vec<Option<IpAddr>>> {
        read(values).map(|hops| hops.into_iter().map(|hop| hop.address).collect())
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_examples_of_rfc_7239_are_read() {
        assert_eq!(addresses(&["for=\"_gazonk\""]), Some(vec![None]));
        assert_eq!(addresses(&["For=\"[2001:db8:cafe::17]:4711\""]), Some(vec![ip("2001:db8:cafe::17")]));
        assert_eq!(
            read(&["for=192.0.2.60;proto=http;by=203.0.113.43"]),
            Some(vec![Hop { address: ip("192.0.2.60"), encrypted: Some(false) }])
        );
        assert_eq!(
            addresses(&["for=192.0.2.43, for=198.51.100.17"]),
            Some(vec![ip("192.0.2.43"), ip("198.51.100.17")])
        );
        let in_two = addresses(&["for=192.0.2.43", "for=\"[2001:db8:cafe::17]\", for=unknown"]);
        assert_eq!(in_two, Some(vec![ip("192.0.2.43"), ip("2001:db8:cafe::17"), None]));
        assert_eq!(read(&["proto=HTTPS;for=\"192.0.2.1:80\""]).unwrap()[0].encrypted, Some(true));
    }

    #[test]
    fn what_a_client_leaves_open_does_not_swallow_what_a_proxy_adds() {
        for open in [
            "for=9.9.9.9;x=\"",
            "for=\"9.9.9.9",
            "for=9.9.9.9;x=\"\\",
            "x",
            "for",
            ",",
            "\"",
            "for=9.9.9.9;,x",
        ] {
            for added in ["for=192.0.2.1", "for=\"[2001:db8::1]\"", "for=\"192.0.2.1:4711\";proto=\"https\""]
            {
                let read = addresses(&[&format!("{open}, {added}")]);
                assert_ne!(read.and_then(|all| *all.last()?), ip("9.9.9.9"), "{open}, {added}");
            }
        }
    }

    #[test]
    fn a_character_outside_ascii_behind_a_quote_does_not_hide_what_a_proxy_adds() {
        assert_eq!(read(&["for=\"9.9.9.9\"\u{e9}, for=192.0.2.1"]), None);
        assert_eq!(
            addresses(&["for=\"9.9.9.9\" , for=192.0.2.1"]),
            Some(vec![ip("9.9.9.9"), ip("192.0.2.1")])
        );
    }

    #[test]
    fn the_older_fields_are_read_and_nonsense_is_none() {
        let read = |value: &str| -> Vec<_> {
            x_forwarded_for([value.as_bytes()].into_iter()).into_iter().map(|hop| hop.address).collect()
        };
        assert_eq!(read("192.0.2.1, 2001:db8::1 "), [ip("192.0.2.1"), ip("2001:db8::1")]);
        assert_eq!(read("[2001:db8::1]:80,192.0.2.1:80"), [ip("2001:db8::1"), ip("192.0.2.1")]);
        assert_eq!(read("::ffff:192.0.2.1"), [ip("192.0.2.1")]);
        for nonsense in ["", "unknown", "192.0.2", "192.0.2.1 x", "[::1"] {
            assert_eq!(read(nonsense), [None], "{nonsense}");
        }
        let proto = |value: &str| x_forwarded_proto([value.as_bytes()].into_iter());
        assert_eq!((proto("https"), proto("https, HTTP"), proto("")), (Some(true), Some(false), Some(false)));
        assert_eq!(x_forwarded_proto([].into_iter()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[a-z=;,\"\\\\\\[\\]:. ]{0,60}") {
            let _read_or_not = (forwarded([&bytes[..]].into_iter()), forwarded([text.as_bytes()].into_iter()));
            let _hops = (x_forwarded_for([&bytes[..]].into_iter()), x_forwarded_proto([&bytes[..]].into_iter()));
        }
    }
}
