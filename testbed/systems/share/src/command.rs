//! What the commands of file sharing have in common: the keys of members, and how other servers are reached.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use http_io::client::{Scheme, ServerUrl, Trust, Upstream};
use serve::{Failure, ServerProcess, values};

use crate::group::{Key, Members, check_exposure};

/// The members of a group closed by keys.
#[derive(Debug, Args)]
pub struct AllowedKeys {
    /// Key of a member, as `nstar-lab share key` prints it; may be repeated. Closes the group: all connections are
    /// encrypted, and both ends must prove that they own a member's key
    #[arg(long = "allow", value_name = "KEY")]
    keys: Vec<tls::PublicKey>,
    /// File with the keys of members, one per line; # begins a comment
    #[arg(long, value_name = "FILE")]
    allow_file: Option<PathBuf>,
}

impl AllowedKeys {
    /// Whether the group is closed by keys.
    pub fn is_given(&self) -> bool {
        !self.keys.is_empty() || self.allow_file.is_some()
    }

    /// The members, if any are given; the server then needs its `own` key too.
    ///
    /// # Errors
    /// When the list or the server's own key cannot be read.
    pub fn members(&self, own: impl FnOnce() -> Result<Key, Failure>) -> Result<Option<Members>, Failure> {
        if !self.is_given() {
            return Ok(None);
        }
        let listed = self.allow_file.as_deref().map(Members::read_list).transpose();
        let listed = listed.map_err(|error| Failure::usage(format!("--allow-file: {error}")))?;
        let keys = self.keys.iter().copied().chain(listed.unwrap_or_default());
        Ok(Some(Members::new(own()?, keys)))
    }
}

/// Prepares a server of file sharing. Refuses an open group on an address that other machines can reach.
///
/// # Errors
/// Those of [`check_exposure`] and [`ServerProcess::prepare`].
pub fn prepare(
    process: &mut ServerProcess<'_>,
    listen: SocketAddr,
    has_secret: bool,
    members: Option<&Members>,
) -> Result<(), Failure> {
    check_exposure(listen, has_secret || members.is_some()).map_err(Failure::usage)?;
    process.secrets = has_secret.then_some("files and the group's secret");
    if let Some(members) = members {
        process.key = Some(members.own().pair().clone());
        process.note = format!(", key {}", members.own().public());
    }
    process.prepare()
}

/// The server that `flag` names, `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`. Without a scheme, `usual` is how it
/// is reached. Looks up a name once, now.
///
/// # Errors
/// When it is something else, the name has no address, or `trust` fails.
pub fn upstream(
    flag: &str,
    text: &str,
    usual: Scheme,
    trust: impl FnOnce() -> Result<Trust, Failure>,
) -> Result<Upstream, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        let shown = http_io::without_user(text);
        Failure::usage(format!("{flag} {shown}: {why}; write http://HOST:PORT or https://HOST:PORT"))
    };
    let server = ServerUrl::parse(text).map_err(|error| wrong(&error))?;
    let port = server.port.ok_or_else(|| wrong(&"the port is missing"))?;
    let at = server.address(port).map_err(|error| wrong(&error))?;
    match server.scheme.unwrap_or(usual) {
        Scheme::Http => Ok(at.into()),
        Scheme::Https => {
            let peer =
                trust()?.peer(&server.host).map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
            Ok(Upstream::secure(at, peer))
        }
    }
}

/// The authorities in the file that `--ca` names, or those this machine trusts.
///
/// # Errors
/// When they cannot be read.
pub fn authorities(ca: Option<&Path>) -> Result<Trust, Failure> {
    ca.map_or_else(Trust::of_system, Trust::of_file).map_err(|error| Failure::usage(format!("--ca: {error}")))
}

/// Trust in the one server that has the key in this file.
///
/// # Errors
/// When the key cannot be read.
pub fn owner(key: &Path) -> Result<Trust, Failure> {
    let key = Key::read(key).map_err(|error| Failure::usage(format!("--key-file: {error}")))?;
    let only = [key.public()].into_iter().collect();
    Trust::of_keys(key.pair(), only).map_err(Failure::failed)
}

/// Parses how long something lasts unless it is renewed: a second at least.
///
/// # Errors
/// When it is something else, or shorter.
pub fn life(text: &str) -> Result<Duration, String> {
    let life = values::duration(text)?;
    if life < Duration::from_secs(1) { Err("must be a second at least".into()) } else { Ok(life) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Upstream, String> {
        upstream("--peer", text, Scheme::Http, || authorities(None)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_server_is_named_by_its_url_or_its_address_alone() {
        for (text, port, is_secure) in [
            ("127.0.0.1:80", 80, false),
            ("https://[::1]:8085/", 8085, true),
            ("http://localhost:1", 1, false),
        ] {
            let server = read(text).unwrap();
            assert_eq!((server.at().port(), server.is_secure()), (port, is_secure), "{text}");
        }
    }

    #[test]
    fn other_text_is_explained_without_its_password() {
        for wrong in ["", "localhost", "http://127.0.0.1", "ftp://127.0.0.1:1", "127.0.0.1:1/x"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("HOST:PORT"), "{error}");
        }
        for wrong in ["https://u:hush@127.0.0.1:1", "u:hush@127.0.0.1:1", "ftp://u:hush@127.0.0.1:1"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("@127.0.0.1:1") && !error.contains("hush"), "{error}");
        }
    }
}
