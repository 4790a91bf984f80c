//! How the connection to a database server is encrypted, according to its URL: not at all, or with TLS and a verified
//! certificate. Any of the drivers' parameters for that is accepted.

use std::{fs, io, path::PathBuf, sync::Arc};

use percent_encoding::percent_decode_str;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tls::Failure;

use crate::error::Trouble;

/// TLS, and the authorities trusted to certify the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encryption {
    /// A file of certificates in PEM. `None`: the authorities that this host trusts.
    pub(crate) roots: Option<PathBuf>,
}

/// A parameter about encryption in a URL that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} in this URL {wanted}")]
pub struct InvalidEncryption {
    /// The parameter.
    pub parameter: &'static str,
    /// What it must be.
    pub wanted: &'static str,
}

/// Takes the parameters about encryption out of the query of a URL. Returns the rest, which is for the driver, too.
pub(crate) fn read(query: &str) -> Result<(String, Option<Encryption>), InvalidEncryption> {
    let wrong = |parameter, wanted| InvalidEncryption { parameter, wanted };
    let (mut rest, mut wanted, mut roots) = (Vec::new(), None, None);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("sslmode", "disable") | ("require_ssl", "false") => wanted = Some(false),
            ("sslmode", "require" | "verify-ca" | "verify-full") | ("require_ssl", "true") => {
                wanted = Some(true)
            }
            ("sslmode", _) => return Err(wrong("sslmode", "must be disable or verify-full")),
            ("require_ssl", _) => return Err(wrong("require_ssl", "must be true or false")),
            ("sslrootcert", "") => {
                return Err(wrong("sslrootcert", "must name a file of certificates in PEM"));
            }
            ("sslrootcert", path) => {
                roots = Some(percent_decode_str(path).decode_utf8_lossy().into_owned().into())
            }
            ("verify_ca" | "verify_identity" | "built_in_roots", _) => {
                return Err(wrong(
                    "verify_ca, verify_identity or built_in_roots",
                    "is not supported: certificates are always verified in full, with sslrootcert=PATH",
                ));
            }
            _ => rest.push(part),
        }
    }
    match (wanted, roots) {
        (Some(false), Some(_)) => Err(wrong("sslrootcert", "requires sslmode=verify-full")),
        (None | Some(false), None) => Ok((rest.join("&"), None)),
        (_, roots) => Ok((rest.join("&"), Some(Encryption { roots }))),
    }
}

impl Encryption {
    /// The certificates of the trusted authorities.
    pub(crate) fn roots(&self) -> Result<Vec<CertificateDer<'static>>, Trouble> {
        let Some(path) = &self.roots else {
            return Ok(rustls_native_certs::load_native_certs().certs);
        };
        let unusable = |why| Trouble::Encryption(format!("sslrootcert: {} {why}", path.display()));
        let text = fs::read(path).map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let found: Vec<_> =
            CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().unwrap_or_default();
        match found[..] {
            [] => Err(unusable(
                "has no certificate: it should be PEM, with `-----BEGIN CERTIFICATE-----`".into(),
            )),
            _ => Ok(found),
        }
    }

    /// The TLS configuration.
    pub(crate) fn config(&self) -> Result<ClientConfig, Trouble> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.roots()?);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Trouble::Encryption(error.to_string()))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The trouble behind a connection error, if TLS caused it.
pub(crate) fn trouble_of(error: &io::Error) -> Option<Trouble> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(Trouble::Encryption(match Failure::from(error.clone()) {
        failure @ Failure::UnknownIssuer => format!("{failure} (sslrootcert=PATH in the URL)"),
        Failure::WrongName { detail, .. } => {
            format!("its certificate is for another name than the one in the URL: {detail}")
        }
        failure => failure.to_string(),
    }))
}

/// The server does not support TLS.
pub(crate) fn unsupported() -> Trouble {
    Trouble::Encryption(
        "the server does not support TLS; enable it there, or remove sslmode (or require_ssl) from the URL"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_about_encryption_are_taken_out_of_a_query() {
        let system = || Some(Encryption { roots: None });
        let file = || Some(Encryption { roots: Some("/a b.pem".into()) });
        for (query, rest, encryption) in [
            ("", "", None),
            ("sslmode=disable&application_name=x", "application_name=x", None),
            ("require_ssl=false", "", None),
            ("a=1&sslmode=require&b=2", "a=1&b=2", system()),
            ("require_ssl=true", "", system()),
            ("sslmode=verify-full&sslrootcert=/a%20b.pem", "", file()),
            ("sslrootcert=/a%20b.pem", "", file()),
        ] {
            assert_eq!(read(query), Ok((rest.to_owned(), encryption)), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_promised_is_refused() {
        for query in [
            "sslmode=prefer",
            "sslmode",
            "require_ssl=maybe",
            "sslrootcert=",
            "sslmode=disable&sslrootcert=x",
            "require_ssl=true&verify_ca=false",
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
