//! An accounts server, asked over connections that stay open.

use std::{
    fmt, fs,
    io::{self, Read},
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use accounts::{Identity, Recognised, Revocations, Sender};
use engine::{service::Connection, shared::Atomics};
use http_io::{
    Method,
    client::{Client, ClientError, ClientOptions, Request, Response, Trust, Upstream},
    server::{Error, Exchange, HTTPS_ONLY},
};
use store::Secret;
use zeroize::Zeroizing;

use crate::{
    access::{identity::CredentialCheck, session},
    error::FilesError,
    options::{AccountsBackend, Options},
};

/// Names the client to the accounts server, which counts failed logins by address.
const FORWARDED_FOR: &str = "X-Forwarded-For";
/// Maximum time for a request for revocations, as other requests wait for it.
const FEED_TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// Maximum time to connect.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// Maximum length of a token, bytes.
const TOKEN_MAX: usize = 1024;

/// How to reach an accounts server.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    to: Upstream,
    token: Option<Token>,
}

/// The token that identifies this file server to the accounts server, wiped from memory when dropped. `Debug` hides it.
#[derive(Clone)]
struct Token(Zeroizing<String>);

impl Link {
    /// Reads the options. Returns `None` if there is no accounts server.
    ///
    /// # Errors
    /// When the trusted certificates or the token cannot be read.
    pub(crate) fn of(options: &Options) -> Result<Option<Self>, FilesError> {
        let (to, name) = match &options.accounts {
            AccountsBackend::Remote(to) => (*to, None),
            AccountsBackend::Secure(to, name) => (*to, Some(name)),
            AccountsBackend::Local(_) | AccountsBackend::Open => return Ok(None),
        };
        let trust = || options.accounts_ca.as_deref().map_or_else(Trust::of_system, Trust::of_file);
        let peer = name.map(|name| trust()?.peer(name)).transpose()?;
        let to = peer.map_or_else(|| to.into(), |peer| Upstream::secure(to, peer));
        let token = options.accounts_token.as_deref().map(Token::read).transpose()?;
        Ok(Some(Self { to, token }))
    }

    /// A client for one worker. `timeout` bounds a whole request.
    fn client<C: Connection>(&self, timeout: Duration) -> Client<C> {
        self.client_with(timeout, ClientOptions::default())
    }

    /// A client for rare requests, which keeps no connection open.
    fn unpooled_client<C: Connection>(&self, timeout: Duration) -> Client<C> {
        self.client_with(timeout, ClientOptions { idle_max: 0, ..ClientOptions::default() })
    }

    fn client_with<C: Connection>(&self, timeout: Duration, options: ClientOptions) -> Client<C> {
        let connect_timeout = timeout.min(CONNECT_TIMEOUT_MAX);
        Client::new(self.to.clone(), ClientOptions { timeout, connect_timeout, ..options })
    }

    fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }
}

