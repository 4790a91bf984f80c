//! Handshakes in which both ends prove keys: a server presents its own and asks for the client's, a client accepts only
//! servers on its list.

use std::{fmt, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        ClientHello, ResolvesServerCert,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};

use crate::keys::{Keys, PublicKey, SUBJECT};

/// The ALPN protocol of clients that identify the server by its key.
pub(crate) const BY_KEY: &[u8] = b"nstar-key/1";

type Verified<T> = Result<T, Error>;

/// What a server presents: its key to clients that ask for it, and to others a certificate, if it has one.
pub(crate) struct KeyOrCertificate {
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) certificate: Option<Arc<dyn ResolvesServerCert>>,
}

impl ResolvesServerCert for KeyOrCertificate {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let by_key = client.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == BY_KEY));
        match &self.certificate {
            Some(certificate) if !by_key => certificate.resolve(client),
            _ => Some(Arc::clone(&self.key)),
        }
    }
}

impl fmt::Debug for KeyOrCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyOrCertificate")
    }
}

/// The methods of both kinds of verifier that check a signature: those of TLS 1.3 are, TLS 1.2 is not offered.
macro_rules! tls13_signatures_only {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Verified<HandshakeSignatureValid> {
            // It was not offered.
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Verified<HandshakeSignatureValid> {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }
    };
}

/// Accepts any key that a client proves, or none. The service decides what each of them may do.
#[derive(Debug)]
pub(crate) struct AnyKey {
    issuer: [DistinguishedName; 1],
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyKey {
    pub(crate) fn new() -> Self {
        // Browsers that have no certificate of this issuer do not ask their users to choose one.
        let issuer = [DistinguishedName::in_sequence(&common_name(SUBJECT))];
        Self { issuer, algorithms: ring::default_provider().signature_verification_algorithms }
    }
}

/// A distinguished name that consists of a common name only (X.520), in DER.
fn common_name(name: &str) -> Vec<u8> {
    let within =
        |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap_or(u8::MAX)], content].concat();
    let value = within(0x0c, name.as_bytes());
    within(0x31, &within(0x30, &[&b"\x06\x03\x55\x04\x03"[..], &value].concat()))
}

impl ClientCertVerifier for AnyKey {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.issuer
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Verified<ClientCertVerified> {
        match PublicKey::in_certificate(certificate) {
            Some(_) => Ok(ClientCertVerified::assertion()),
            None => Err(Unlisted(None).into()),
        }
    }

    tls13_signatures_only!();

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Accepts the servers that prove one of these keys.
#[derive(Debug)]
pub(crate) struct Listed {
    keys: Keys,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Listed {
    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys, algorithms: ring::default_provider().signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Verified<ServerCertVerified> {
        match PublicKey::in_certificate(certificate) {
            Some(key) if self.keys.contains(&key) => Ok(ServerCertVerified::assertion()),
            other => Err(Unlisted(other).into()),
        }
    }

    tls13_signatures_only!();

    /// All schemes, so that a server that presents a certificate can be told from one that fails.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The peer presented a key that is not on the list, or none.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no known key")]
pub(crate) struct Unlisted(pub(crate) Option<PublicKey>);

impl From<Unlisted> for Error {
    fn from(unlisted: Unlisted) -> Self {
        CertificateError::Other(OtherError(Arc::new(unlisted))).into()
    }
}
