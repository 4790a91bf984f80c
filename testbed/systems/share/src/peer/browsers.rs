//! Decides which requests of browsers a peer answers: those of its own page.

use std::net::{IpAddr, SocketAddr};

use engine::service::Connection;
use http_io::{Problem, server::Exchange};

/// Rejects requests that the page of another site makes a browser send, and requests of any page for content: a file that
/// came from another peer must not be shown as a page of this one. Browsers mark both (Fetch Metadata Request Headers,
/// W3C).
///
/// # Errors
/// 403 if it is rejected.
pub(super) fn check<C: Connection>(exchange: &Exchange<'_, C>) -> Result<(), Problem> {
    let from_page = exchange.header("origin").is_some() || exchange.header("sec-fetch-mode").is_some();
    match exchange.path() {
        // A link from elsewhere is harmless: the page shows nothing by itself.
        "/" => Ok(()),
        path if path.starts_with("/content/") && from_page => {
            Err(Problem::new(403, "content is not shown in browsers").hint("use `nstar share get`"))
        }
        _ => exchange.check_site(),
    }
}

/// Rejects requests for a host name that is not this machine's: another site could point its name here (DNS rebinding), and
/// its page would then pass for this peer's.
///
/// # Errors
/// 421 if it is rejected.
pub(super) fn check_name<C: Connection>(exchange: &Exchange<'_, C>) -> Result<(), Problem> {
    match exchange.header("host") {
        Some(host) if !is_local(host) => {
            Err(Problem::new(421, "an open peer answers only to its address or localhost")
                .hint("with --secret-file it answers to any name"))
        }
        _ => Ok(()),
    }
}

/// Whether no name server decides where this leads: an address, or `localhost` (RFC 6761, section 6.3).
fn is_local(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.is_some_and(|name| name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn names_that_others_give_are_told_from_addresses() {
        for local in ["127.0.0.1:8085", "127.0.0.1", "[::1]:8085", "localhost", "LocalHost:80", "192.0.2.1:1"]
        {
            assert!(is_local(local.as_bytes()), "{local}");
        }
        for other in ["evil.example:8085", "127.0.0.1.evil.example", "localhost.evil.example:1", "", "[x]:1"]
        {
            assert!(!is_local(other.as_bytes()), "{other}");
        }
        assert!(!is_local(b"\xff"));
    }
}
