//! When certificates are valid.

use std::time::Duration;

use rustls::{
    CertificateError, RootCertStore,
    client::verify_server_cert_signed_by_trust_anchor,
    crypto::ring,
    pki_types::{CertificateDer, UnixTime},
    server::ParsedCertificate,
};

/// The span in which every certificate of a chain is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its beginning; 0 where that is not known.
    pub from: u64,
    /// Its end.
    pub until: u64,
}

impl Validity {
    /// The span of a chain. `None` if a certificate cannot be parsed, or there is none.
    pub(crate) fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let each = chain.iter().map(Self::of_one).collect::<Option<Vec<_>>>()?;
        each.into_iter()
            .reduce(|one, other| Self { from: one.from.max(other.from), until: one.until.min(other.until) })
    }

    /// The library tells both ends only to those who check a certificate outside of them.
    fn of_one(certificate: &CertificateDer<'_>) -> Option<Self> {
        let from = match refused(certificate, 0)? {
            CertificateError::NotValidYetContext { not_before, .. } => not_before.as_secs(),
            _ => 0,
        };
        match refused(certificate, u64::MAX)? {
            CertificateError::ExpiredContext { not_after, .. } => {
                Some(Self { from, until: not_after.as_secs() })
            }
            _ => None,
        }
    }
}

/// Why a certificate is refused at a time. The time is checked first, whoever the issuer is.
pub(crate) fn refused(certificate: &CertificateDer<'_>, at: u64) -> Option<CertificateError> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    let (roots, at) = (RootCertStore::empty(), UnixTime::since_unix_epoch(Duration::from_secs(at)));
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], at, algorithms) {
        Err(rustls::Error::InvalidCertificate(why)) => Some(why),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn valid(from: i32, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().into()
    }

    #[test]
    fn a_chain_is_valid_as_long_as_all_of_its_certificates() {
        let [y2020, y2021, y2030, y2031] = [1_577_836_800, 1_609_459_200, 1_893_456_000, 1_924_992_000];
        let (own, authority) = (valid(2021, 2031), valid(2020, 2030));
        assert_eq!(Validity::of(std::slice::from_ref(&own)), Some(Validity { from: y2021, until: y2031 }));
        assert_eq!(Validity::of(std::slice::from_ref(&authority)).unwrap().from, y2020);
        assert_eq!(Validity::of(&[own, authority]), Some(Validity { from: y2021, until: y2030 }));
        assert_eq!(Validity::of(&[]), None);
        assert_eq!(Validity::of(&[CertificateDer::from(vec![0x30, 0])]), None);
    }

    #[test]
    fn a_certificate_without_a_known_end_is_valid_until_the_last_year() {
        assert_eq!(Validity::of(&[valid(1970, 9999)]).unwrap().until, 253_370_764_800);
    }
}
