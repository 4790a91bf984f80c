//! Decides who may use a server: everyone, clients with the group's secret, or clients with a member's key.

mod exposure;
mod key;
mod members;
mod proof;

use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
};

use engine::service::Connection;
use http_io::{
    Credentials, Problem,
    client::{Insecurity, Response},
    server::{Exchange, Hosts},
};
use store::{Secret, SecretError};
use tls::PublicKey;

pub(crate) use self::{
    exposure::unreachable_peer,
    proof::{GroupRequest, Signer},
};
pub use self::{
    exposure::{Exposed, check_exposure},
    key::{IDENTITY, Key, KeyError},
    members::{ListError, Members},
};
use self::{
    members::Role,
    proof::{Keys, Verdict},
};

/// The group that an index and its peers belong to.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    secret: Option<(Secret, Keys)>,
    members: Option<Members>,
}

/// What a client presents to prove who it is.
pub(crate) struct Authentication<'a> {
    /// The `Authorization` field, if there is exactly one.
    authorization: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    from: SocketAddr,
    method: &'a str,
    target: &'a str,
}

/// Who may send a request. The secret gives full access: where members are known by keys, it belongs to the owner alone and
/// only the owner sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The owner and all members.
    Member,
    /// Only clients with the server's own key.
    Owner,
}

impl<'a> Authentication<'a> {
    pub(crate) fn of<C: Connection>(exchange: &'a Exchange<'_, C>) -> Self {
        let mut fields = exchange.header_all("authorization");
        Self {
            authorization: fields.next().filter(|_| fields.next().is_none()),
            key: exchange.connection().proven_key(),
            from: exchange.peer(),
            method: exchange.method_text(),
            target: exchange.target(),
        }
    }

    /// The address to which the client means its request to go, if it says so.
    pub(crate) fn sent_to(&self) -> Option<SocketAddr> {
        proof::sent_to(self.authorization?)
    }
}

/// Checks that a request's body is the one that its sender meant.
///
/// # Errors
/// 400.
pub(crate) fn check_body(authorization: Option<&[u8]>, body: &[u8]) -> Result<(), Problem> {
    if authorization.is_none_or(|field| proof::is_body(field, body)) {
        return Ok(());
    }
    Err(Problem::new(400, "the body is not the one that the client's proof is for"))
}

/// Whether `to` is an address of a server that others reach at `own` and that listens on this machine.
pub(crate) fn is_address_of(to: SocketAddr, own: SocketAddr, listening: Option<SocketAddr>) -> bool {
    let port = to.port() == own.port() || listening.is_some_and(|at| at.port() == to.port());
    to == own || port && is_here(to)
}

/// Whether an address is of this machine.
fn is_here(at: SocketAddr) -> bool {
    UdpSocket::bind((at.ip(), 0)).is_ok()
}

/// The names to which a server of an open group answers. Such a server is on this machine alone, and so is its name.
pub(crate) fn open_hosts() -> Hosts {
    Hosts::only([], "with --secret-file it answers to any name")
}

impl Group {
    /// A group that is open to all, or closed by the secret in this file, by the members' keys, or by either. Creates the
    /// file if it does not exist.
    pub(crate) fn open(secret: Option<&Path>, members: Option<Members>) -> Result<Self, SecretError> {
        let secret = secret.map(Secret::open).transpose()?;
        let with_keys = |secret: Secret| {
            let keys = Keys::new(&secret);
            (secret, keys)
        };
        Ok(Self { secret: secret.map(with_keys), members })
    }

    /// Whether everyone may use the server.
    pub(crate) fn is_open(&self) -> bool {
        self.secret.is_none() && self.members.is_none()
    }

    /// The members, if they are known by keys.
    pub(crate) fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// Checks whether a client has this access.
    ///
    /// # Errors
    /// The response to send if not.
    pub(crate) fn admit(&self, client: &Authentication<'_>, what: Access) -> Result<(), Problem> {
        if self.is_open() || self.has_secret(client) {
            return Ok(());
        }
        let Some(members) = &self.members else { return Err(self.unauthenticated(SECRET_WANTED)) };
        match members.role(client.key) {
            Role::Owner => Ok(()),
            Role::Member(_) if what == Access::Member => Ok(()),
            Role::Member(_) => {
                Err(Problem::new(403, "this is for the owner of this peer").hint(OWNER_WANTED))
            }
            Role::Anonymous => Err(self.unauthenticated(match what {
                Access::Member => MEMBER_WANTED,
                Access::Owner => OWNER_WANTED,
            })),
            Role::Unlisted(key) => {
                members.log_rejected(key, client.from);
                Err(Problem::new(403, format!("the key {key} is not on the list of this server"))
                    .hint(format!("it would be let in with --allow {key}")))
            }
        }
    }

    /// The member's key that a client proved. `None` for the owner, and if members are not known by keys.
    pub(crate) fn member(&self, client: &Authentication<'_>) -> Option<PublicKey> {
        match self.members.as_ref()?.role(client.key) {
            Role::Member(key) if !self.has_secret(client) => Some(key),
            _ => None,
        }
    }

    /// Sends requests to other members. Without a proof where they know each other by keys: the secret is the owner's.
    pub(crate) fn signer(&self) -> Signer {
        let shared = self.secret.as_ref().filter(|_| self.members.is_none());
        Signer::new(shared.map(|(_, keys)| keys.clone()))
    }

    /// Whether a client that is turned away only needs to be told a nonce.
    pub(crate) fn wants_nonce(&self, client: &Authentication<'_>) -> bool {
        self.verdict(client) == Verdict::NonceWanted
    }

