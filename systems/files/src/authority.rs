//! Who knows whether a credential is right: an accounts server, this process, or nobody.

use std::sync::Arc;

use accounts::{Api, BODY_LEN_MAX, Call, Refused};
use engine::service::Connection;
use http_io::{
    Answer, Credentials,
    server::{Error, Exchange},
};

use crate::{remote::Remote, verdict::Verdict};

/// Who knows the users, as one worker asks.
pub(crate) enum Authority<C> {
    /// An accounts server.
    Remote(Box<Remote<C>>),
    /// The accounts of this process.
    Local(Arc<Api>),
    /// Nobody: everyone is let in.
    Open,
}

impl<C: Connection> Authority<C> {
    /// Whether a credential, as it stands in the request of `exchange`, is right.
    pub(crate) async fn check(&self, exchange: &Exchange<'_, C>, credentials: &Credentials<'_>) -> Verdict {
        match self {
            Self::Remote(remote) => remote.check(exchange).await,
            Self::Local(api) => match api.accounts().identify(credentials, exchange.peer().ip()).await {
                Ok(identity) => identity.into(),
                Err(Refused::Unknown) => Verdict::Wrong,
                Err(_) => Verdict::Unavailable,
            },
            // Whoever keeps the gate lets everyone in.
            Self::Open => Verdict::Unavailable,
        }
    }

    /// Hands a POST on to a path of the accounts, and gives what comes back. `None` where there are no accounts.
    pub(crate) async fn pass_on(
        &self,
        exchange: &mut Exchange<'_, C>,
        path: &str,
    ) -> Result<Option<Answer>, Error> {
        let body = exchange.read_body(BODY_LEN_MAX).await?.to_vec();
        match self {
            Self::Remote(remote) => remote.forward(exchange, path, &body).await.map(Some),
            Self::Local(api) => {
                let from = exchange.peer().ip();
                let call = Call { method: "POST", path, query: None, authorization: None, from, body: &body };
                Ok(Some(api.answer(call).await))
            }
            Self::Open => Ok(None),
        }
    }
}
