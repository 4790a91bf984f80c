//! The routes of the accounts server.

use std::sync::Arc;

use api_server::{Api, Metrics, Route, RouteMatch};
use engine::service::Connection;
use http_io::{Credentials, FieldsError, Problem, Response, decode_path, server::Exchange};

use crate::{
    account::{Role, User},
    accounts::{Accounts, Identity, Session},
    admission::{self, Sender, ServiceTokenCheck},
    audit::By,
    common::Common,
    credentials::Name,
    metrics::ROUTES,
    options::{AccountsError, Options, Registration},
    refusal::{Refusal, Refused},
    requests::{self, Query},
    responses::{AccountList, AccountMade, AuditList, Recognised, SessionMade, ShownAccount},
};

/// Maximum length of a body, bytes. The longest name and passwords fit with all their characters escaped.
pub const BODY_LEN_MAX: u64 = 8192;

/// A request, sent from an address that failures are counted by.
pub type Call<'a> = api_server::Call<'a, Sender>;

/// The API of the accounts server, over [`Accounts`].
#[derive(Debug)]
pub struct AccountsApi {
    accounts: Accounts,
    tokens: Arc<ServiceTokenCheck>,
    registration: Registration,
    metrics: Metrics,
}

impl Api for AccountsApi {
    const ROUTES: &'static [Route] = &ROUTES;
    const BODY_LEN_MAX: u64 = BODY_LEN_MAX;
    type Sender = Sender;
    type Error = Refusal;

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn admit<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<Sender, Problem> {
        let believed = self.tokens.admit(exchange, |token| self.accounts.is_admin_token(token))?;
        exchange.check_origin()?;
        Ok(admission::sender(exchange, believed))
    }

    async fn answer(&self, found: RouteMatch<'_>, call: Call<'_>) -> Result<Response, Refusal> {
        let name = found.parameter;
        match (found.path, call.method) {
            ("/accounts", "POST") => self.create(call).await,
            ("/accounts", "GET") => self.list(call).await,
            ("/accounts/{name}", "GET") => self.account(name, call).await,
            ("/accounts/{name}", "PATCH") => self.change(name, call).await,
            ("/accounts/{name}", "DELETE") => self.delete(name, call).await,
            ("/accounts/{name}/password", "PUT") => self.change_password(name, call).await,
            ("/sessions", "POST") => self.begin_session(call).await,
            ("/sessions", "DELETE") => self.end_session(call).await,
            ("/auth", "GET") => self.identify(call).await,
            ("/revocations", "GET") => self.revocations(call).await,
            ("/audit", "GET") => self.audit(call).await,
            _ => Err(api_server::not_found().into()),
        }
    }
}

impl AccountsApi {
    /// Opens the database and starts the threads.
    pub(crate) fn open(
        options: &Options,
        common: Arc<Common>,
        tokens: Arc<ServiceTokenCheck>,
    ) -> Result<Self, AccountsError> {
        let metrics = common.metrics.clone();
        let accounts = Accounts::with(options, common)?;
        Ok(Self { accounts, tokens, registration: options.registration, metrics })
    }