    fn has_secret(&self, client: &Authentication<'_>) -> bool {
        let Some((secret, _)) = &self.secret else { return false };
        match client.authorization.and_then(Credentials::parse) {
            Some(Credentials::Bearer(token)) => secret.is(token),
            _ => self.verdict(client) == Verdict::Proven,
        }
    }

    fn verdict(&self, client: &Authentication<'_>) -> Verdict {
        match (&self.secret, client.authorization) {
            (Some((_, keys)), Some(field)) => keys.verify(field, client.method, client.target),
            _ => Verdict::Unproven,
        }
    }

    /// The response to a client without valid credentials.
    fn unauthenticated(&self, hint: &'static str) -> Problem {
        let bearer = r#"Bearer realm="nstar share""#;
        let challenge = self.secret.as_ref().map(|(_, keys)| format!("{bearer}, {}", keys.challenge()));
        Problem::new(401, "this is for members of a group only")
            .hint(hint)
            .header("WWW-Authenticate", challenge.unwrap_or_else(|| bearer.into()))
    }
}

const SECRET_WANTED: &str =
    "give the group's secret with --secret-file, or send it as `Authorization: Bearer SECRET`";
const MEMBER_WANTED: &str = "members are known by their keys here: start the peer that asks with --allow and this \
     server's key, and this server with --allow and that peer's";
const OWNER_WANTED: &str = "give this peer's own key with --key-file DIR/.nstar/identity";

/// Explains why there is no secure connection to another peer or the index.
pub(crate) fn explain_insecurity(why: &Insecurity) -> String {
    match why {
        Insecurity::NotTls => {
            "it does not speak TLS, as this peer does; start it with --tls-cert or --allow too".into()
        }
        Insecurity::UnknownKey(key) => format!("{why}; `--allow {key}` puts it there"),
        Insecurity::NoKey => format!("{why}; start it with --allow too"),
        Insecurity::UnknownIssuer => format!(
            "{why} (--ca FILE); where members are known by their keys, start this peer with --allow too"
        ),
        why => format!("{why} (--ca FILE says who is trusted)"),
    }
}

/// Explains that a peer or an index requires TLS, if it does.
pub(crate) fn wants_tls(answer: &Response) -> Option<String> {
    answer
        .wants_tls()
        .then(|| "it speaks TLS, as this peer does not; start this one with --tls-cert or --allow too".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client<'a>(authorization: &'a [u8], key: Option<&'a [u8]>) -> Authentication<'a> {
        let from = "127.0.0.1:1".parse().unwrap();
        let authorization = Some(authorization);
        Authentication { authorization, key, from, method: "GET", target: "/" }
    }

    /// The field that the page and other HTTP clients send.
    fn bearer(secret: &Path) -> Vec<u8> {
        [b"Bearer ", Secret::open(secret).unwrap().as_bytes()].concat()
    }

    #[test]
    fn members_are_known_by_the_whole_secret() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::open(Some(&folder.path().join("secret")), None).unwrap();
        let right = bearer(&folder.path().join("secret"));
        let admits = |value: &[u8]| group.admit(&client(value, None), Access::Owner).is_ok();
        assert!(admits(&right));
        assert!(!admits(&right[..right.len() - 1]) && !admits(b"Bearer x") && !admits(b"Basic YTpi"));
        assert_eq!(group.admit(&client(b"", None), Access::Member).unwrap_err().status(), 401);
        let open = Group::open(None, None).unwrap();
        assert!(open.admit(&client(b"", None), Access::Owner).is_ok());
    }

    #[test]
    fn with_keys_members_have_what_is_theirs_the_owner_all_and_either_proof_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        let [own, ann, eve] = ["own", "ann", "eve"].map(|name| Key::open(&folder.path().join(name)).unwrap());
        let members = Members::new(own.clone(), [ann.public()]);
        let by_key = Group::open(None, Some(members.clone())).unwrap();
        let either = Group::open(Some(&secret), Some(members)).unwrap();
        let right = bearer(&secret);
        for group in [&by_key, &either] {
            let status = |key: Option<&Key>, what| {
                let key = key.map(Key::public);
                let key = key.as_ref().map(|key| &key.as_bytes()[..]);
                group.admit(&client(b"Bearer x", key), what).map_or_else(|problem| problem.status(), |()| 200)
            };
            let both = |key| (status(key, Access::Member), status(key, Access::Owner));
            assert_eq!(both(Some(&own)), (200, 200));
            assert_eq!(both(Some(&ann)), (200, 403));
            assert_eq!(both(Some(&eve)), (403, 403));
            assert_eq!(both(None), (401, 401));
        }
        assert!(either.admit(&client(&right, None), Access::Owner).is_ok());
        assert!(by_key.admit(&client(&right, None), Access::Owner).is_err());
        let hint = |what| by_key.admit(&client(b"", None), what).unwrap_err().body();
        assert!(hint(Access::Owner).contains("this peer's own key"), "{}", hint(Access::Owner));
        let of_index = hint(Access::Member);
        assert!(of_index.contains("--allow") && !of_index.contains("--key-file"), "{of_index}");
    }

    #[test]
    fn a_request_that_was_meant_for_another_server_is_told() {
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let (own, listening) = (at("203.0.113.1:9000"), Some(at("0.0.0.0:8085")));
        for (to, expected) in [
            ("203.0.113.1:9000", true),
            ("127.0.0.1:8085", true),
            ("127.0.0.1:9000", true),
            ("127.0.0.1:8086", false),
            ("192.0.2.7:9000", false),
            ("203.0.113.1:9001", false),
        ] {
            assert_eq!(is_address_of(at(to), own, listening), expected, "{to}");
        }
    }
}
