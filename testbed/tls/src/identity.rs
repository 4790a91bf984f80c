//! The identity that a server presents: a certificate and its key.

use std::{path::Path, sync::Arc};

use rustls::{ServerConfig, ServerConnection, crypto::ring, version::TLS13};

use crate::{
    keyed::{AnyKey, BY_KEY, KeyOrCertificate},
    keys::{Key, UnusableKey},
    pem::{Caution, IdentityError, unusable},
    renewable::Renewable,
};

/// The only application protocol, by its ALPN name (RFC 7301).
pub(crate) const PROTOCOL: &[u8] = b"http/1.1";

/// Longer than any ticket, bytes. A ticket holds versions, keys, names, and the certificate with a client's key.
const TICKET_MAX: usize = 2048;

/// A server's certificate and key, ready for handshakes. Sessions may be resumed with tickets. Processes forked from this
/// one share the first ticket key. After six hours each generates its own, and accepts no other's tickets.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    cautions: Vec<Caution>,
}

impl Identity {
    /// Reads a certificate, followed by the intermediate ones, and its key, both in PEM. They are reloaded when their files
    /// change.
    ///
    /// # Errors
    /// When a file cannot be read, or the two cannot be used together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let (pair, cautions) = Renewable::open(certificate, key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(certificate, key, error))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(pair));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        resume_by_tickets(&mut config).map_err(|error| unusable(certificate, key, error))?;
        Ok(Self { config: Arc::new(config), cautions })
    }

    /// Presents `key` to clients that identify this server by it (TLS 1.3), and to others a certificate, if there is one.
    /// Clients may prove a key, which [`proven_key`](engine::service::Connection::proven_key) returns.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn of_key(key: &Key, certified: Option<Self>) -> Result<Self, UnusableKey> {
        let unusable = |error: rustls::Error| UnusableKey(error.to_string());
        let certificate = certified.as_ref().map(|certified| Arc::clone(&certified.config.cert_resolver));
        let shown = KeyOrCertificate { key: Arc::clone(&key.certified), certificate };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(AnyKey::new()))
            .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = vec![BY_KEY.to_vec(), PROTOCOL.to_vec()];
        resume_by_tickets(&mut config).map_err(unusable)?;
        let cautions = certified.map(|certified| certified.cautions).unwrap_or_default();
        Ok(Self { config: Arc::new(config), cautions })
    }

    /// The warnings for its owner.
    pub fn cautions(&self) -> &[Caution] {
        &self.cautions
    }

    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config))
    }
}

fn resume_by_tickets(config: &mut ServerConfig) -> Result<(), rustls::Error> {
    config.ticketer = ring::Ticketer::new()?;
    // It refuses tickets longer than any it has issued itself, but forked processes receive each other's.
    config.ticketer.encrypt(&[0; TICKET_MAX]);
    Ok(())
}
