//! The requests of the accounts server, apart from how they come and go.

use std::sync::Arc;

use http_io::{Answer, Credentials, metrics as form};
use serde::{Deserialize, Serialize};

use crate::{
    account::User,
    accounts::{Accounts, Hasher, Identity, Refused, Session},
    credentials::{Invalid, Name, Password},
    error::AccountsError,
    metrics::Metrics,
    options::Options,
    problem::problem,
};

/// Longest body, bytes: the longest name and password fit with all their characters escaped.
pub const BODY_LEN_MAX: u64 = 4096;

/// The accounts server's answers to its requests, over [`Accounts`].
#[derive(Debug)]
pub struct Api {
    accounts: Accounts,
    metrics: Metrics,
}

/// What is asked.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The method, such as `POST`.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// The value of `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The body; at most [`BODY_LEN_MAX`] bytes are of any use.
    pub body: &'a [u8],
}

#[derive(Deserialize)]
struct Fields<'a> {
    name: Option<std::borrow::Cow<'a, str>>,
    password: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Serialize)]
struct AccountMade<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct SessionMade<'a> {
    token: &'a str,
    token_type: &'a str,
    expires_in_s: u64,
}

/// What `GET /auth` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recognised {
    /// Who was recognised.
    #[serde(flatten)]
    pub user: User,
    /// For how long the token is still good, seconds, where one was presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

#[derive(Serialize)]
struct InvalidField<'a> {
    error: &'a str,
    field: &'a str,
    reason: &'a str,
}

impl Api {
    /// Opens the database and starts the threads.
    pub(crate) fn open(options: &Options, hasher: Arc<Hasher>) -> Result<Self, AccountsError> {
        let metrics = hasher.metrics.clone();
        Ok(Self { accounts: Accounts::with(options, hasher)?, metrics })
    }

    /// The accounts themselves.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Appends the metrics in the OpenMetrics text format, without [`form::END`].
    pub fn show(&self, shown: &mut String) {
        self.metrics.show(shown);
    }

    /// Answers a request, and counts it.
    pub async fn answer(&self, call: Call<'_>) -> Answer {
        let (route, answer) = match (call.path, call.method) {
            ("/accounts", "POST") => ("/accounts", self.create(call.body).await),
            ("/sessions", "POST") => ("/sessions", self.begin_session(call.body).await),
            ("/auth", "GET" | "HEAD") => ("/auth", self.identify(call.authorization).await),
            ("/healthz", "GET" | "HEAD") => ("/healthz", Answer::new(200, "text/plain", "ok\n")),
            ("/metrics", "GET" | "HEAD") => ("/metrics", self.show_metrics()),
            ("/accounts" | "/sessions", _) => ("other", Answer::method_not_allowed("POST")),
            ("/auth" | "/healthz" | "/metrics", _) => ("other", Answer::method_not_allowed("GET, HEAD")),
            _ => ("other", problem(404, "there is nothing of this name").into()),
        };
        self.metrics.answered(route, answer.status);
        answer
    }

    async fn create(&self, body: &[u8]) -> Answer {
        let (name, password) = match credentials(body) {
            Ok(both) => both,
            Err(answer) => return answer,
        };
        match self.accounts.create(name.clone(), password).await {
            Ok(()) => Answer::json(201, &AccountMade { name: name.as_str() }),
            Err(refused) => refuse(refused),
        }
    }

    async fn begin_session(&self, body: &[u8]) -> Answer {
        // What could never be a name or a password is wrong like any other.
        let (name, password) = match credentials(body) {
            Ok(both) => both,
            Err(answer) if answer.status == 422 => return refuse(Refused::Unknown),
            Err(answer) => return answer,
        };
        match self.accounts.begin_session(name, password).await {
            Ok(session) => show_session(&session),
            Err(refused) => refuse(refused),
        }
    }

    async fn identify(&self, authorization: Option<&[u8]>) -> Answer {
        let presented = authorization.and_then(Credentials::parse);
        let Some(presented) = presented else { return refuse(Refused::Unknown) };
        match self.accounts.identify(&presented).await {
            Ok(identity) => show_identity(identity),
            Err(refused) => refuse(refused),
        }
    }

    fn show_metrics(&self) -> Answer {
        let mut shown = String::new();
        self.show(&mut shown);
        Answer::new(200, form::CONTENT_TYPE, shown + form::END)
    }
}

/// Reads the two fields. The values themselves are in none of the errors.
fn credentials(body: &[u8]) -> Result<(Name, Password), Answer> {
    let fields: Fields<'_> = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let detail = format!(
            "the body is not {{\"name\": text, \"password\": text}} in JSON (line {line}, column {column})"
        );
        Answer::from(problem(400, detail))
    })?;
    let name = fields.name.ok_or(Invalid { field: "name", reason: "is missing" });
    let name = name.and_then(|text| Name::new(&text)).map_err(invalid)?;
    let password = fields.password.ok_or(Invalid { field: "password", reason: "is missing" });
    let password = password.and_then(|text| Password::new(&text)).map_err(invalid)?;
    Ok((name, password))
}

fn invalid(invalid: Invalid) -> Answer {
    let Invalid { field, reason } = invalid;
    Answer::json(422, &InvalidField { error: &invalid.to_string(), field, reason })
}

fn refuse(refused: Refused) -> Answer {
    let status = match refused {
        Refused::Taken => 409,
        Refused::Unknown => 401,
        Refused::Busy | Refused::Failed => 503,
        Refused::DiskFull => 507,
    };
    problem(status, refused.to_string()).into()
}

fn show_session(session: &Session) -> Answer {
    let expires_in_s = session.life.as_secs();
    let shown = SessionMade { token: session.token(), token_type: "Bearer", expires_in_s };
    let mut answer = Answer::json(200, &shown);
    answer.fields.push(("Cache-Control", "no-store".into()));
    answer
}

fn show_identity(identity: Identity) -> Answer {
    let expires_in_s = identity.expires_in.map(|left| left.as_secs());
    Answer::json(200, &Recognised { user: identity.user, expires_in_s })
}
