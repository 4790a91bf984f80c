//! Ed25519 keys (RFC 8032) by which two ends identify each other without an authority.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ED25519};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::ParsedCertificate,
    sign::CertifiedKey,
};

/// The beginning of the text of a key.
const PREFIX: &str = "ed25519:";
/// A private key in PKCS #8 up to its 32 bytes (RFC 8410, section 7).
const PRIVATE: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
/// A public key in a certificate up to its 32 bytes (RFC 8410, section 4).
const PUBLIC: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// The subject of the certificates that carry keys. It says nothing but that.
pub(crate) const SUBJECT: &str = "nstar key";

/// The public half of a key, written `ed25519:` and 43 characters of base64 (RFC 4648, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

/// Text that is not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a public key: `ed25519:` and 43 letters, digits, - or _")]
pub struct InvalidKey;

/// A set of public keys. Clones are cheap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Arc<BTreeSet<PublicKey>>);

/// A private key, and the certificate that carries its public half. `Debug` hides the private half.
#[derive(Clone)]
pub struct Key {
    public: PublicKey,
    pub(crate) certified: Arc<CertifiedKey>,
}

/// A key that the library for certificates or for TLS refuses.
#[derive(Debug, thiserror::Error)]
#[error("the key cannot be used: {0}")]
pub struct UnusableKey(pub(crate) String);

impl Key {
    /// Derives a key from 32 random bytes, always the same from the same.
    ///
    /// # Errors
    /// When a library refuses it.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, UnusableKey> {
        let private = PrivatePkcs8KeyDer::from([&PRIVATE[..], seed].concat());
        let unusable = |error: &dyn fmt::Display| UnusableKey(error.to_string());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&private, &PKCS_ED25519);
        let pair = pair.map_err(|error| unusable(&error))?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, SUBJECT);
        let certificate = params.self_signed(&pair).map_err(|error| unusable(&error))?;
        let public = PublicKey::try_from(pair.public_key_raw()).map_err(|error| unusable(&error))?;
        let chain = vec![certificate.into()];
        let certified =
            CertifiedKey::from_der(chain, PrivateKeyDer::Pkcs8(private), &ring::default_provider());
        Ok(Self { public, certified: Arc::new(certified.map_err(|error| unusable(&error))?) })
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }
}

impl PublicKey {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key that a certificate carries, if it is an Ed25519 key.
    pub(crate) fn in_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        Self::try_from(parsed.subject_public_key_info().strip_prefix(&PUBLIC)?).ok()
    }
}

impl TryFrom<&[u8]> for PublicKey {
    type Error = InvalidKey;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidKey> {
        bytes.try_into().map(Self).map_err(|_| InvalidKey)
    }
}

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidKey)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| InvalidKey)?;
        Self::try_from(&bytes[..])
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Keys {
    /// Whether the set contains a key.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.0.contains(key)
    }
}

impl FromIterator<PublicKey> for Keys {
    fn from_iter<T: IntoIterator<Item = PublicKey>>(keys: T) -> Self {
        Self(Arc::new(keys.into_iter().collect()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 1.
    const SEED: [u8; 32] = *b"\x9d\x61\xb1\x9d\xef\xfd\x5a\x60\xba\x84\x4a\xf4\x92\xec\x2c\xc4\
        \x44\x49\xc5\x69\x7b\x32\x69\x19\x70\x3b\xac\x03\x1c\xae\x7f\x60";
    const PUBLISHED: [u8; 4] = [0xd7, 0x5a, 0x98, 0x01];

    #[test]
    fn a_key_is_derived_from_its_seed_and_found_in_its_certificate() {
        let key = Key::from_seed(&SEED).unwrap();
        assert_eq!(key.public().as_bytes()[..4], PUBLISHED);
        assert_eq!(PublicKey::in_certificate(&key.certified.cert[0]), Some(key.public()));
        assert_eq!(format!("{key:?}"), format!("Key({})", key.public()));
        let other = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        assert_eq!(PublicKey::in_certificate(other.cert.der()), None);
    }

    #[test]
    fn the_text_of_a_key_is_parsed_and_nothing_else() {
        let key = Key::from_seed(&SEED).unwrap().public();
        let text = key.to_string();
        assert_eq!((text.len(), text.parse()), (PREFIX.len() + 43, Ok(key)));
        let bare = &text[PREFIX.len()..];
        for wrong in ["", "ed25519:", bare, &text[..text.len() - 1], &format!("{text}A"), &format!("{text}=")]
        {
            assert_eq!(wrong.parse::<PublicKey>(), Err(InvalidKey), "{wrong}");
        }
        assert!(Keys::from_iter([key]).contains(&key) && !Keys::default().contains(&key));
    }
}
