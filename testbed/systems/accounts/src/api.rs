//! The requests of the accounts server, apart from how they come and go.

use std::{net::IpAddr, sync::Arc};

use http_io::{Credentials, FieldsError, Response, decode_path, metrics};

use crate::{
    account::{Role, User},
    accounts::{Accounts, Identity, Refused, Session},
    audit::By,
    common::Common,
    credentials::Name,
    error::AccountsError,
    metrics::Metrics,
    options::Options,
    problem::problem,
    registration::Registration,
    requests::{self, Query},
    shown::{AccountList, AccountMade, AuditList, InvalidField, Recognised, SessionMade, ShownAccount},
};

/// Longest body, bytes: the longest name and passwords fit with all their characters escaped.
pub const BODY_LEN_MAX: u64 = 8192;

/// The accounts server's answers to its requests, over [`Accounts`].
#[derive(Debug)]
pub struct Api {
    accounts: Accounts,
    registration: Registration,
    metrics: Metrics,
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The method, such as `POST`.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// What follows `?`.
    pub query: Option<&'a str>,
    /// The value of `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// Whose address it came from: failures are counted by it.
    pub from: IpAddr,
    /// The body; at most [`BODY_LEN_MAX`] bytes are of any use.
    pub body: &'a [u8],
}

/// A path, told apart from the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Accounts,
    Account(&'a str),
    Password(&'a str),
    Sessions,
    Auth,
    Revocations,
    Audit,
    Health,
    Metrics,
    Other,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("accounts"), None, ..) => Self::Accounts,
            (Some("accounts"), Some(name), None, _) => Self::Account(name),
            (Some("accounts"), Some(name), Some("password"), None) => Self::Password(name),
            (Some("sessions"), None, ..) => Self::Sessions,
            (Some("auth"), None, ..) => Self::Auth,
            (Some("revocations"), None, ..) => Self::Revocations,
            (Some("audit"), None, ..) => Self::Audit,
            (Some("healthz"), None, ..) => Self::Health,
            (Some("metrics"), None, ..) => Self::Metrics,
            _ => Self::Other,
        }
    }

    /// What it is counted under.
    fn name(self) -> &'static str {
        match self {
            Self::Accounts => "/accounts",
            Self::Account(_) => "/accounts/{name}",
            Self::Password(_) => "/accounts/{name}/password",
            Self::Sessions => "/sessions",
            Self::Auth => "/auth",
            Self::Revocations => "/revocations",
            Self::Audit => "/audit",
            Self::Health => "/healthz",
            Self::Metrics => "/metrics",
            Self::Other => "other",
        }
    }

    fn methods(self) -> &'static str {
        match self {
            Self::Accounts => "GET, HEAD, POST",
            Self::Account(_) => "GET, HEAD, PATCH, DELETE",
            Self::Password(_) => "PUT",
            Self::Sessions => "POST, DELETE",
            _ => "GET, HEAD",
        }
    }
}

impl Api {
    /// Opens the database and starts the threads.
    pub(crate) fn open(options: &Options, common: Arc<Common>) -> Result<Self, AccountsError> {
        let metrics = common.metrics.clone();
        Ok(Self { accounts: Accounts::with(options, common)?, registration: options.registration, metrics })
    }

    /// The accounts themselves.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The metrics in the OpenMetrics text format, without [`http_io::metrics::END`].
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// Answers a request, and counts it.
    pub async fn answer(&self, call: Call<'_>) -> Response {
        let route = Route::of(call.path);
        let answer = self.answer_to(route, call).await.unwrap_or_else(Refusal::into_answer);
        self.metrics.answered(route.name(), answer.status);
        answer
    }

    async fn answer_to(&self, route: Route<'_>, call: Call<'_>) -> Result<Response, Refusal> {
        match (route, call.method) {
            (Route::Accounts, "POST") => self.create(call).await,
            (Route::Accounts, "GET" | "HEAD") => self.list(call).await,
            (Route::Account(name), "GET" | "HEAD") => self.account(name, call).await,
            (Route::Account(name), "PATCH") => self.change(name, call).await,
            (Route::Account(name), "DELETE") => self.delete(name, call).await,
            (Route::Password(name), "PUT") => self.change_password(name, call).await,
            (Route::Sessions, "POST") => self.begin_session(call).await,
            (Route::Sessions, "DELETE") => self.end_session(call).await,
            (Route::Auth, "GET" | "HEAD") => self.identify(call).await,
            (Route::Revocations, "GET" | "HEAD") => self.revocations(call).await,
            (Route::Audit, "GET" | "HEAD") => self.audit(call).await,
            (Route::Health, "GET" | "HEAD") => Ok(Response::new(200, "text/plain", "ok\n")),
            (Route::Metrics, "GET" | "HEAD") => Ok(metrics::answer(self.metrics())),
            (Route::Other, _) => Ok(problem(404, "there is nothing of this name").into()),
            (route, _) => Ok(Response::method_not_allowed(route.methods())),
        }
    }

