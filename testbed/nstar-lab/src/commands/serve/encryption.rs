//! TLS: flags to what a server shows, and a word where it is missing.

use std::net::SocketAddr;

use tls::{Identity, Key};

use nstar::exit::Failure;

use crate::flags::Encryption;

/// The certificate and its key asked for, if any, beside a key by which other servers know this one. Tells on stderr what
/// their owner should know.
pub(super) fn identity(flags: &Encryption, known_by: Option<&Key>) -> Result<Option<Identity>, Failure> {
    let certified = certified(flags)?;
    match known_by {
        Some(key) => Identity::of_key(key, certified).map(Some).map_err(Failure::failed),
        None => Ok(certified),
    }
}

fn certified(flags: &Encryption) -> Result<Option<Identity>, Failure> {
    let (certificate, key) = match (&flags.tls_cert, &flags.tls_key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(Failure::usage("--tls-cert needs the certificate's key too: --tls-key FILE"));
        }
        (None, Some(_)) => {
            return Err(Failure::usage("--tls-key needs its certificate too: --tls-cert FILE"));
        }
    };
    let identity = Identity::load(certificate, key).map_err(Failure::usage)?;
    for caution in identity.cautions() {
        nstar::exit::warn(format_args!("{caution}"));
    }
    Ok(Some(identity))
}

/// Warns where `secrets` would cross a network as they are.
pub(super) fn warn_of_exposure(listen: SocketAddr, secrets: &str) {
    if !listen.ip().to_canonical().is_loopback() {
        nstar::exit::warn(format_args!(
            "{secrets} cross the network unencrypted, as others can reach {listen}; give --tls-cert and \
             --tls-key, or listen on 127.0.0.1 behind a proxy that encrypts"
        ));
    }
}
