//! Certificates and keys in PEM files: read, checked whether they fit together, with warnings for their owner.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::geteuid;
use rustls::{
    CertificateError, InconsistentKeys,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    sign::CertifiedKey,
};
use zeroize::Zeroizing;

use crate::{
    published::Texts,
    validity::{Validity, refused},
};

/// The user who may change every file anyway.
const ROOT: u32 = 0;
/// The largest accepted file, bytes: room for a chain of certificates or a bundle of authorities.
const LEN_MAX: u64 = 8 << 20;

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
    /// Somebody else owns the key, and may change it.
    #[error("the key {path} belongs to another user; run `chown {user} {path}`, or name another file")]
    KeyNotOurs {
        /// The file.
        path: PathBuf,
        /// The user whose it should be, by number.
        user: u32,
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

/// A certificate and its key that fit together.
pub(crate) struct Pair {
    pub(crate) certified: Arc<CertifiedKey>,
    /// `None` if that cannot be found out.
    pub(crate) validity: Option<Validity>,
    pub(crate) cautions: Vec<Caution>,
}

/// Reads a certificate and its key.
pub(crate) fn read_pair(certificate: &Path, key: &Path) -> Result<(Pair, Texts), IdentityError> {
    let texts = Texts { certificate: read_certificate(certificate)?, key: read_key(key)? };
    Ok((pair_of(certificate, key, &texts)?, texts))
}

/// The certificate and its key in texts that were read from these files.
pub(crate) fn pair_of(certificate: &Path, key: &Path, texts: &Texts) -> Result<Pair, IdentityError> {
    let (chain, private) = (chain_in(certificate, &texts.certificate)?, key_in(key, &texts.key)?);
    let validity = Validity::of(&chain);
    let cautions = not_valid_now(certificate, &chain).into_iter().chain(key_shared(key)).collect();
    let certified = CertifiedKey::from_der(chain, private, &ring::default_provider());
    let certified = Arc::new(certified.map_err(|error| unusable(certificate, key, error))?);
    Ok(Pair { certified, validity, cautions })
}

pub(crate) fn unusable(certificate: &Path, key: &Path, error: rustls::Error) -> IdentityError {
    let (certificate, key) = (certificate.into(), key.into());
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            IdentityError::Mismatch { certificate, key }
        }
        error => IdentityError::Unusable { certificate, key, reason: error.to_string() },
    }
}

fn read_certificate(path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |source| IdentityError::Unreadable { what: "certificate", path: path.into(), source };
    read(path).map(Zeroizing::new).map_err(unreadable)
}

fn chain_in(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let chain = certificates(text);
    if chain.is_empty() { Err(IdentityError::NoCertificate { path: path.into() }) } else { Ok(chain) }
}

fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |source| IdentityError::Unreadable { what: "key", path: path.into(), source };
    let text = Zeroizing::new(read(path).map_err(unreadable)?);
    let (owner, user) = (fs::metadata(path).map_err(unreadable)?.uid(), geteuid().as_raw());
    if owner != user && owner != ROOT {
        return Err(IdentityError::KeyNotOurs { path: path.into(), user });
    }
    Ok(text)
}

fn key_in(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    key(text).ok_or_else(|| {
        let path = path.into();
        if holds_encrypted_key(text) {
            IdentityError::KeyEncrypted { path }
        } else {
            IdentityError::NoKey { path }
        }
    })
}

/// Checks whether the first certificate is valid now. Its issuer is for the clients to judge.
fn not_valid_now(path: &Path, chain: &[CertificateDer<'static>]) -> Option<Caution> {
    let why = refused(chain.first()?, UnixTime::now().as_secs())?;
    matches!(
        why,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
    .then(|| Caution::NotValidNow { path: path.into(), why: why.to_string() })
}

fn key_shared(path: &Path) -> Option<Caution> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| Caution::KeyShared { path: path.into(), mode })
}

/// Reads a file that is not absurdly large.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let length = fs::metadata(path)?.len();
    if length > LEN_MAX {
        return Err(io::Error::other(format!("it has {length} bytes, more than the limit of {LEN_MAX}")));
    }
    fs::read(path)
}

/// The certificates in a text, in order. Empty if there are none, or one is malformed.
pub(crate) fn certificates(text: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().unwrap_or_default()
}

/// The first private key in a text.
fn key(text: &[u8]) -> Option<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(text).ok()
}

/// Whether a text contains a key protected by a password, in either format (RFC 5958, RFC 1421).
fn holds_encrypted_key(text: &[u8]) -> bool {
    let holds = |mark: &[u8]| text.windows(mark.len()).any(|part| part == mark);
    holds(b"BEGIN ENCRYPTED PRIVATE KEY") || holds(b"Proc-Type: 4,ENCRYPTED")
}
