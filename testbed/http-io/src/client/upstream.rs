//! Where an upstream server is, and how people name it.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
};

use tls::Peer;
use url::{Host, Url};

/// The address of an upstream server and, for TLS, the identity it must prove.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(crate) at: SocketAddr,
    /// `None` if connections are not encrypted.
    pub(crate) peer: Option<Peer>,
}

impl Upstream {
    /// The server at `at`, over TLS. It must prove to be `peer`.
    pub fn secure(at: SocketAddr, peer: Peer) -> Self {
        Self { at, peer: Some(peer) }
    }

    /// The address.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Whether connections are encrypted.
    pub fn is_secure(&self) -> bool {
        self.peer.is_some()
    }

    /// The value of the `Host` header.
    pub(crate) fn host(&self) -> String {
        match &self.peer {
            Some(peer) if peer.name().contains(':') => format!("[{}]:{}", peer.name(), self.at.port()),
            Some(peer) => format!("{}:{}", peer.name(), self.at.port()),
            None => self.at.to_string(),
        }
    }
}

/// Not encrypted.
impl From<SocketAddr> for Upstream {
    fn from(at: SocketAddr) -> Self {
        Self { at, peer: None }
    }
}

/// A server as people name it: `http://HOST:PORT` or `https://HOST:PORT`, where the scheme and the port may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// The scheme, if given.
    pub scheme: Option<Scheme>,
    /// Its name, or its address without brackets, which its certificate must match.
    pub host: String,
    /// The port, if given.
    pub port: Option<u16>,
}

/// The scheme of a server's URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Not encrypted.
    Http,
    /// Over TLS.
    Https,
}

/// Why text does not name a server. Never contains the text, which may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerUrlError {
    /// Another scheme.
    #[error("only http and https are understood")]
    Scheme,
    /// More than a server.
    #[error("a path or a user cannot be given")]
    MoreThanServer,
    /// Not a host with a port.
    #[error(transparent)]
    Invalid(#[from] url::ParseError),
    /// The name cannot be looked up.
    #[error(transparent)]
    Lookup(#[from] io::Error),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
}

impl ServerUrl {
    /// Parses a URL or a part of one.
    ///
    /// # Errors
    /// When the text does not name a server, or names more.
    pub fn parse(text: &str) -> Result<Self, ServerUrlError> {
        let (scheme, place) = match text.split_once("://") {
            Some(("http", place)) => (Some(Scheme::Http), place),
            Some(("https", place)) => (Some(Scheme::Https), place),
            Some(_) => return Err(ServerUrlError::Scheme),
            None => (None, text),
        };
        // An IPv6 address may have a scope here, which it cannot have in a URL.
        if let Ok(at) = place.parse::<SocketAddr>() {
            return Ok(Self { scheme, host: at.ip().to_string(), port: Some(at.port()) });
        }
        // With a scheme that has no usual port, a given port is never taken for a missing one.
        let url = Url::parse(&format!("tcp://{place}"))?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        if !is_plain || !matches!(url.path(), "" | "/") || url.query().or(url.fragment()).is_some() {
            return Err(ServerUrlError::MoreThanServer);
        }
        let host = match url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
            None => String::new(),
        };
        if host.is_empty() {
            return Err(url::ParseError::EmptyHost.into());
        }
        Ok(Self { scheme, host, port: url.port() })
    }

    /// The first address of the host, with this port. Looks up a name.
    ///
    /// # Errors
    /// When the name has no address, or cannot be looked up.
    pub fn address(&self, port: u16) -> Result<SocketAddr, ServerUrlError> {
        let mut addresses = (self.host.as_str(), port).to_socket_addrs()?;
        addresses.next().ok_or(ServerUrlError::NoAddress)
    }
}

#[cfg(test)]
mod tests {
    use tls::Trust;

    use super::*;

    #[test]
    fn the_host_header_has_the_name_that_the_server_must_prove() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&path, certified.cert.pem()).unwrap();
        let trust = Trust::of_file(&path).unwrap();
        let at: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let called = |name: &str| Upstream::secure(at, trust.peer(name).unwrap()).host();
        assert_eq!(called("example.org"), "example.org:80");
        assert_eq!(called("::1"), "[::1]:80");
        assert_eq!(Upstream::from(at).host(), "127.0.0.1:80");
    }

    #[test]
    fn a_server_is_named_with_or_without_scheme_and_port() {
        let url = |scheme, host: &str, port| ServerUrl { scheme, host: host.to_owned(), port };
        for (text, expected) in [
            ("127.0.0.1:80", url(None, "127.0.0.1", Some(80))),
            ("http://127.0.0.1:80/", url(Some(Scheme::Http), "127.0.0.1", Some(80))),
            ("https://[::1]", url(Some(Scheme::Https), "::1", None)),
            ("https://files.example:443", url(Some(Scheme::Https), "files.example", Some(443))),
            ("localhost", url(None, "localhost", None)),
        ] {
            assert_eq!(ServerUrl::parse(text).unwrap(), expected, "{text}");
        }
        assert_eq!(url(None, "::1", None).address(7).unwrap(), "[::1]:7".parse().unwrap());
    }

    #[test]
    fn other_text_names_no_server() {
        for text in
            ["", "http://", "ftp://h:1", "h:x", "h:65536", "u@h:1", "u:p@h", "h:1/x", "h?q", "h#f", "::1:80"]
        {
            assert!(ServerUrl::parse(text).is_err(), "{text}");
        }
    }
}