    async fn create(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let (name, password) = requests::credentials(call.body)?;
        match self.administrator(call).await {
            Ok(user) => self.accounts.create_anew(&name, password, by(&user, call)).await?,
            Err(refused) => {
                self.registration.admit(refused)?;
                self.accounts.create(name.clone(), password, call.from).await?;
            }
        }
        Ok(Response::json(201, &AccountMade { name: name.as_str() }))
    }

    async fn begin_session(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let (name, password) = requests::login(call.body)?;
        let session = self.accounts.begin_session(&name, &password, call.from).await?;
        Ok(show_session(&session))
    }

    async fn end_session(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let Some(Credentials::Bearer(token)) = call.authorization.and_then(Credentials::parse) else {
            return Err(Refused::NoSession.into());
        };
        self.accounts.end_session(token, call.from).await?;
        Ok(Response::done())
    }

    async fn identify(&self, call: Call<'_>) -> Result<Response, Refusal> {
        let Identity { user, expires_in } = self.identity(call).await?;
        let expires_in_s = expires_in.map(|left| left.as_secs());
        Ok(Response::json(200, &Recognised { user, expires_in_s }))
    }

    async fn identity(&self, call: Call<'_>) -> Result<Identity, Refused> {
        let presented = call.authorization.and_then(Credentials::parse).ok_or(Refused::Unknown)?;
        self.accounts.identify(&presented, call.from).await
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

    /// Whose account it is may see it, and an administrator.
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

    /// By the old password, or by an administrator.
    async fn change_password(&self, name: &str, call: Call<'_>) -> Result<Response, Refusal> {
        let (new, old) = requests::new_password(call.body)?;
        match old {
            Some(old) => self.accounts.change_password(&decoded(name), &old, new, call.from).await?,
            None if call.authorization.is_none() => {
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

    /// Who asks: an account's owner, or whoever has the administrator's token.
    async fn caller(&self, call: Call<'_>) -> Result<User, Refused> {
        if call.authorization.is_none() {
            return Err(Refused::Nameless);
        }
        match call.authorization.and_then(Credentials::parse) {
            Some(Credentials::Bearer(token)) if self.accounts.is_admin_token(token) => {
                Ok(User { name: By::TOKEN.to_owned(), role: Role::Admin, quota_bytes: None })
            }
            _ => Ok(self.identity(call).await?.user),
        }
    }
}

/// Why a request is not fulfilled.
enum Refusal {
    Refused(Refused),
    Fields(FieldsError),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<FieldsError> for Refusal {
    fn from(error: FieldsError) -> Self {
        Self::Fields(error)
    }
}

impl Refusal {
    fn into_answer(self) -> Response {
        match self {
            Self::Refused(refused) => refuse(refused),
            Self::Fields(FieldsError::Field { field, reason }) => {
                let error = format!("{field} {reason}");
                Response::json(422, &InvalidField { error: &error, field: &field, reason: &reason })
            }
            Self::Fields(error @ FieldsError::Body(_)) => problem(error.status(), error.to_string()).into(),
        }
    }
}

fn refuse(refused: Refused) -> Response {
    let status = match refused {
        Refused::Taken => 409,
        Refused::Unknown | Refused::NoSession | Refused::Nameless => 401,
        Refused::Forbidden | Refused::Closed => 403,
        Refused::NoAccount => 404,
        Refused::Slowed { .. } | Refused::Crowded { .. } => 429,
        Refused::Busy | Refused::Failed => 503,
        Refused::DiskFull => 507,
    };
    let answer = Response::from(problem(status, refused.to_string()));
    match refused {
        Refused::Slowed { retry_after_s } | Refused::Crowded { retry_after_s } => {
            answer.with("Retry-After", retry_after_s.to_string())
        }
        _ => answer,
    }
}

fn is_administrator(user: User) -> Result<User, Refused> {
    if user.role == Role::Admin { Ok(user) } else { Err(Refused::Forbidden) }
}

/// What concerns one person is kept by no cache.
fn private(shown: &impl serde::Serialize) -> Response {
    Response::json(200, shown).with("Cache-Control", "no-store")
}

fn show_session(session: &Session) -> Response {
    let expires_in_s = session.life.as_secs();
    private(&SessionMade { token: session.token(), token_type: "Bearer", expires_in_s })
}

fn by<'a>(user: &'a User, call: Call<'_>) -> By<'a> {
    By { actor: &user.name, address: call.from }
}

/// A name in a path. What is none is nobody's.
fn named(encoded: &str) -> Result<Name, Refused> {
    Name::new(&decoded(encoded)).map_err(|_| Refused::NoAccount)
}

fn decoded(encoded: &str) -> String {
    decode_path(encoded).unwrap_or_default().into_owned()
}
