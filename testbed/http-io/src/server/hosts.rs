//! By which names a server answers to browsers.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use wire::request::View as RequestHead;

use crate::Problem;

/// Paths that monitoring asks for, by whatever name it has for the server. They show nothing that is worth the trouble.
const MONITORED: [&str; 2] = ["/healthz", "/metrics"];

/// The names in `Host` to which a server answers. Default: any.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Option<Known>);

#[derive(Clone, Debug)]
struct Known {
    names: Arc<[String]>,
    hint: &'static str,
}

impl Hosts {
    /// Addresses, `localhost`, and these names. For a server that is open without credentials: another site could point a
    /// name of its own to this machine (DNS rebinding), and its page, in the browser of somebody who reaches the server,
    /// would then pass for the server's. The `hint` says what lets the server answer to others.
    pub fn only(names: impl IntoIterator<Item = String>, hint: &'static str) -> Self {
        Self(Some(Known { names: names.into_iter().collect(), hint }))
    }

    /// Whether any name will do.
    pub(crate) fn are_any(&self) -> bool {
        self.0.is_none()
    }

    /// Refuses a request for another name. One without a name comes from no browser.
    ///
    /// # Errors
    /// 421.
    pub(crate) fn check(&self, head: RequestHead<'_>) -> Result<(), Problem> {
        let (Some(Known { names, hint }), Some(host)) = (&self.0, head.header("host")) else { return Ok(()) };
        if is_local(host) || names.iter().any(|name| is_named(host, name)) || MONITORED.contains(&head.path())
        {
            return Ok(());
        }
        Err(Problem::new(421, "an open server answers only to its address or localhost").hint(*hint))
    }
}

/// Whether no name server decides where this leads: an address, or `localhost` (RFC 6761, section 6.3).
fn is_local(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = without_port(host);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost") || bare.is_some_and(|name| name.parse::<IpAddr>().is_ok())
}

fn is_named(host: &[u8], name: &str) -> bool {
    std::str::from_utf8(host).is_ok_and(|host| without_port(host).eq_ignore_ascii_case(name))
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(is_named(b"Nas.example:80", "nas.Example") && !is_named(b"nas.example.evil", "nas.example"));
    }
}
