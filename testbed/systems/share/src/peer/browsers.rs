//! Which requests of browsers are answered: those of this peer's own page.

use std::net::{IpAddr, SocketAddr};

use engine::service::Connection;
use http_io::{Problem, server::Exchange};

/// Refuses what the page of another site has a browser ask for, and content that any page asks for: a file that came from a
/// peer must not be shown as a page of this one. Browsers say so themselves (Fetch Metadata Request Headers, W3C).
///
/// # Errors
/// 403.
pub(super) fn check<C: Connection>(exchange: &Exchange<'_, C>) -> Result<(), Problem> {
    let from_page = exchange.header("origin").is_some() || exchange.header("sec-fetch-mode").is_some();
    match exchange.path() {
        // To come here from elsewhere is no harm: the page tells nothing by itself.
        "/" => Ok(()),
        path if path.starts_with("/content/") && from_page => {
            Err(Problem::new(403, "content is not shown in browsers").hint("use `nstar share get`"))
        }
        _ => exchange.check_site(),
    }
}

/// Refuses a request for a name that is not of this machine: another site's name may be made to lead here (DNS rebinding),
/// and its page would then pass for this peer's own.
///
/// # Errors
/// 421.
pub(super) fn check_name<C: Connection>(exchange: &Exchange<'_, C>) -> Result<(), Problem> {
    match exchange.header("host") {
        Some(host) if !is_local(host) => {
            Err(Problem::new(421, "a peer open to all is asked by its address, or as localhost")
                .hint("with --secret-file it may be asked by any name"))
        }
        _ => Ok(()),
    }
}

/// Whether nobody's name server says where this leads: an address, or `localhost` (RFC 6761, section 6.3).
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
