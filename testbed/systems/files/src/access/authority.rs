//! What checks credentials: an accounts server, accounts in this process, or nothing.

use std::sync::Arc;

use accounts::{AccountsApi, BODY_LEN_MAX, Call, Refused, Revocations, Sender};
use api_server::Headers;
use engine::service::Connection;
use http_io::{
    Credentials, Method, Response,
    server::{Error, Exchange},
};

use crate::access::{
    accounts_server::{AccountsServer, Forwarded},
    identity::CredentialCheck,
    session,
};

/// What checks credentials, as one worker sees it.
pub(crate) enum Authority<C> {
    /// An accounts server.
    Remote(Box<AccountsServer<C>>),
    /// Accounts in this process.
    Local(Arc<AccountsApi>),
    /// Nothing: everyone is admitted.
    Open,
}

impl<C: Connection> Authority<C> {
    /// Checks the credential of a request.
    pub(crate) async fn check(
        &self,
        exchange: &Exchange<'_, C>,
        credentials: &Credentials<'_>,
    ) -> CredentialCheck {
        match self {
            Self::Remote(remote) => remote.check(exchange).await,
            Self::Local(api) => {
                match api.accounts().identify(credentials, exchange.requester().address).await {
                    Ok(identity) => identity.into(),
                    Err(Refused::Unknown | Refused::NoSession) => CredentialCheck::Invalid,
                    Err(Refused::Slowed { retry_after_s }) => CredentialCheck::Throttled { retry_after_s },
                    Err(_) => CredentialCheck::Unavailable,
                }
            }
            // Admission lets everyone in before it asks.
            Self::Open => CredentialCheck::Unavailable,
        }
    }

    /// What was revoked since a revision, or `None` if the accounts did not say.
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

    /// Forwards a request to the accounts, with its body and credential, and returns their response. `None` if there are no
    /// accounts.
    pub(crate) async fn forward(
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
                let forwarded = Forwarded { method, target, authorization, body: &body };
                remote.forward(exchange, &forwarded).await.map(Some)
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
                    sender: Sender::of(exchange),
                };
                let (_, response) = api_server::respond(&**api, call).await;
                Ok(Some(response))
            }
            Self::Open => Ok(None),
        }
    }
}
