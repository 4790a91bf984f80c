//! The accounts server as a service of an engine.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use engine::service::{Connection, Factory};
use http_io::server::{Error, Exchange, Handler, Http, HttpOptions};
use store::{Secret, Store};

use crate::{
    api::{Api, BODY_LEN_MAX, Call},
    common::Common,
    door::Door,
    error::AccountsError,
    options::Options,
    origin,
    tables::SCHEMA,
};

/// Makes the accounts server. Opens the database once, so that what is wrong with it shows before the server starts.
///
/// # Errors
/// When the database cannot be opened for writing, is not one of accounts, or passwords cannot be hashed.
pub fn factory(options: Options) -> Result<AccountsFactory, AccountsError> {
    // Before the database is made: a start that fails leaves none behind.
    Secret::check(&options.admin_token).map_err(AccountsError::AdminToken)?;
    options.service_token.as_deref().map_or(Ok(()), Secret::check).map_err(AccountsError::ServiceToken)?;
    drop(Store::prepare(&options.database, &SCHEMA)?);
    let door = Arc::new(Door::open(&options).map_err(AccountsError::ServiceToken)?);
    Ok(AccountsFactory { common: Arc::new(Common::new(&options)?), door, options, shared: Mutex::new(None) })
}

/// Makes the accounts server's services. All of one process share the threads and the connections to the database,
/// which the first of them starts: a process forked before that has its own.
#[derive(Debug)]
pub struct AccountsFactory {
    options: Options,
    /// Common to all processes.
    common: Arc<Common>,
    door: Arc<Door>,
    shared: Mutex<Option<Arc<Api>>>,
}

impl AccountsFactory {
    /// What all services of this process share; made when it is first asked for.
    ///
    /// # Errors
    /// As of [`factory`].
    pub fn api(&self) -> Result<Arc<Api>, AccountsError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = &*shared {
            return Ok(Arc::clone(api));
        }
        let api = Arc::new(Api::open(&self.options, Arc::clone(&self.common))?);
        Ok(Arc::clone(shared.insert(api)))
    }
}

impl Factory for AccountsFactory {
    type Service<C: Connection> = Http<AccountsHandler>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let api = self.api().map_err(io::Error::other)?;
        let door = Arc::clone(&self.door);
        Ok(Http::new(AccountsHandler { api, door }, HttpOptions::behind(&self.options.proxies)))
    }
}

/// Answers the requests of one worker.
#[derive(Debug)]
pub struct AccountsHandler {
    api: Arc<Api>,
    door: Arc<Door>,
}

impl<C: Connection> Handler<C> for AccountsHandler {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let believed = self.door.admit(exchange, |token| self.api.accounts().is_admin_token(token))?;
        exchange.check_origin()?;
        let method = exchange.method_text().to_owned();
        let (path, query) = (exchange.path().to_owned(), exchange.query().map(str::to_owned));
        let from = origin::address(exchange, believed);
        let authorization = exchange.header("authorization").map(<[u8]>::to_owned);
        let body = exchange.read_body(BODY_LEN_MAX).await?;
        let (query, authorization) = (query.as_deref(), authorization.as_deref());
        let call = Call { method: &method, path: &path, query, authorization, from, body };
        let answer = self.api.answer(call).await;
        let (peer, client) = (exchange.peer(), exchange.client());
        tracing::info!(target: "access", %peer, client, method, path, status = answer.status);
        answer.send(exchange)
    }

    fn failed(&self, peer: std::net::SocketAddr, error: &Error) {
        tracing::debug!(target: "access", %peer, %error, "request failed");
    }
}
