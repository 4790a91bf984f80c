//! Handshakes in which both ends prove keys: a server shows its own and asks for the client's, a client speaks with those
//! on its list only.

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

/// What clients say in ALPN who want to know the server by its key.
pub(crate) const BY_KEY: &[u8] = b"nstar-key/1";

type Verified<T> = Result<T, Error>;

/// What a server shows: its key to those who know it by that, and to others a certificate, if it has one.
pub(crate) struct Shown {
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) certificate: Option<Arc<dyn ResolvesServerCert>>,
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let by_key = client.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == BY_KEY));
        match &self.certificate {
            Some(certificate) if !by_key => certificate.resolve(client),
            _ => Some(Arc::clone(&self.key)),
        }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

/// Takes any key that a client proves to have, and no key: what each of them may do is for the service to say.
#[derive(Debug)]
pub(crate) struct AnyKey(WebPkiSupportedAlgorithms, [DistinguishedName; 1]);

impl AnyKey {
    pub(crate) fn new() -> Self {
        // Browsers do not ask their users which of their certificates to show when none of them is of this issuer.
        let issuer = DistinguishedName::in_sequence(&common_name(SUBJECT));
        Self(ring::default_provider().signature_verification_algorithms, [issuer])
    }
}

/// A name of one part, in DER (X.520, commonName).
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
        &self.1
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

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        Err(unasked())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Takes the servers that prove to have one of these keys.
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

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        Err(unasked())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Verified<HandshakeSignatureValid> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    /// All that there are: a server without a key is to be told from one that fails.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// TLS 1.2 is not spoken by key.
fn unasked() -> Error {
    PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()
}

/// An end shows a key that is on no list, or none.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no key that is known")]
pub(crate) struct Unlisted(pub(crate) Option<PublicKey>);

impl From<Unlisted> for Error {
    fn from(unlisted: Unlisted) -> Self {
        CertificateError::Other(OtherError(Arc::new(unlisted))).into()
    }
}
