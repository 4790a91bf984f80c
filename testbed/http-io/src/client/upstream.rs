//! The server that is asked.

use std::net::SocketAddr;

use tls::Peer;

/// Where a server is and, over TLS, who must be there.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(crate) at: SocketAddr,
    /// None: connections are not encrypted.
    pub(crate) peer: Option<Peer>,
}

impl Upstream {
    /// The server at `at`, spoken with over TLS. What is no `peer` is not spoken with.
    pub fn secure(at: SocketAddr, peer: Peer) -> Self {
        Self { at, peer: Some(peer) }
    }

    /// Where it is.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Whether it is spoken with over TLS.
    pub fn is_secure(&self) -> bool {
        self.peer.is_some()
    }

    /// As the header `Host` has it.
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
    fn a_server_is_called_by_the_name_that_it_has_to_show() {
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
