//! The identity that a server presents: a certificate and its key.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{ServerConfig, ServerConnection, crypto::ring, version::TLS13};

use crate::{
    keyed::{AnyKey, BY_KEY, KeyOrCertificate},
    keys::{Key, UnusableKey},
    pem::{Caution, IdentityError, unusable},
    renewable::Renewable,
    validity::Validity,
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
    /// `None` if it has no certificate.
    files: Option<Arc<Renewable>>,
    cautions: Vec<Caution>,
}

/// The certificate that an identity shows, and when it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its file.
    pub path: PathBuf,
    /// `None` if that cannot be found out.
    pub validity: Option<Validity>,
}

impl Identity {
    /// Reads a certificate, followed by the intermediate ones, and its key, both in PEM. They are reloaded when their files
    /// change.
    ///
    /// # Errors
    /// When a file cannot be read, or the two cannot be used together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let (files, cautions) = Renewable::open(certificate, key)?;
        let files = Arc::new(files);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(certificate, key, error))?
            .with_no_client_auth()
            .with_cert_resolver(files.clone());
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        resume_by_tickets(&mut config).map_err(|error| unusable(certificate, key, error))?;
        Ok(Self { config: Arc::new(config), files: Some(files), cautions })
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
        let (files, cautions) =
            certified.map(|certified| (certified.files, certified.cautions)).unwrap_or_default();
        Ok(Self { config: Arc::new(config), files, cautions })
    }

    /// The warnings for its owner.
    pub fn cautions(&self) -> &[Caution] {
        &self.cautions
    }

    /// Reads the files of the certificate again, also if they look unchanged; the log says how that went. What they hold is
    /// shown from the next handshake on, by processes forked from this one too. Returns false if it cannot be used, and then
    /// the previous certificate stays.
    pub fn reload(&self) -> bool {
        self.files.as_ref().is_none_or(|files| files.reload())
    }

    /// Reads the files of the certificate again if they have changed, as handshakes do. They are checked every few seconds.
    pub fn refresh(&self) {
        self.files.iter().for_each(|files| files.refresh());
    }

    /// The certificate that is shown now, if there is one.
    pub fn certificate(&self) -> Option<Certificate> {
        let files = self.files.as_ref()?;
        Some(Certificate { path: files.path().to_owned(), validity: files.validity() })
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
