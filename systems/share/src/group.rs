//! Who may use a server: whoever reaches it, or who presents the secret of the group.

use std::{net::SocketAddr, path::Path};

use http_io::{Credentials, Problem};
use store::{Secret, SecretError};

/// The group that an index and its peers belong to.
#[derive(Debug, Clone)]
pub(crate) struct Group(Option<Secret>);

impl Group {
    /// Open to all, or closed by the secret in this file, which is made when it is not there.
    pub(crate) fn open(secret: Option<&Path>) -> Result<Self, SecretError> {
        secret.map(Secret::open).transpose().map(Self)
    }

    /// Whether everyone belongs to it.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a request with these credentials may be answered.
    ///
    /// # Errors
    /// What to answer when it may not.
    pub(crate) fn admit(&self, credentials: Option<&Credentials<'_>>) -> Result<(), Problem> {
        let Some(secret) = &self.0 else { return Ok(()) };
        match credentials {
            Some(Credentials::Bearer(token)) if secret.is(token) => Ok(()),
            _ => Err(Problem::new(401, "this is for members of a group only")
                .hint("give the group's secret with --secret-file, or send it as `Authorization: Bearer SECRET`")
                .header("WWW-Authenticate", r#"Bearer realm="nstar share""#)),
        }
    }

    /// What members send as `Authorization`.
    pub(crate) fn authorization(&self) -> Option<Vec<u8>> {
        self.0.as_ref().map(|secret| [b"Bearer ", secret.as_bytes()].concat())
    }
}

/// A server that others could reach would share with anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{listen} can be reached from other machines, and without a secret everyone there could use this server; \
     give the group's secret with --secret-file, or listen on 127.0.0.1"
)]
pub struct Exposed {
    listen: SocketAddr,
}

/// Refuses to be open to all on an address that other machines can reach.
///
/// # Errors
/// When `listen` is not a loopback address and there is no secret.
pub fn check_exposure(listen: SocketAddr, has_secret: bool) -> Result<(), Exposed> {
    let local = listen.ip().to_canonical().is_loopback();
    if local || has_secret { Ok(()) } else { Err(Exposed { listen }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_secret_servers_stay_on_this_machine() {
        for (listen, open, closed) in [
            ("127.0.0.1:1", true, true),
            ("[::1]:1", true, true),
            ("0.0.0.0:1", false, true),
            ("192.0.2.1:1", false, true),
            ("[::]:1", false, true),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(check_exposure(listen, false).is_ok(), open, "{listen}");
            assert_eq!(check_exposure(listen, true).is_ok(), closed, "{listen}");
        }
    }

    #[test]
    fn members_are_known_by_the_whole_secret() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::open(Some(&folder.path().join("secret"))).unwrap();
        let right = group.authorization().unwrap();
        let admits = |value: &[u8]| group.admit(Credentials::parse(value).as_ref()).is_ok();
        assert!(admits(&right));
        assert!(!admits(&right[..right.len() - 1]) && !admits(b"Bearer x") && !admits(b"Basic YTpi"));
        assert_eq!(group.admit(None).unwrap_err().status(), 401);
        let open = Group::open(None).unwrap();
        assert!(open.admit(None).is_ok() && open.authorization().is_none());
    }
}
