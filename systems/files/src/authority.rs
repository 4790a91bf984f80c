//! Who knows whether a credential is right: an accounts server, this process, or nobody.

use std::{sync::Arc, time::Duration};

use accounts::{Answer, Api, BODY_LEN_MAX, Call, Refused};
use engine::service::Connection;
use http_io::{
    Credentials, Method,
    client::{Client, ClientError, ClientOptions, Request, Response},
    server::{Error, Exchange},
};
use serde::Deserialize;

use crate::verdict::Verdict;

/// Who knows the users, as one worker asks.
pub(crate) enum Authority<C> {
    /// An accounts server, over connections kept by this worker.
    Remote(Client<C>),
    /// The accounts of this process.
    Local(Arc<Api>),
    /// Nobody: everyone is let in.
    Open,
}

/// What `GET /auth` answers with.
#[derive(Deserialize)]
struct Recognised {
    expires_in_s: Option<u64>,
}

impl<C: Connection> Authority<C> {
    /// A client of an accounts server that waits this long for an answer.
    pub(crate) fn remote(to: std::net::SocketAddr, timeout: Duration) -> Self {
        let options = ClientOptions {
            timeout,
            connect_timeout: timeout.min(Duration::from_secs(1)),
            ..ClientOptions::default()
        };
        Self::Remote(Client::new(to, options))
    }

    /// Whether a credential, as it stands in the request of `exchange`, is right.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>, credentials: &Credentials<'_>) -> Verdict {
        match self {
            Self::Remote(client) => ask(client, exchange).await,
            Self::Local(api) => verdict(api.accounts().identify(credentials).await.map(|who| who.expires_in)),
            Self::Open => Verdict::Right { expires_in: None },
        }
    }

    /// Hands a request for `/accounts` or `/sessions` on, and answers with what comes back. `None` where there
    /// are no accounts.
    pub(crate) async fn pass_on(&self, exchange: &mut Exchange<'_, C>) -> Result<Option<Answer>, Error> {
        let path = exchange.path().to_owned();
        let body = exchange.read_body(BODY_LEN_MAX).await?.to_vec();
        match self {
            Self::Remote(client) => forward(client, exchange, &path, &body).await.map(Some),
            Self::Local(api) => {
                let call = Call { method: "POST", path: &path, authorization: None, body: &body };
                Ok(Some(api.answer(call).await))
            }
            Self::Open => Ok(None),
        }
    }
}

/// Sends the credential as it came.
async fn ask<C: Connection>(client: &Client<C>, exchange: &Exchange<'_, C>) -> Verdict {
    let authorization = exchange.header("authorization").unwrap_or_default();
    let headers = [("Authorization", authorization)];
    let request = Request::new(Method::Get, "/auth").headers(&headers);
    match client.send(exchange.connection(), &request).await {
        Ok(response) => read(&response),
        Err(error) => {
            away(&error);
            Verdict::Unavailable
        }
    }
}

fn read(response: &Response) -> Verdict {
    match response.status() {
        200 => match serde_json::from_slice(response.body()) {
            Ok(Recognised { expires_in_s }) => {
                Verdict::Right { expires_in: expires_in_s.map(Duration::from_secs) }
            }
            Err(_) => Verdict::Unavailable,
        },
        401 => Verdict::Wrong,
        other => {
            tracing::warn!(status = other, "the accounts server cannot say who is right");
            Verdict::Unavailable
        }
    }
}

fn verdict(found: Result<Option<Duration>, Refused>) -> Verdict {
    match found {
        Ok(expires_in) => Verdict::Right { expires_in },
        Err(Refused::Unknown) => Verdict::Wrong,
        Err(_) => Verdict::Unavailable,
    }
}

async fn forward<C: Connection>(
    client: &Client<C>,
    exchange: &Exchange<'_, C>,
    path: &str,
    body: &[u8],
) -> Result<Answer, Error> {
    let headers = [("Content-Type", &b"application/json"[..])];
    let request = Request::new(Method::Post, path).headers(&headers).body(body);
    match client.send(exchange.connection(), &request).await {
        Ok(response) => Ok(relayed(&response)),
        Err(error) => {
            away(&error);
            let unsure = !matches!(error, ClientError::Connect { .. });
            let hint = if unsure { "it may have acted on the request all the same" } else { "" };
            Err(accounts::problem(503, "the accounts server did not answer").hint(hint).into())
        }
    }
}

/// The answer of the accounts server, with those of its header fields that mean something to the client.
fn relayed(response: &Response) -> Answer {
    let field = |name| response.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
    let passed = ["Allow", "Cache-Control", "Retry-After", "WWW-Authenticate"];
    Answer {
        status: response.status(),
        content_type: field("Content-Type").unwrap_or_else(|| "application/octet-stream".to_owned()).into(),
        body: response.body().to_vec(),
        fields: passed.into_iter().filter_map(|name| Some((name, field(name)?.into()))).collect(),
    }
}

fn away(error: &ClientError) {
    tracing::warn!(%error, "the accounts server did not answer");
}