impl Token {
    /// Reads a token from the file that the accounts server created, or a copy of it, unless others may read or change it.
    fn read(path: &Path) -> Result<Self, FilesError> {
        let failed = |source| FilesError::Token { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(failed)?;
        Secret::check_access(path, &file.metadata().map_err(failed)?).map_err(FilesError::SharedToken)?;
        // With room enough: a text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(2 * TOKEN_MAX));
        file.take(TOKEN_MAX as u64 + 1).read_to_string(&mut text).map_err(failed)?;
        let token = text.trim();
        if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(failed(io::Error::other("it contains no token")));
        }
        Ok(Self(token.to_owned().into()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// An accounts server, as one worker sees it.
pub(crate) struct AccountsServer<C> {
    client: Client<C>,
    /// For requests for revocations. Workers take turns, so none keeps a connection open for them.
    feed: Client<C>,
    link: Link,
    /// A single number: 1 if the last request of any worker got no response. Avoids a log line for each request.
    away: Arc<Atomics>,
}

/// A request to forward.
pub(crate) struct Forwarded<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a str,
    pub(crate) authorization: Option<&'a [u8]>,
    pub(crate) body: &'a [u8],
}

impl<C: Connection> AccountsServer<C> {
    /// The accounts server that `link` leads to. `timeout` bounds each request.
    pub(crate) fn new(link: Link, timeout: Duration, away: Arc<Atomics>) -> Self {
        let feed = link.unpooled_client(timeout.min(FEED_TIMEOUT_MAX));
        Self { client: link.client(timeout), feed, link, away }
    }

    /// Checks the credential of a request by sending it on unchanged.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>) -> CredentialCheck {
        let authorization = session::authorization(exchange);
        let from = client_address(exchange);
        let headers =
            self.headers([("Authorization", authorization.as_ref()), (FORWARDED_FOR, from.as_bytes())]);
        let request = Request::new(Method::Get, "/auth").headers(&headers);
        self.send(exchange, &request)
            .await
            .map_or(CredentialCheck::Unavailable, |response| check_of(&response))
    }

    /// What was revoked since a revision.
    pub(crate) async fn revocations(
        &self,
        exchange: &Exchange<'_, C>,
        after: Option<u64>,
    ) -> Option<Revocations> {
        let target =
            after.map_or_else(|| "/revocations".into(), |after| format!("/revocations?after={after}"));
        let headers = self.headers([]);
        let request = Request::new(Method::Get, &target).headers(&headers);
        let response = self.feed.send(exchange.connection(), &request).await.ok()?;
        if response.status() == 200 { serde_json::from_slice(response.body()).ok() } else { None }
    }

    /// Forwards a request once and returns the response.
    pub(crate) async fn forward(
        &self,
        exchange: &Exchange<'_, C>,
        request: &Forwarded<'_>,
    ) -> Result<http_io::Response, Error> {
        let from = client_address(exchange);
        let headers =
            [("Content-Type", &b"application/json"[..]), (FORWARDED_FOR, from.as_bytes())].into_iter();
        let headers = headers.chain(request.authorization.map(|value| ("Authorization", value)));
        let headers = self.headers(headers);
        // The response to HEAD is the one to GET without its body.
        let method = if request.method == Method::Head { Method::Get } else { request.method };
        let request = Request::new(method, request.target).headers(&headers).body(request.body).once();
        match self.send(exchange, &request).await {
            Ok(response) => Ok(relayed(&response)),
            Err(away) => {
                let hint = if away.may_have_acted { "it may still have acted on the request" } else { "" };
                Err(accounts::problem(503, "the accounts server did not respond").hint(hint).into())
            }
        }
    }

    /// The header fields of a request, with the token that identifies this server.
    fn headers<'h>(&'h self, own: impl IntoIterator<Item = (&'h str, &'h [u8])>) -> Vec<(&'h str, &'h [u8])> {
        let token = self.link.token().map(|token| (accounts::SERVICE_TOKEN, token.as_bytes()));
        own.into_iter().chain(token).collect()
    }

    async fn send(&self, exchange: &Exchange<'_, C>, request: &Request<'_>) -> Result<Response, Away> {
        let sent = usable(self.client.send(exchange.connection(), request).await);
        let was_away = self.away[0].load(Relaxed) != 0;
        match &sent {
            Err(away) if !was_away && self.away[0].swap(1, Relaxed) == 0 => {
                let error = &away.error;
                tracing::warn!(%error, "the accounts server does not respond; requests that need it get 503");
            }
            Ok(_) if was_away && self.away[0].swap(0, Relaxed) != 0 => {
                tracing::warn!("the accounts server responds again");
            }
            _ => {}
        }
        sent
    }
}

/// Why there is no usable response.
struct Away {
    error: String,
    may_have_acted: bool,
}

/// Returns the response, unless it says that this server may not ask.
fn usable(sent: Result<Response, ClientError>) -> Result<Response, Away> {
    match sent {
        Ok(response) if response.header(accounts::SERVICE_TOKEN).is_some() => {
            let error = "it requires its service token: name the right token file with --accounts-token-file";
            Err(Away { error: error.to_owned(), may_have_acted: false })
        }
        Ok(response) if response.wants_tls() => {
            let error = format!("{HTTPS_ONLY}: give --accounts https://HOST:PORT");
            Err(Away { error, may_have_acted: false })
        }
        Ok(response) => Ok(response),
        Err(error @ ClientError::Insecure { .. }) => {
            let error = format!("{error} (--accounts-ca FILE names the trusted certificates)");
            Err(Away { error, may_have_acted: false })
        }
        Err(error) => {
            let may_have_acted = !matches!(error, ClientError::Connect { .. });
            Err(Away { error: error.to_string(), may_have_acted })
        }
    }
}

fn check_of(response: &Response) -> CredentialCheck {
    match response.status() {
        200 => match serde_json::from_slice(response.body()) {
            Ok(Recognised { user, expires_in_s }) => {
                Identity { user, expires_in: expires_in_s.map(Duration::from_secs) }.into()
            }
            Err(_) => CredentialCheck::Unavailable,
        },
        401 => CredentialCheck::Invalid,
        429 => CredentialCheck::Throttled { retry_after_s: retry_after_s(response).unwrap_or(1) },
        _ => CredentialCheck::Unavailable,
    }
}

fn retry_after_s(response: &Response) -> Option<u32> {
    std::str::from_utf8(response.header("Retry-After")?).ok()?.trim().parse().ok()
}

/// What names the client to the accounts server.
fn client_address<C: Connection>(exchange: &Exchange<'_, C>) -> String {
    Sender::of(exchange).to_forwarded_for()
}

/// The response of the accounts server with the header fields that matter to the client.
fn relayed(response: &Response) -> http_io::Response {
    let field = |name| response.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    // There may be several challenges; the first is for Basic.
    let passed = ["Allow", "Cache-Control", "Retry-After", "WWW-Authenticate"];
    http_io::Response {
        status: response.status(),
        content_type: field("Content-Type").unwrap_or_else(|| "application/octet-stream".to_owned()).into(),
        body: response.body().to_vec(),
        fields: passed.into_iter().filter_map(|name| Some((name, field(name)?.into()))).collect(),
    }
}
