//! Reading certificates and keys in PEM.

use std::{fs, io, path::Path};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// The largest accepted file, bytes: room for a chain of certificates or a bundle of authorities.
const LEN_MAX: u64 = 8 << 20;

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
pub(crate) fn key(text: &[u8]) -> Option<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(text).ok()
}

/// Whether a text contains a key protected by a password, in either format (RFC 5958, RFC 1421).
pub(crate) fn holds_encrypted_key(text: &[u8]) -> bool {
    let holds = |mark: &[u8]| text.windows(mark.len()).any(|part| part == mark);
    holds(b"BEGIN ENCRYPTED PRIVATE KEY") || holds(b"Proc-Type: 4,ENCRYPTED")
}
