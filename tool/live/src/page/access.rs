//! Who may ask for what: pure functions of a request's head.

use std::net::{IpAddr, SocketAddr};

use wire::{Method, request::View};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page.
    Page,
    /// The stream of its changes.
    Events,
    /// The report.
    Report,
    /// The end of the sweep.
    End,
}

/// Reasons not to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The request is addressed to a name that may be anybody's, or to another host.
    Host,
    /// The page of another site sends it.
    Origin,
    /// The address lacks the token, or there is nothing.
    NotFound,
    /// Another method.
    Method,
}

/// What a request wants of the page that is served at `address`, if it may have it.
pub(super) fn wanted(
    method: Method,
    view: View<'_>,
    token: &str,
    address: SocketAddr,
) -> Result<Wanted, Refused> {
    let host = view.header("host").and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
    if !is_ours(host, address) {
        return Err(Refused::Host);
    }
    let same = |origin: &[u8]| origin.strip_prefix(b"http://").is_some_and(|of| of == host.as_bytes());
    if view.header("origin").is_some_and(|origin| !same(origin)) {
        return Err(Refused::Origin);
    }
    let rest = view.path().strip_prefix('/').and_then(|path| path.split_once('/'));
    let Some((_, rest)) = rest.filter(|(given, _)| is_same(given, token)) else {
        return Err(Refused::NotFound);
    };
    match (rest, method) {
        ("", Method::Get) => Ok(Wanted::Page),
        ("events", Method::Get) => Ok(Wanted::Events),
        ("report", Method::Get) => Ok(Wanted::Report),
        ("end", Method::Post) => Ok(Wanted::End),
        ("" | "events" | "report" | "end", _) => Err(Refused::Method),
        _ => Err(Refused::NotFound),
    }
}

/// Whether a Host header names this host by an IP address, or as `localhost`. A name of somebody's domain may be pointed at
/// any address, so a page of that domain could read what is answered to it. The port may be that of a tunnel.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || !address.ip().is_loopback(),
        Err(_) => bare.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether two texts are the same, in a time that does not tell how much of them is.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Limits, request};

    fn ask(head: &str, listens: &str) -> Result<Wanted, Refused> {
        let bytes = head.replace('\n', "\r\n").into_bytes();
        let head = request::parse(&bytes, &Limits::default()).expect("valid").expect("whole");
        wanted(head.method, head.view(&bytes), "secret", listens.parse().expect("an address"))
    }

    fn get(path: &str, host: &str) -> Result<Wanted, Refused> {
        ask(&format!("GET {path} HTTP/1.1\nHost: {host}\n\n"), "127.0.0.1:7070")
    }

    #[test]
    fn only_who_knows_the_token_finds_anything() {
        let at = |path| get(path, "127.0.0.1:7070");
        assert_eq!(at("/secret/"), Ok(Wanted::Page));
        assert_eq!(at("/secret/events?x"), Ok(Wanted::Events));
        assert_eq!(at("/secret/report"), Ok(Wanted::Report));
        for path in
            ["/", "/events", "/secret", "/secrets/", "/secre/", "//", "/secret/x", "/secret//", "/x/secret/"]
        {
            assert_eq!(at(path), Err(Refused::NotFound), "{path}");
        }
    }

    #[test]
    fn a_name_that_anybody_may_point_here_is_refused() {
        for host in ["127.0.0.1", "127.0.0.1:7070", "localhost:9000", "LOCALHOST", "[::1]:80", "127.8.8.8"] {
            assert_eq!(get("/secret/", host), Ok(Wanted::Page), "{host}");
        }
        for host in
            ["evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1"]
        {
            assert_eq!(get("/secret/", host), Err(Refused::Host), "{host}");
        }
        let from_the_network =
            |host: &str| ask(&format!("GET /secret/ HTTP/1.1\nHost: {host}\n\n"), "0.0.0.0:7070");
        assert_eq!(from_the_network("10.0.0.1:7070"), Ok(Wanted::Page));
        assert_eq!(from_the_network("evil.example:7070"), Err(Refused::Host));
    }

    #[test]
    fn the_sweep_is_ended_by_the_page_alone() {
        let post = |origin: &str| {
            ask(&format!("POST /secret/end HTTP/1.1\nHost: localhost:7070\n{origin}\n"), "127.0.0.1:7070")
        };
        assert_eq!(post(""), Ok(Wanted::End));
        assert_eq!(post("Origin: http://localhost:7070\n"), Ok(Wanted::End));
        for other in ["http://evil.example", "null", "https://localhost:7070", "http://localhost:7071", ""] {
            assert_eq!(post(&format!("Origin: {other}\n")), Err(Refused::Origin), "{other}");
        }
        assert_eq!(get("/secret/end", "localhost"), Err(Refused::Method));
        let head = "POST /secret/ HTTP/1.1\nHost: localhost\n\n";
        assert_eq!(ask(head, "127.0.0.1:7070"), Err(Refused::Method));
    }
}
