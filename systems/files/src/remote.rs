//! An accounts server, asked over connections that are kept.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use crate::verdict::Verdict;
use accounts::{Identity, Recognised};
use engine::{service::Connection, shared::Cells};
use http_io::{
    Answer, Method,
    client::{Client, ClientError, ClientOptions, Request, Response},
    server::{Error, Exchange},
};

/// Longest wait for a connection.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// An accounts server, as one worker asks it.
pub(crate) struct Remote<C> {
    client: Client<C>,
    /// One cell: 1 if it failed to answer when last asked, by any worker. Told once, not for every request.
    away: Arc<Cells>,
}

impl<C: Connection> Remote<C> {
    /// The accounts server at `to`, which may take this long to answer.
    pub(crate) fn new(to: SocketAddr, timeout: Duration, away: Arc<Cells>) -> Self {
        let connect_timeout = timeout.min(CONNECT_TIMEOUT_MAX);
        let options = ClientOptions { timeout, connect_timeout, ..ClientOptions::default() };
        Self { client: Client::new(to, options), away }
    }

    /// Asks whether the credential of `exchange` is right; it is sent as it came.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>) -> Verdict {
        let authorization = exchange.header("authorization").unwrap_or_default();
        let headers = [("Authorization", authorization)];
        let request = Request::new(Method::Get, "/auth").headers(&headers);
        self.send(exchange, &request).await.map_or(Verdict::Unavailable, |response| read(&response))
    }

    /// Hands a POST on, and gives what comes back.
    pub(crate) async fn forward(
        &self,
        exchange: &Exchange<'_, C>,
        path: &str,
        body: &[u8],
    ) -> Result<Answer, Error> {
        let headers = [("Content-Type", &b"application/json"[..])];
        let request = Request::new(Method::Post, path).headers(&headers).body(body);
        match self.send(exchange, &request).await {
            Ok(response) => Ok(relayed(&response)),
            Err(error) => {
                let unsure = !matches!(error, ClientError::Connect { .. });
                let hint = if unsure { "it may have acted on the request all the same" } else { "" };
                Err(accounts::problem(503, "the accounts server did not answer").hint(hint).into())
            }
        }
    }

    async fn send(&self, exchange: &Exchange<'_, C>, request: &Request<'_>) -> Result<Response, ClientError> {
        let sent = self.client.send(exchange.connection(), request).await;
        let was_away = self.away[0].load(Relaxed) != 0;
        match &sent {
            Err(error) if !was_away && self.away[0].swap(1, Relaxed) == 0 => {
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

fn read(response: &Response) -> Verdict {
    match response.status() {
        200 => match serde_json::from_slice(response.body()) {
            Ok(Recognised { user, expires_in_s }) => {
                Identity { user, expires_in: expires_in_s.map(Duration::from_secs) }.into()
            }
            Err(_) => Verdict::Unavailable,
        },
        401 => Verdict::Wrong,
        _ => Verdict::Unavailable,
    }
}

/// The answer of the accounts server, with those of its header fields that mean something to the client.
fn relayed(response: &Response) -> Answer {
    let field = |name| response.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    // There may be several challenges; that of Basic is the first.
    let passed = ["Allow", "Cache-Control", "Retry-After", "WWW-Authenticate"];
    Answer {
        status: response.status(),
        content_type: field("Content-Type").unwrap_or_else(|| "application/octet-stream".to_owned()).into(),
        body: response.body().to_vec(),
        fields: passed.into_iter().filter_map(|name| Some((name, field(name)?.into()))).collect(),
    }
}
