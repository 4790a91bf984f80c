//! Which clients are admitted, and the address by which their failed logins are counted.

use std::net::IpAddr;

use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};
use store::{Secret, SecretError};

use crate::options::Options;

/// The header field with the service token. In a response it says that the token is required.
pub const SERVICE_TOKEN: &str = "Service-Token";

/// Admits clients with the token and, unless it is required, clients without one.
#[derive(Debug)]
pub(crate) struct ServiceTokenCheck {
    token: Option<Secret>,
    required: bool,
}

impl ServiceTokenCheck {
    /// Reads the token, and creates it at the first start. Without a file for it, all clients are admitted.
    pub(crate) fn open(options: &Options) -> Result<Self, SecretError> {
        let token = options.service_token.as_deref().map(Secret::open).transpose()?;
        Ok(Self { token, required: options.service_token_required })
    }

    /// Admits a request or refuses it. Returns whether its sender is trusted to name the client. `is_admin` recognises the
    /// administrator's token, which is accepted too.
    pub(crate) fn admit<C: Connection>(
        &self,
        exchange: &Exchange<'_, C>,
        is_admin: impl Fn(&[u8]) -> bool,
    ) -> Result<bool, Problem> {
        let is_known = |shown| self.token.as_ref().is_some_and(|token| token.is(shown));
        match exchange.header(SERVICE_TOKEN) {
            Some(shown) if is_known(shown) => Ok(true),
            Some(_) => Err(refusal("the service token is wrong")),
            None if !self.required => Ok(exchange.peer().ip().to_canonical().is_loopback()),
            None if matches!(exchange.path(), "/healthz" | "/metrics") => Ok(false),
            None => match exchange.credentials() {
                Some(Credentials::Bearer(token)) if is_admin(token) => Ok(false),
                _ => Err(refusal("only servers that know the service token of this server may use it")),
            },
        }
    }
}

fn refusal(error: &'static str) -> Problem {
    Problem::new(403, error)
        .header(SERVICE_TOKEN, "required")
        .hint("start the file server with --accounts-token-file and this server's token file")
}

/// Who sent a request, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// The client's address.
    pub address: IpAddr,
    /// Whether the request came directly from a program on this machine, or through nothing but a file server from one.
    /// Behind anything else, and at a trusted proxy's address, an address of this machine may be that of a proxy whose clients
    /// nobody names.
    pub is_local: bool,
}

impl Sender {
    /// Who sent a request that the server itself received.
    pub fn of<C: Connection>(exchange: &Exchange<'_, C>) -> Self {
        Self { address: exchange.requester().address, is_local: exchange.is_local() }
    }

    /// The value of `X-Forwarded-For` by which a file server names it. Somebody unknown stands before an address of this
    /// machine that may be a proxy's.
    pub fn to_forwarded_for(self) -> String {
        if self.address.is_loopback() && !self.is_local {
            return format!("unknown, {}", self.address);
        }
        self.address.to_string()
    }
}

/// Who sent a request: the peer, or the client that a trusted proxy names. If the peer is `trusted` without being such a
/// proxy, it is a file server, which puts the client's address last in `X-Forwarded-For`.
pub(crate) fn sender<C: Connection>(exchange: &Exchange<'_, C>, trusted: bool) -> Sender {
    let (peer, sender) = (exchange.peer().ip().to_canonical(), Sender::of(exchange));
    let is_named = sender.address != peer || exchange.peer_is_proxy();
    if is_named || !trusted || exchange.header("forwarded").is_some() {
        return sender;
    }
    let mut lists = exchange.header_all("x-forwarded-for");
    match (lists.next(), lists.next()) {
        (Some(list), None) => named(list).unwrap_or(sender),
        (Some(_), Some(list)) => Sender { is_local: false, ..named(list).unwrap_or(sender) },
        (None, _) => sender,
    }
}

/// The last client in a list.
fn named(list: &[u8]) -> Option<Sender> {
    let address = last(list)?.to_canonical();
    Some(Sender { address, is_local: address.is_loopback() && !list.contains(&b',') })
}

fn last(list: &[u8]) -> Option<IpAddr> {
    let last = list.rsplit(|&byte| byte == b',').next()?;
    std::str::from_utf8(last).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_address_of_this_machine_is_local() {
        let local = |list: &str| named(list.as_bytes()).is_some_and(|sender| sender.is_local);
        assert!(local("127.0.0.1") && local("::1"));
        assert!(!local("unknown, 127.0.0.1") && !local("192.0.2.1, 127.0.0.1") && !local("192.0.2.1"));
        let hidden = Sender { address: "127.0.0.1".parse().unwrap(), is_local: false };
        assert!(!local(&hidden.to_forwarded_for()));
        assert!(local(&Sender { is_local: true, ..hidden }.to_forwarded_for()));
    }

    #[test]
    fn the_last_address_counts_and_other_text_is_ignored() {
        assert_eq!(last(b"192.0.2.1"), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(last(b"10.0.0.1, 2001:db8::1 "), Some("2001:db8::1".parse().unwrap()));
        for nonsense in [&b""[..], b"unknown", b"192.0.2.1, x", b"\xff"] {
            assert_eq!(last(nonsense), None);
        }
    }
}
