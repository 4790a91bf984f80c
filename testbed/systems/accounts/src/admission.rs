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

/// The address that a request comes from, or the one that a trusted proxy names. If the sender is `trusted` without being
/// such a proxy, it is a file server, which puts the address last in `X-Forwarded-For`.
pub(crate) fn address<C: Connection>(exchange: &Exchange<'_, C>, trusted: bool) -> IpAddr {
    let (peer, requester) = (exchange.peer().ip().to_canonical(), exchange.requester().address);
    if requester != peer || !trusted {
        return requester;
    }
    exchange.header("x-forwarded-for").and_then(last).unwrap_or(peer)
}

fn last(list: &[u8]) -> Option<IpAddr> {
    let last = list.rsplit(|&byte| byte == b',').next()?;
    std::str::from_utf8(last).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_counts_and_other_text_is_ignored() {
        assert_eq!(last(b"192.0.2.1"), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(last(b"10.0.0.1, 2001:db8::1 "), Some("2001:db8::1".parse().unwrap()));
        for nonsense in [&b""[..], b"unknown", b"192.0.2.1, x", b"\xff"] {
            assert_eq!(last(nonsense), None);
        }
    }
}
