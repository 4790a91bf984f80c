//! The TLS configuration for a server: trusted certificates, or none, and the server's name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::LoadError;
use crate::url::{Scheme, Url};

/// The TLS configuration for connections to one server.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Returns the configuration for an https URL, or `None` for http.
    ///
    /// Sessions are resumed if the server supports it, as browsers do. With one connection per request this makes the
    /// difference between one key exchange and thousands.
    pub(crate) fn for_url(url: &Url, insecure: bool) -> Result<Option<Self>, LoadError> {
        if url.scheme() == Scheme::Http {
            return Ok(None);
        }
        let name =
            ServerName::try_from(url.host().to_owned()).map_err(|error| LoadError::Tls(error.to_string()))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| LoadError::Tls(error.to_string()))?;
        let mut config = if insecure {
            let verifier = Arc::new(AcceptAny { provider });
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        } else {
            builder.with_root_certificates(native_roots()?).with_no_client_auth()
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Tls { config: Arc::new(config), name }))
    }

    /// Makes the TLS state of a new connection.
    pub(crate) fn connection(&self) -> Option<Box<ClientConnection>> {
        ClientConnection::new(self.config.clone(), self.name.clone()).ok().map(Box::new)
    }
}

fn native_roots() -> Result<RootCertStore, LoadError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let text = "this host has no root certificates: install them (Debian: ca-certificates), or accept any \
                    certificate with -k";
        return Err(LoadError::Tls(text.into()));
    }
    Ok(roots)
}

/// Accepts any certificate, for `-k`. Signatures are still checked, so the server owns the key of the certificate that it
/// shows.
#[derive(Debug)]
struct AcceptAny {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
