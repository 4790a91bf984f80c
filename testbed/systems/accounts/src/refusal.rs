//! Why something was refused, and the response that says so.

use std::borrow::Cow;

use engine::offload;
use http_io::{FieldsError, Problem, Response};
use store::StoreError;

/// Why [`Accounts`](crate::Accounts) refused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The name is taken.
    #[error("this name is taken")]
    Taken,
    /// No open account has this name and password. Does not say which of the two is wrong.
    #[error("the name or the password is wrong")]
    Unknown,
    /// No current session has this token.
    #[error("the token is wrong, or its session has ended; log in again")]
    NoSession,
    /// The request has no credential.
    #[error("a name and password, or a token, are needed")]
    Nameless,
    /// The caller is not an administrator.
    #[error("only an administrator may do this")]
    Forbidden,
    /// There is no account with that name. Only administrators learn this.
    #[error("there is no account of this name")]
    NoAccount,
    /// Too many attempts have failed. Does not say whether the account exists.
    #[error("too many logins have failed; try again in {retry_after_s} s")]
    Slowed {
        /// When to try again, seconds.
        retry_after_s: u32,
    },
    /// Only administrators may create accounts.
    #[error("only an administrator may create accounts; ask one")]
    Closed,
    /// Too many accounts were created from one address.
    #[error("too many accounts were created from this address; try again in {retry_after_s} s")]
    Crowded {
        /// When to try again, seconds.
        retry_after_s: u32,
    },
    /// Too much is waiting; try again in a second.
    #[error("the accounts server is busy")]
    Busy,
    /// The disk is full; nothing was changed.
    #[error("the disk of the accounts server is full")]
    DiskFull,
    /// The database, the hashing or the randomness failed; the server's log has the reason.
    #[error("the accounts server has failed; its log has the reason")]
    Failed,
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy => Self::Busy,
            StoreError::DiskFull => Self::DiskFull,
            _ => Self::Failed,
        }
    }
}

impl From<offload::Error> for Refused {
    fn from(error: offload::Error) -> Self {
        match error {
            offload::Error::Full | offload::Error::NoThread => Self::Busy,
            offload::Error::Panicked => Self::Failed,
        }
    }
}

pub(crate) fn fail(doing: &str, error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "{doing} failed");
    Refused::Failed
}

/// Why a request is refused.
#[derive(Debug)]
pub enum Refusal {
    /// The accounts refuse it.
    Refused(Refused),
    /// The request is invalid.
    Problem(Problem),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<FieldsError> for Refusal {
    fn from(error: FieldsError) -> Self {
        Self::Problem(error.into())
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Refused(refused) => refuse(refused),
            Refusal::Problem(problem) => problem.into(),
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

/// The challenges of a 401: the two supported schemes (RFC 7617, RFC 6750).
const CHALLENGES: [&str; 2] = [r#"Basic realm="nstar", charset="UTF-8""#, r#"Bearer realm="nstar""#];
/// When to try a busy server again, seconds.
const RETRY_AFTER_S: &str = "1";

/// A problem with the header fields that its status needs: `WWW-Authenticate` for 401, `Retry-After` for 503.
pub fn problem(status: u16, error: impl Into<Cow<'static, str>>) -> Problem {
    let problem = Problem::new(status, error);
    match status {
        401 => CHALLENGES
            .into_iter()
            .fold(problem, |problem, challenge| problem.header("WWW-Authenticate", challenge)),
        503 => problem.header("Retry-After", RETRY_AFTER_S),
        _ => problem,
    }
}