    /// The accounts themselves.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    async fn create(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let (name, password) = requests::credentials(call.body)?;
        match self.administrator(call).await {
            Ok(user) => self.accounts.create_anew(&name, password, by(&user, call)).await?,
            Err(refused) => {
                self.registration.admit(refused)?;
                self.accounts.create(name.clone(), password, call.sender).await?;
            }
        }
        Ok(Response::json(201, &AccountMade { name: name.as_str() }))
    }

    async fn begin_session(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let (name, password) = requests::login(call.body)?;
        let session = self.accounts.begin_session(&name, &password, call.sender.address).await?;
        Ok(show_session(&session))
    }

    async fn end_session(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let Some(Credentials::Bearer(token)) = call.authorization().and_then(Credentials::parse) else {
            return Err(Refused::NoSession.into());
        };
        self.accounts.end_session(token, call.sender.address).await?;
        Ok(Response::done())
    }

    async fn identify(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let Identity { user, expires_in } = self.identity(call).await?;
        let expires_in_s = expires_in.map(|left| left.as_secs());
        Ok(Response::json(200, &Recognised { user, expires_in_s }))
    }

    async fn identity(&self, call: Call<'_>) -> Result<Identity, Refused> {
        let presented = call.authorization().and_then(Credentials::parse).ok_or(Refused::Unknown)?;
        self.accounts.identify(&presented, call.sender.address).await
    }

    async fn revocations(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let after = Query::read(call.query)?.after_number()?;
        let revocations = self.accounts.revocations(after).await?;
        Ok(Response::json(200, &revocations).with("Cache-Control", "no-store"))
    }

    async fn list(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.administrator(call).await?;
        let query = Query::read(call.query)?;
        let limit = query.limit()?;
        let found = self.accounts.list(&query.after_name()?, limit).await?;
        Ok(private(&AccountList::new(found, limit)))
    }

    async fn audit(&self, call: Call<'_>) -> Result<Response, Refusal> {
        self.administrator(call).await?;
        let query = Query::read(call.query)?;
        let limit = query.limit()?;
        let after = query.after_number()?.unwrap_or(0);
        let found = self.accounts.audit(i64::try_from(after).unwrap_or(i64::MAX), limit).await?;
        Ok(private(&AuditList::new(found, limit)))
    }

    /// Shows an account to its owner and to administrators.
    async fn account(&self, name: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let name = named(name);
        let user = self.caller(call).await?;
        if user.role != Role::Admin && name.as_ref().ok().is_none_or(|name| name.as_str() != user.name) {
            return Err(Refused::Forbidden.into());
        }
        Ok(private(&ShownAccount::from(self.accounts.get(&name?).await?)))
    }

    async fn change(&self, name: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let user = self.administrator(call).await?;
        let (name, change) = (named(name)?, requests::change(call.body)?);
        let changed = self.accounts.change(&name, &change, by(&user, call)).await?;
        Ok(private(&ShownAccount::from(changed)))
    }

    async fn delete(&self, name: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let user = self.administrator(call).await?;
        self.accounts.delete(&named(name)?, by(&user, call)).await?;
        Ok(Response::done())
    }

    /// Changes a password for its owner, who must send the old one, or for an administrator.
    async fn change_password(&self, name: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let (new, old) = requests::new_password(call.body)?;
        match old {
            Some(old) => {
                self.accounts.change_password(&decoded(name), &old, new, call.sender.address).await?
            }
            None if call.authorization().is_none() => {
                return Err(FieldsError::field("old_password", "is missing").into());
            }
            None => {
                let user = self.caller(call).await?;
                if user.role != Role::Admin && decoded(name) == user.name {
                    return Err(FieldsError::field("old_password", "is missing").into());
                }
                let user = is_administrator(user)?;
                self.accounts.set_password(&named(name)?, new, by(&user, call)).await?;
            }
        }
        Ok(Response::done())
    }

    async fn administrator(&self, call: Call<'_>) -> Result<User, Refused> {
        is_administrator(self.caller(call).await?)
    }

    /// The caller: the owner of an account, or a client with the administrator's token.
    async fn caller(&self, call: Call<'_>) -> Result<User, Refused> {
        if call.authorization().is_none() {
            return Err(Refused::Nameless);
        }
        match call.authorization().and_then(Credentials::parse) {
            Some(Credentials::Bearer(token)) if self.accounts.is_admin_token(token) => {
                Ok(User { name: By::TOKEN.to_owned(), role: Role::Admin, quota_bytes: None })
            }
            _ => Ok(self.identity(call).await?.user),
        }
    }
}

fn is_administrator(user: User) -> Result<User, Refused> {
    if user.role == Role::Admin { Ok(user) } else { Err(Refused::Forbidden) }
}

/// Keeps caches from storing a response about one person.
fn private(shown: &impl serde::Serialize) -> Response {
    Response::json(200, shown).with("Cache-Control", "no-store")
}

fn show_session(session: &Session) -> Response {
    let expires_in_s = session.life.as_secs();
    private(&SessionMade { token: session.token(), token_type: "Bearer", expires_in_s })
}

fn by<'a>(user: &'a User, call: Call<'_>) -> By<'a> {
    By { actor: &user.name, address: call.sender.address }
}

/// A name in a path. Text that cannot be a name belongs to no account.
fn named(encoded: &str) -> Result<Name, Refused> {
    Name::new(&decoded(encoded)).map_err(|_| Refused::NoAccount)
}

fn decoded(encoded: &str) -> String {
    decode_path(encoded).unwrap_or_default().into_owned()
}
