//! The identity that a server presents: a certificate and its key.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    CertificateError, InconsistentKeys, RootCertStore, ServerConfig, ServerConnection,
    client::verify_server_cert_signed_by_trust_anchor,
    crypto::ring,
    pki_types::{CertificateDer, UnixTime},
    server::ParsedCertificate,
    sign::CertifiedKey,
    version::TLS13,
};

use crate::{
    keyed::{AnyKey, BY_KEY, KeyOrCertificate},
    keys::{Key, UnusableKey},
    pem,
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

/// A warning for the owner of a server, which works nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Caution {
    /// The certificate has expired, or is not valid yet.
    #[error("clients will refuse the certificate in {path}: {why}")]
    NotValidNow {
        /// The file of the certificate.
        path: PathBuf,
        /// Since when or until when.
        why: String,
    },
    /// Users other than the owner may read the key.
    #[error("the key {path} may be read by others (mode {mode:03o}); run `chmod 600 {path}`")]
    KeyShared {
        /// The file of the key.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("the {what} {path} cannot be read: {source}")]
    Unreadable {
        /// Whether it is the certificate or the key.
        what: &'static str,
        /// Its file.
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
    /// There is no private key in the file.
    #[error("there is no private key in {path}: it should be PEM, with `-----BEGIN PRIVATE KEY-----`")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is protected by a password.
    #[error(
        "the key {path} is protected by a password; remove it with `openssl pkey -in {path} -out PLAIN.pem`"
    )]
    KeyEncrypted {
        /// The file.
        path: PathBuf,
    },
    /// The key is not the certificate's.
    #[error(
        "the key {key} does not belong to the certificate {certificate}; name the two that were created together"
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate or the key is of an unsupported kind.
    #[error("the certificate {certificate} and the key {key} cannot be used: {reason}")]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        reason: String,
    },
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

/// Reads a certificate and its key. Returns warnings for their owner too.
pub(crate) fn read_pair(
    certificate: &Path,
    key: &Path,
) -> Result<(Arc<CertifiedKey>, Vec<Caution>), IdentityError> {
    let chain = read_chain(certificate)?;
    let private = read_key(key)?;
    let cautions = validity(certificate, &chain).into_iter().chain(key_shared(key)).collect();
    let pair = CertifiedKey::from_der(chain, private, &ring::default_provider());
    Ok((Arc::new(pair.map_err(|error| unusable(certificate, key, error))?), cautions))
}

fn unusable(certificate: &Path, key: &Path, error: rustls::Error) -> IdentityError {
    let (certificate, key) = (certificate.into(), key.into());
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            IdentityError::Mismatch { certificate, key }
        }
        error => IdentityError::Unusable { certificate, key, reason: error.to_string() },
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = pem::read(path).map_err(|source| IdentityError::Unreadable {
        what: "certificate",
        path: path.into(),
        source,
    })?;
    let chain = pem::certificates(&text);
    if chain.is_empty() { Err(IdentityError::NoCertificate { path: path.into() }) } else { Ok(chain) }
}

fn read_key(path: &Path) -> Result<rustls::pki_types::PrivateKeyDer<'static>, IdentityError> {
    let text = pem::read(path).map_err(|source| IdentityError::Unreadable {
        what: "key",
        path: path.into(),
        source,
    })?;
    pem::key(&text).ok_or_else(|| {
        let path = path.into();
        if pem::holds_encrypted_key(&text) {
            IdentityError::KeyEncrypted { path }
        } else {
            IdentityError::NoKey { path }
        }
    })
}

/// Checks whether the first certificate is valid now. Its issuer is for the clients to judge.
fn validity(path: &Path, chain: &[CertificateDer<'static>]) -> Option<Caution> {
    let parsed = ParsedCertificate::try_from(chain.first()?).ok()?;
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    let roots = RootCertStore::empty();
    // The time is checked first, whoever the issuer is.
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], UnixTime::now(), algorithms) {
        Err(rustls::Error::InvalidCertificate(
            why @ (CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }),
        )) => Some(Caution::NotValidNow { path: path.into(), why: why.to_string() }),
        _ => None,
    }
}

fn key_shared(path: &Path) -> Option<Caution> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| Caution::KeyShared { path: path.into(), mode })
}
