//! An accounts server, asked over connections that are kept.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use crate::access::{link::Link, session, verdict::Verdict};
use accounts::{Identity, Recognised, Revocations};
use engine::{service::Connection, shared::Atomics};
use http_io::{
    Method,
    client::{Client, ClientError, Request, Response},
    server::{Error, Exchange, HTTPS_ONLY},
};

/// Says for whom the accounts server is asked: it counts failures by that address.
const FORWARDED_FOR: &str = "X-Forwarded-For";
/// Longest wait for revocations: those who ask have something else to do.
const FEED_TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// An accounts server, as one worker asks it.
pub(crate) struct Remote<C> {
    client: Client<C>,
    /// Asked for revocations, by any worker in turn: none of them keeps a connection for that.
    feed: Client<C>,
    link: Link,
    /// One cell: 1 if it failed to answer when last asked, by any worker. Told once, not for every request.
    away: Arc<Atomics>,
}

/// A request to be passed on.
pub(crate) struct Passed<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a str,
    pub(crate) authorization: Option<&'a [u8]>,
    pub(crate) body: &'a [u8],
}

impl<C: Connection> Remote<C> {
    /// The accounts server at the other end of `link`, which may take this long to answer.
    pub(crate) fn new(link: Link, timeout: Duration, away: Arc<Atomics>) -> Self {
        let feed = link.seldom(timeout.min(FEED_TIMEOUT_MAX));
        Self { client: link.client(timeout), feed, link, away }
    }

    /// Asks whether the credential of `exchange` is right; it is sent as it came.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>) -> Verdict {
        let authorization = session::authorization(exchange);
        let from = client_address(exchange);
        let headers =
            self.headers([("Authorization", authorization.as_ref()), (FORWARDED_FOR, from.as_bytes())]);
        let request = Request::new(Method::Get, "/auth").headers(&headers);
        self.send(exchange, &request).await.map_or(Verdict::Unavailable, |response| read(&response))
    }

    /// Asks what was revoked since a revision.
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

    /// Passes a request on, once, and gives what comes back.
    pub(crate) async fn pass_on(
        &self,
        exchange: &Exchange<'_, C>,
        request: &Passed<'_>,
    ) -> Result<http_io::Response, Error> {
        let from = client_address(exchange);
        let headers =
            [("Content-Type", &b"application/json"[..]), (FORWARDED_FOR, from.as_bytes())].into_iter();
        let headers = headers.chain(request.authorization.map(|value| ("Authorization", value)));
        let headers = self.headers(headers);
        // What is answered to HEAD is answered to GET, without the body.
        let method = if request.method == Method::Head { Method::Get } else { request.method };
        let request = Request::new(method, request.target).headers(&headers).body(request.body).once();
        match self.send(exchange, &request).await {
            Ok(response) => Ok(relayed(&response)),
            Err(away) => {
                let hint =
                    if away.may_have_acted { "it may have acted on the request all the same" } else { "" };
                Err(accounts::problem(503, "the accounts server did not answer").hint(hint).into())
            }
        }
    }

    /// The header fields of a question, with what shows that this server may ask it.
    fn headers<'h>(&'h self, own: impl IntoIterator<Item = (&'h str, &'h [u8])>) -> Vec<(&'h str, &'h [u8])> {
        let token = self.link.token().map(|token| (accounts::SERVICE_TOKEN, token.as_bytes()));
        own.into_iter().chain(token).collect()
    }

    async fn send(&self, exchange: &Exchange<'_, C>, request: &Request<'_>) -> Result<Response, Away> {
        let sent = answer(self.client.send(exchange.connection(), request).await);
        let was_away = self.away[0].load(Relaxed) != 0;
        match &sent {
            Err(away) if !was_away && self.away[0].swap(1, Relaxed) == 0 => {
                let error = &away.error;
                tracing::warn!(%error, "the accounts server does not answer; requests that need it get 503");
            }
            Ok(_) if was_away && self.away[0].swap(0, Relaxed) != 0 => {
                tracing::warn!("the accounts server answers again");
            }
            _ => {}
        }
        sent
    }
}

/// No answer worth the name.
struct Away {
    error: String,
    may_have_acted: bool,
}

/// An answer, unless it is that nobody answers this server.
fn answer(sent: Result<Response, ClientError>) -> Result<Response, Away> {
    match sent {
        Ok(response) if response.header(accounts::SERVICE_TOKEN).is_some() => {
            let error =
                "it wants its service token: name the file of it with --accounts-token-file, or another";
            Err(Away { error: error.to_owned(), may_have_acted: false })
        }
        Ok(response) if response.wants_tls() => {
            let error = format!("{HTTPS_ONLY}: give --accounts https://HOST:PORT");
            Err(Away { error, may_have_acted: false })
        }
        Ok(response) => Ok(response),
        Err(error @ ClientError::Insecure { .. }) => {
            let error = format!("{error} (--accounts-ca FILE says who is trusted)");
            Err(Away { error, may_have_acted: false })
        }
        Err(error) => {
            let may_have_acted = !matches!(error, ClientError::Connect { .. });
            Err(Away { error: error.to_string(), may_have_acted })
        }
    }
}

fn read(response: &Response) -> Verdict {
    match response.status() {
        200 => match serde_json::from_slice(response.body()) {
            Ok(Recognised { user, expires_in_s }) => {
                Identity { user, expires_in: expires_in_s.map(Duration::from_secs) }.into()
            }
            Err(_) => Verdict::Unavailable,
        },
        401 => Verdict::Wrong,
        429 => Verdict::Slowed { retry_after_s: retry_after_s(response).unwrap_or(1) },
        _ => Verdict::Unavailable,
    }
}

fn retry_after_s(response: &Response) -> Option<u32> {
    std::str::from_utf8(response.header("Retry-After")?).ok()?.trim().parse().ok()
}

fn client_address<C: Connection>(exchange: &Exchange<'_, C>) -> String {
    exchange.requester().address.to_string()
}

/// The answer of the accounts server, with those of its header fields that mean something to the client.
fn relayed(response: &Response) -> http_io::Response {
    let field = |name| response.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    // There may be several challenges; that of Basic is the first.
    let passed = ["Allow", "Cache-Control", "Retry-After", "WWW-Authenticate"];
    http_io::Response {
        status: response.status(),
        content_type: field("Content-Type").unwrap_or_else(|| "application/octet-stream".to_owned()).into(),
        body: response.body().to_vec(),
        fields: passed.into_iter().filter_map(|name| Some((name, field(name)?.into()))).collect(),
    }
}
