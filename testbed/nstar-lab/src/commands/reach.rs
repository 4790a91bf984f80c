//! How the servers of file sharing are reached: URLs to servers, and who vouches for those over TLS.

use std::path::Path;

use http_io::client::{Trust, Upstream};
use share::Key;

use nstar::exit::Failure;

use crate::values::{self, Scheme};

/// The server that `flag` names. Where its URL has no scheme, `usual` is how.
pub(super) fn server(
    flag: &str,
    text: &str,
    usual: Scheme,
    trust: impl FnOnce() -> Result<Trust, Failure>,
) -> Result<Upstream, Failure> {
    let named = values::server(text).map_err(|error| Failure::usage(format!("{flag} {error}")))?;
    match named.scheme.unwrap_or(usual) {
        Scheme::Http => Ok(named.at.into()),
        Scheme::Https => {
            let peer =
                trust()?.peer(&named.host).map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
            Ok(Upstream::secure(named.at, peer))
        }
    }
}

/// Those in the file that `--ca` names, or those this machine trusts.
pub(super) fn authorities(ca: Option<&Path>) -> Result<Trust, Failure> {
    ca.map_or_else(Trust::of_system, Trust::of_file).map_err(|error| Failure::usage(format!("--ca: {error}")))
}

/// The one server that has this key.
pub(super) fn owner(key: &Path) -> Result<Trust, Failure> {
    let key = Key::read(key).map_err(|error| Failure::usage(format!("--key-file: {error}")))?;
    let only = [key.public()].into_iter().collect();
    Trust::of_keys(key.pair(), only).map_err(Failure::failed)
}
