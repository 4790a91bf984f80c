//! Who knows whether a credential is right: an accounts server, this process, or nobody.

use std::sync::Arc;

use accounts::{AccountsApi, BODY_LEN_MAX, Call, Refused, Revocations};
use api_server::Headers;
use engine::service::Connection;
use http_io::{
    Credentials, Method, Response,
    server::{Error, Exchange},
};

use crate::access::{
    remote::{Passed, Remote},
    session,
    verdict::Verdict,
};

/// Who knows the users, as one worker asks.
pub(crate) enum Authority<C> {
    /// An accounts server.
    Remote(Box<Remote<C>>),
    /// The accounts of this process.
    Local(Arc<AccountsApi>),
    /// Nobody: everyone is let in.
    Open,
}

impl<C: Connection> Authority<C> {
    /// Whether a credential, as it stands in the request of `exchange`, is right.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>, credentials: &Credentials<'_>) -> Verdict {
        match self {
            Self::Remote(remote) => remote.check(exchange).await,
            Self::Local(api) => {
                match api.accounts().identify(credentials, exchange.requester().address).await {
                    Ok(identity) => identity.into(),
                    Err(Refused::Unknown | Refused::NoSession) => Verdict::Wrong,
                    Err(Refused::Slowed { retry_after_s }) => Verdict::Slowed { retry_after_s },
                    Err(_) => Verdict::Unavailable,
                }
            }
            // Whoever keeps the gate lets everyone in.
            Self::Open => Verdict::Unavailable,
        }
    }

    /// What was revoked since a revision; none where the accounts do not say.
    pub(crate) async fn revocations(
        &self,
        exchange: &Exchange<'_, C>,
        after: Option<u64>,
    ) -> Option<Revocations> {
        match self {
            Self::Remote(remote) => remote.revocations(exchange, after).await,
            Self::Local(api) => api.accounts().revocations(after).await.ok(),
            Self::Open => None,
        }
    }

    /// Asks the accounts for whoever sends this request, with its body and credential, and gives what comes back. `None`
    /// where there are no accounts.
    pub(crate) async fn pass_on(
        &self,
        exchange: &mut Exchange<'_, C>,
        method: Method,
        target: &str,
    ) -> Result<Option<Response>, Error> {
        let authorization = Some(session::authorization(exchange).into_owned()).filter(|it| !it.is_empty());
        let body = exchange.read_body(BODY_LEN_MAX).await?.to_vec();
        let authorization = authorization.as_deref();
        match self {
            Self::Remote(remote) => {
                let passed = Passed { method, target, authorization, body: &body };
                remote.pass_on(exchange, &passed).await.map(Some)
            }
            Self::Local(api) => {
                let (path, query) = target.split_once('?').unzip();
                let headers = authorization.map(|value| ("authorization", value));
                let call = Call {
                    method: method.as_str(),
                    path: path.unwrap_or(target),
                    query,
                    headers: Headers::Given(headers.as_slice()),
                    body: &body,
                    sender: exchange.requester().address,
                };
                let (_, response) = api_server::respond(&**api, call).await;
                Ok(Some(response))
            }
            Self::Open => Ok(None),
        }
    }
}
