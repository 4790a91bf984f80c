//! Files with certificates and keys. The client library reads them whenever it connects, so that new ones are used; they are
//! looked through once before that, because it does not say which of them is wrong.

use std::fs;
use std::path::Path;

use async_nats::rustls::pki_types::pem::{Error as PemError, PemObject};
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::{ClientConfig, Error as TlsError, InconsistentKeys, RootCertStore};

use crate::address::Identity;
use crate::connection::{BusError, unreadable};

/// Checks that a file holds certificates of who may sign that of a server.
///
/// # Errors
/// If it cannot be read, or holds none, or something else.
pub(crate) fn check_authorities(path: &Path) -> Result<(), BusError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unreadable(path, &error))?;
    }
    Ok(())
}

/// Checks that one file holds a certificate, and another its key.
///
/// # Errors
/// If one cannot be read, or holds something else, or the key is that of another certificate.
pub(crate) fn check_identity(identity: &Identity) -> Result<(), BusError> {
    let Identity { certificate, key } = identity;
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| match error {
        PemError::NoItemsFound => unreadable(key, &"it holds no key in PEM, or one that is encrypted"),
        error => unreadable(key, &error),
    })?;
    let config = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
    config.with_client_auth_cert(chain, secret).map(drop).map_err(|error| match error {
        TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            BusError::OtherKey { key: key.clone(), certificate: certificate.clone() }
        }
        TlsError::InvalidCertificate(_) => unreadable(certificate, &error),
        error => unreadable(key, &error),
    })
}

/// The certificates in a file: one at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BusError> {
    let found = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| unreadable(path, &error))?;
    if found.is_empty() { Err(unreadable(path, &"it holds no certificate in PEM")) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, BusError> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// Two certificates with their keys, and what is neither.
    fn folder() -> TempDir {
        let folder = TempDir::new().unwrap();
        for name in ["ours", "others"] {
            let pair = rcgen::generate_simple_self_signed([format!("{name}.test")]).unwrap();
            fs::write(folder.path().join(format!("{name}.pem")), pair.cert.pem()).unwrap();
            fs::write(folder.path().join(format!("{name}.key")), pair.signing_key.serialize_pem()).unwrap();
        }
        let torn = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        for (name, text) in [("text", "hello\n"), ("torn.pem", torn)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        fs::write(folder.path().join("empty.pem"), empty).unwrap();
        folder
    }

    fn identity(folder: &TempDir, certificate: &str, key: &str) -> Result<(), String> {
        let [certificate, key] = [certificate, key].map(|name| folder.path().join(name));
        check_identity(&Identity { certificate, key }).map_err(|error| error.to_string())
    }

    #[test]
    fn certificates_of_authorities_are_read_and_what_is_none_is_named() {
        let folder = folder();
        let check = |name: &str| check_authorities(&folder.path().join(name));
        check("ours.pem").unwrap();
        for name in ["none.pem", "", "text", "ours.key", "torn.pem", "empty.pem"] {
            let Err(BusError::File { path, reason }) = check(name) else { panic!("{name} is read") };
            assert!(path == folder.path().join(name) && !reason.is_empty(), "{name}: {reason}");
        }
        let error = check("ours.key").unwrap_err().to_string();
        assert!(error.ends_with("ours.key: it holds no certificate in PEM"), "{error}");
    }

    #[test]
    fn a_certificate_needs_the_key_that_is_its_own() {
        let folder = folder();
        assert_eq!(identity(&folder, "ours.pem", "ours.key"), Ok(()));
        let path = |name: &str| folder.path().join(name).display().to_string();
        let refused = identity(&folder, "ours.pem", "others.key").unwrap_err();
        let (key, certificate) = (path("others.key"), path("ours.pem"));
        assert_eq!(refused, format!("{key} is not the key of the certificate in {certificate}"));
        for (certificate, key, wrong) in [
            ("none.pem", "ours.key", "none.pem"),
            ("ours.pem", "none.key", "none.key"),
            ("text", "ours.key", "text"),
            ("empty.pem", "ours.key", "empty.pem"),
            ("ours.pem", "ours.pem", "ours.pem"),
        ] {
            let refused = identity(&folder, certificate, key).unwrap_err();
            assert!(refused.starts_with(&format!("cannot read {}: ", path(wrong))), "{refused}");
        }
    }
}
