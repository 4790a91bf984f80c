//! Who may ask: file servers, which show that they know this server's token.

use engine::service::Connection;
use http_io::{Credentials, Problem, server::Exchange};
use store::{Secret, SecretError};

use crate::options::Options;

/// The header field in which a file server shows that it knows the token. In an answer it says that it was looked for.
pub const SERVICE_TOKEN: &str = "Service-Token";

/// Lets in those who know the token, and where it is not required those who show none.
#[derive(Debug)]
pub(crate) struct Door {
    token: Option<Secret>,
    required: bool,
}

impl Door {
    /// Reads the token, and makes it at the first start. Without a file of one, everybody is let in.
    pub(crate) fn open(options: &Options) -> Result<Self, SecretError> {
        let token = options.service_token.as_deref().map(Secret::open).transpose()?;
        Ok(Self { token, required: options.service_token_required })
    }

    /// Lets a request in, or says why not; tells whether whoever sends it is believed when they say for whom they ask.
    /// `is_admin` knows the administrator's token, which opens this door too.
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
                _ => Err(refusal("only servers that know this server's service token may ask it")),
            },
        }
    }
}

fn refusal(error: &'static str) -> Problem {
    Problem::new(403, error).header(SERVICE_TOKEN, "required").hint(
        "start the file server with --accounts-token-file and the file that this server was started with",
    )
}
