//! Which servers a client trusts: those certified by authorities of this host or in a file, or those with known keys.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::ServerName,
    sign::SingleCertAndKey, version::TLS13,
};

use crate::{
    identity::PROTOCOL,
    keyed::{BY_KEY, Listed},
    keys::{Key, Keys},
    pem,
};

/// The authorities that a client trusts to certify servers, or the keys of servers that it knows.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
}

/// The identity that a server must prove to a client.
#[derive(Clone)]
pub struct Peer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    text: String,
}

/// Why trust could not be established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// This host trusts no authorities.
    #[error(
        "this host has no root certificates: install them (Debian: ca-certificates), or name a file of your own"
    )]
    NoRoots,
    /// The file cannot be read.
    #[error("the certificates in {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no certificate in the file.
    #[error("there is no certificate in {path}: it should be PEM, with `-----BEGIN CERTIFICATE-----`")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// Text that cannot be a server's name.
    #[error("{name:?} is not a valid server name")]
    Name {
        /// The text.
        name: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be used: {0}")]
    Protocol(rustls::Error),
}

impl Trust {
    /// The authorities that this host trusts.
    ///
    /// # Errors
    /// When there are none.
    pub fn of_system() -> Result<Self, TrustError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() { Err(TrustError::NoRoots) } else { Self::in_roots(roots) }
    }

    /// The authorities in a PEM file, and no others. A self-signed certificate of a server may be one.
    ///
    /// # Errors
    /// When the file cannot be read, or has none.
    pub fn of_file(path: &Path) -> Result<Self, TrustError> {
        let text = pem::read(path).map_err(|source| TrustError::Unreadable { path: path.into(), source })?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(pem::certificates(&text));
        if roots.is_empty() {
            return Err(TrustError::NoCertificate { path: path.into() });
        }
        Self::in_roots(roots)
    }

    /// No authorities, but the servers that prove one of the `known` keys, whatever their names. They may ask for `own`.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn of_keys(own: &Key, known: Keys) -> Result<Self, TrustError> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(TrustError::Protocol)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Listed::new(known)))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&own.certified))));
        // The second one so that a server without a key can be told from one that speaks something else.
        config.alpn_protocols = vec![BY_KEY.to_vec(), PROTOCOL.to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    /// A server whose certificate must be for this name or address.
    ///
    /// # Errors
    /// When it cannot be a server's name.
    pub fn peer(&self, name: &str) -> Result<Peer, TrustError> {
        let parsed = ServerName::try_from(name.to_owned());
        let parsed = parsed.map_err(|_| TrustError::Name { name: name.to_owned() })?;
        Ok(Peer { config: Arc::clone(&self.config), name: parsed, text: name.to_owned() })
    }

    fn in_roots(roots: RootCertStore) -> Result<Self, TrustError> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Protocol)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { config: Arc::new(config) })
    }
}

impl Peer {
    /// The name.
    pub fn name(&self) -> &str {
        &self.text
    }

    pub(crate) fn session(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trust")
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({})", self.text)
    }
}

impl std::fmt::Debug for crate::Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(hidden)")
    }
}
