//! Where an upstream server is.

use std::net::SocketAddr;

use tls::Peer;

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
}
