//! Who may use a server: whoever reaches it, who presents the secret of the group, or who proves a member's key.

use std::{net::SocketAddr, path::Path};

use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};
use store::{Secret, SecretError};
use tls::PublicKey;

use crate::members::{Members, Standing};

/// The group that an index and its peers belong to.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    secret: Option<Secret>,
    members: Option<Members>,
}

/// Who asks.
pub(crate) struct Asker<'a> {
    credentials: Option<Credentials<'a>>,
    key: Option<&'a [u8]>,
    from: SocketAddr,
}

/// For whom something is. Who presents the secret may have all of it: where members are known by their keys, the secret
/// is the owner's own, and crosses the network from the owner only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Members,
    /// Who has the server's own key.
    Owner,
}

impl<'a> Asker<'a> {
    pub(crate) fn of<C: Connection>(exchange: &'a Exchange<'_, C>) -> Self {
        let key = exchange.connection().proven_key();
        Self { credentials: exchange.credentials(), key, from: exchange.peer() }
    }
}

impl Group {
    /// Open to all, or closed by the secret in this file, which is made when it is not there, or to these members, or to
    /// either.
    pub(crate) fn open(secret: Option<&Path>, members: Option<Members>) -> Result<Self, SecretError> {
        Ok(Self { secret: secret.map(Secret::open).transpose()?, members })
    }

    /// Whether everyone belongs to it.
    pub(crate) fn is_open(&self) -> bool {
        self.secret.is_none() && self.members.is_none()
    }

    /// Its members by key, where they are known so.
    pub(crate) fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// Whether who asks may have what is for these.
    ///
    /// # Errors
    /// What to answer when not.
    pub(crate) fn admit(&self, asker: &Asker<'_>, what: For) -> Result<(), Problem> {
        if self.is_open() || self.knows_secret(asker) {
            return Ok(());
        }
        let Some(members) = &self.members else { return Err(unknown(SECRET_WANTED)) };
        match members.standing(asker.key) {
            Standing::Owner => Ok(()),
            Standing::Member(_) if what == For::Members => Ok(()),
            Standing::Member(_) => {
                Err(Problem::new(403, "this is for the owner of this peer").hint(OWNER_WANTED))
            }
            Standing::Nobody => Err(unknown(match what {
                For::Members => MEMBER_WANTED,
                For::Owner => OWNER_WANTED,
            })),
            Standing::Stranger(key) => {
                members.tell_of(key, asker.from);
                Err(Problem::new(403, format!("the key {key} is not on the list of this server"))
                    .hint(format!("it would be let in with --allow {key}")))
            }
        }
    }

    /// The key that who asks is known by as a member. None where members are known otherwise, and of the owner.
    pub(crate) fn member(&self, asker: &Asker<'_>) -> Option<PublicKey> {
        match self.members.as_ref()?.standing(asker.key) {
            Standing::Member(key) if !self.knows_secret(asker) => Some(key),
            _ => None,
        }
    }

    /// What members send each other as `Authorization`: nothing where they know each other by keys, as whoever got the
    /// secret could pass for the owner.
    pub(crate) fn authorization(&self) -> Option<Vec<u8>> {
        let shared = self.secret.as_ref().filter(|_| self.members.is_none());
        shared.map(|secret| [b"Bearer ", secret.as_bytes()].concat())
    }

    fn knows_secret(&self, asker: &Asker<'_>) -> bool {
        match (&self.secret, &asker.credentials) {
            (Some(secret), Some(Credentials::Bearer(token))) => secret.is(token),
            _ => false,
        }
    }
}

const SECRET_WANTED: &str =
    "give the group's secret with --secret-file, or send it as `Authorization: Bearer SECRET`";
const MEMBER_WANTED: &str = "members are known by their keys here: start the peer that asks with --allow and this \
     server's key, and this server with --allow and that peer's";
const OWNER_WANTED: &str = "give this peer's own key with --key-file DIR/.nstar/identity";

/// The answer to somebody who has not said who that is.
fn unknown(hint: &'static str) -> Problem {
    Problem::new(401, "this is for members of a group only")
        .hint(hint)
        .header("WWW-Authenticate", r#"Bearer realm="nstar share""#)
}

/// A server that others could reach would share with anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{listen} can be reached from other machines, and without a secret or keys everyone there could use this server; \
     give the group's secret with --secret-file or its members' keys with --allow, or listen on 127.0.0.1"
)]
pub struct Exposed {
    listen: SocketAddr,
}

/// Refuses to be open to all on an address that other machines can reach.
///
/// # Errors
/// When `listen` is not a loopback address and the group is not closed.
pub fn check_exposure(listen: SocketAddr, is_closed: bool) -> Result<(), Exposed> {
    let local = listen.ip().to_canonical().is_loopback();
    if local || is_closed { Ok(()) } else { Err(Exposed { listen }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

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

    fn asker<'a>(authorization: &'a [u8], key: Option<&'a [u8]>) -> Asker<'a> {
        let from = "127.0.0.1:1".parse().unwrap();
        Asker { credentials: Credentials::parse(authorization), key, from }
    }

    #[test]
    fn members_are_known_by_the_whole_secret() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::open(Some(&folder.path().join("secret")), None).unwrap();
        let right = group.authorization().unwrap();
        let admits = |value: &[u8]| group.admit(&asker(value, None), For::Owner).is_ok();
        assert!(admits(&right));
        assert!(!admits(&right[..right.len() - 1]) && !admits(b"Bearer x") && !admits(b"Basic YTpi"));
        assert_eq!(group.admit(&asker(b"", None), For::Members).unwrap_err().status(), 401);
        let open = Group::open(None, None).unwrap();
        assert!(open.admit(&asker(b"", None), For::Owner).is_ok() && open.authorization().is_none());
    }

    #[test]
    fn with_keys_members_have_what_is_theirs_the_owner_all_and_either_proof_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        let [own, ann, eve] = ["own", "ann", "eve"].map(|name| Key::open(&folder.path().join(name)).unwrap());
        let members = Members::new(own.clone(), [ann.public()]);
        let by_key = Group::open(None, Some(members.clone())).unwrap();
        let either = Group::open(Some(&secret), Some(members)).unwrap();
        let right = Group::open(Some(&secret), None).unwrap().authorization().unwrap();
        assert_eq!(either.authorization(), None, "the secret is the owner's own, and told to nobody");
        for group in [&by_key, &either] {
            let status = |key: Option<&Key>, what| {
                let key = key.map(Key::public);
                let key = key.as_ref().map(|key| &key.as_bytes()[..]);
                group.admit(&asker(b"Bearer x", key), what).map_or_else(|problem| problem.status(), |()| 200)
            };
            let both = |key| (status(key, For::Members), status(key, For::Owner));
            assert_eq!(both(Some(&own)), (200, 200));
            assert_eq!(both(Some(&ann)), (200, 403));
            assert_eq!(both(Some(&eve)), (403, 403));
            assert_eq!(both(None), (401, 401));
        }
        assert!(either.admit(&asker(&right, None), For::Owner).is_ok());
        assert!(by_key.admit(&asker(&right, None), For::Owner).is_err());
        let hint = |what| by_key.admit(&asker(b"", None), what).unwrap_err().body();
        assert!(hint(For::Owner).contains("this peer's own key"), "{}", hint(For::Owner));
        let of_index = hint(For::Members);
        assert!(of_index.contains("--allow") && !of_index.contains("--key-file"), "{of_index}");
    }
}
