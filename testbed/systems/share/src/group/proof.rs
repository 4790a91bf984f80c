//! Proves that a client knows the group's secret, without sending it: whoever listens, or is asked because an index named
//! it, must not learn the secret.
//!
//! A server that turns a client away gives it a nonce. The client sends its request again with a message authentication
//! code (keyed BLAKE3) over the method, the target, the address that it asks, the nonce and a hash of the body:
//!
//! ```text
//! WWW-Authenticate: Nstar nonce="NONCE"
//! Authorization: Nstar to="192.0.2.2:8085", nonce="NONCE", body="HASH", mac="MAC"
//! ```
//!
//! A nonce is the time at the server, signed, so that servers keep none: it is valid for a minute, at every server of the
//! group. Until then the same request can be repeated by whoever heard it. The address keeps one server from passing the
//! request on to another.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use blake3::Hash;
use http_io::{
    Method,
    client::{BlockingClient, ClientError, Request, Response},
};
use store::Secret;
use zeroize::Zeroizing;

/// The scheme's name in header fields.
const SCHEME: &str = "Nstar";
/// How long a nonce is valid, seconds.
const NONCE_LIFE_S: u64 = 60;
/// Most servers whose nonces are kept.
const SERVERS_MAX: usize = 1000;

/// What is derived from a group's secret, wiped from memory when dropped.
#[derive(Clone)]
pub(super) struct Keys {
    requests: Zeroizing<[u8; 32]>,
    nonces: Zeroizing<[u8; 32]>,
}

/// What a client sends in place of the secret.
struct Proof<'a> {
    to: SocketAddr,
    nonce: &'a str,
    body: Hash,
    mac: Hash,
}

/// What a proof is about.
#[derive(Clone, Copy)]
struct Claim<'a> {
    method: &'a str,
    target: &'a str,
    to: SocketAddr,
    nonce: &'a str,
    body: Hash,
}

/// What a server makes of an `Authorization` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The client knows the secret.
    Proven,
    /// The client asks for a nonce, or used one that is too old.
    NonceWanted,
    /// The field says something else, or something wrong.
    Unproven,
}

impl Keys {
    pub(super) fn new(secret: &Secret) -> Self {
        let derive = |context| Zeroizing::new(blake3::derive_key(context, secret.as_bytes()));
        Self {
            requests: derive("nstar share 1: requests within a group"),
            nonces: derive("nstar share 1: nonces of a group"),
        }
    }

    /// The challenge for clients that are turned away.
    pub(super) fn challenge(&self) -> String {
        format!("{SCHEME} nonce=\"{}\"", self.nonce(now_s()))
    }

    /// Whether the field proves that its sender knows the secret and means this request.
    pub(super) fn verify(&self, authorization: &[u8], method: &str, target: &str) -> Verdict {
        if authorization == SCHEME.as_bytes() {
            return Verdict::NonceWanted;
        }
        let Some(Proof { to, nonce, body, mac }) = Proof::parse(authorization) else {
            return Verdict::Unproven;
        };
        if self.mac(Claim { method, target, to, nonce, body }) != mac {
            Verdict::Unproven
        } else if self.is_current(nonce, now_s()) {
            Verdict::Proven
        } else {
            Verdict::NonceWanted
        }
    }

    fn nonce(&self, at_s: u64) -> String {
        let signature = blake3::keyed_hash(&self.nonces, &at_s.to_be_bytes());
        format!("{at_s:016x}{signature}")
    }

    fn is_current(&self, nonce: &str, now_s: u64) -> bool {
        let at_s = nonce.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        at_s.is_some_and(|at_s| at_s.abs_diff(now_s) <= NONCE_LIFE_S && self.nonce(at_s) == nonce)
    }

    /// Hashes compare in constant time.
    fn mac(&self, Claim { method, target, to, nonce, body }: Claim<'_>) -> Hash {
        // None of them contains a line break.
        let text = format!("{method}\n{target}\n{to}\n{nonce}\n{body}");
        blake3::keyed_hash(&self.requests, text.as_bytes())
    }

    fn authorize(&self, claim: Claim<'_>) -> String {
        let Claim { to, nonce, body, .. } = claim;
        format!("{SCHEME} to=\"{to}\", nonce=\"{nonce}\", body=\"{body}\", mac=\"{}\"", self.mac(claim))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(hidden)")
    }
}

impl<'a> Proof<'a> {
    fn parse(authorization: &'a [u8]) -> Option<Self> {
        let parameters = std::str::from_utf8(authorization).ok()?.strip_prefix(SCHEME)?.strip_prefix(' ')?;
        let [to, nonce, body, mac] = ["to", "nonce", "body", "mac"].map(|name| parameter(parameters, name));
        let hash = |text: Option<&str>| Hash::from_hex(text?).ok();
        Some(Self { to: to?.parse().ok()?, nonce: nonce?, body: hash(body)?, mac: hash(mac)? })
    }
}

/// The address to which a client sent its request, if it proves that it knows the secret.
pub(super) fn sent_to(authorization: &[u8]) -> Option<SocketAddr> {
    Proof::parse(authorization).map(|proof| proof.to)
}

/// Whether a body is the one that the field speaks of, if it does.
pub(super) fn is_body(authorization: &[u8], body: &[u8]) -> bool {
    Proof::parse(authorization).is_none_or(|proof| proof.body == blake3::hash(body))
}

/// The value of a parameter in quotation marks.
fn parameter<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let values = list.split(',').filter_map(|one| one.trim().split_once('='));
    let value = values.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
    value.strip_prefix('"')?.strip_suffix('"')
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Sends a client's requests, with proofs if its group has a secret.
#[derive(Debug, Default)]
pub(crate) struct Signer {
    keys: Option<Keys>,
    nonces: Mutex<HashMap<SocketAddr, String>>,
}

/// A request that may be sent more than once.
#[derive(Clone, Copy)]
pub(crate) struct GroupRequest<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a [u8])],
    pub(crate) body: &'a [u8],
}

impl Signer {
    pub(super) fn new(keys: Option<Keys>) -> Self {
        Self { keys, nonces: Mutex::default() }
    }

    /// Sends a request, a second time if the server asks for another nonce.
    ///
    /// # Errors
    /// Those of [`BlockingClient::send`].
    pub(crate) fn send(
        &self,
        caller: &mut BlockingClient,
        request: GroupRequest<'_>,
    ) -> Result<Response, ClientError> {
        let Some(keys) = &self.keys else { return send(caller, request, None) };
        let known = self.nonces().get(&caller.to()).cloned();
        let response = send(caller, request, Some(&proof(keys, caller, request, known.as_deref())))?;
        match nonce_in(&response) {
            Some(nonce) if known.as_deref() != Some(nonce) => {
                let proof = proof(keys, caller, request, Some(nonce));
                self.keep(caller.to(), nonce.to_owned());
                send(caller, request, Some(&proof))
            }
            _ => Ok(response),
        }
    }

    fn keep(&self, of: SocketAddr, nonce: String) {
        let mut nonces = self.nonces();
        if nonces.len() >= SERVERS_MAX {
            nonces.clear();
        }
        nonces.insert(of, nonce);
    }

    fn nonces(&self) -> std::sync::MutexGuard<'_, HashMap<SocketAddr, String>> {
        // No code panics while holding the lock.
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The `Authorization` of a request. Without a nonce it asks for one.
fn proof(keys: &Keys, caller: &BlockingClient, request: GroupRequest<'_>, nonce: Option<&str>) -> String {
    let Some(nonce) = nonce else { return SCHEME.to_owned() };
    let body = blake3::hash(request.body);
    let (method, target) = (request.method.as_str(), request.target);
    keys.authorize(Claim { method, target, to: caller.to(), nonce, body })
}

fn send(
    caller: &mut BlockingClient,
    request: GroupRequest<'_>,
    authorization: Option<&str>,
) -> Result<Response, ClientError> {
    let mut headers = request.headers.to_vec();
    headers.extend(authorization.map(|value| ("Authorization", value.as_bytes())));
    caller
        .send(&Request::new(request.method, request.target).headers(&headers).body(request.body).repeatable())
}

/// The nonce that a server gives to a client that it turns away.
fn nonce_in(response: &Response) -> Option<&str> {
    let challenge = response.header("WWW-Authenticate").filter(|_| response.status() == 401)?;
    let (_, parameters) = std::str::from_utf8(challenge).ok()?.split_once(SCHEME)?;
    parameter(parameters, "nonce")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(name: &str) -> Keys {
        let folder = tempfile::tempdir().unwrap();
        Keys::new(&Secret::open(&folder.path().join(name)).unwrap())
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_proof_is_for_one_request_to_one_server_and_a_minute() {
        let (keys, others) = (keys("a"), keys("b"));
        let nonce = keys.nonce(now_s());
        let claim = Claim {
            method: "GET",
            target: "/content/x",
            to: at("192.0.2.1:80"),
            nonce: &nonce,
            body: blake3::hash(b"body"),
        };
        let sent = keys.authorize(claim);
        let verdict = |keys: &Keys, sent: &str| keys.verify(sent.as_bytes(), "GET", "/content/x");
        assert_eq!(verdict(&keys, &sent), Verdict::Proven);
        assert_eq!(verdict(&others, &sent), Verdict::Unproven);
        assert_eq!(keys.verify(sent.as_bytes(), "PUT", "/content/x"), Verdict::Unproven);
        assert_eq!(keys.verify(sent.as_bytes(), "GET", "/content/y"), Verdict::Unproven);
        assert_eq!(verdict(&keys, &sent.replace("192.0.2.1", "192.0.2.2")), Verdict::Unproven);
        let old = keys.nonce(now_s() - 2 * NONCE_LIFE_S);
        assert_eq!(verdict(&keys, &keys.authorize(Claim { nonce: &old, ..claim })), Verdict::NonceWanted);
        let foreign = others.nonce(now_s());
        assert_eq!(verdict(&keys, &keys.authorize(Claim { nonce: &foreign, ..claim })), Verdict::NonceWanted);
        assert_eq!(verdict(&keys, SCHEME), Verdict::NonceWanted);
        assert_eq!(sent_to(sent.as_bytes()), Some(at("192.0.2.1:80")));
        assert!(is_body(sent.as_bytes(), b"body") && !is_body(sent.as_bytes(), b"another"));
        assert!(is_body(b"Bearer x", b"any"));
    }

    proptest! {
        #[test]
        fn any_field_is_read_or_not(field in "(Nstar )?(to=\"[0-9.:]{0,20}\", )?(nonce=\"[0-9a-f]{0,80}\")?\\PC{0,40}") {
            prop_assert_ne!(keys("a").verify(field.as_bytes(), "GET", "/"), Verdict::Proven);
        }
    }
}
