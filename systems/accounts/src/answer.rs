//! An answer before it is sent: independent of the connection it goes out on.

use std::borrow::Cow;

use http_io::Problem;
use serde::Serialize;

/// What a 401 asks for: one of the two schemes that are known (RFC 7617, RFC 6750).
const CHALLENGES: [&str; 2] = [r#"Basic realm="nstar", charset="UTF-8""#, r#"Bearer realm="nstar""#];
/// After how many seconds a busy server may be asked again.
const RETRY_AFTER_S: &str = "1";

/// A problem with this status and what is wrong, and the header fields that go with the status:
/// `WWW-Authenticate` with 401, `Retry-After` with 503.
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

/// A status, a body, and the header fields that go with the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body's media type.
    pub content_type: Cow<'static, str>,
    /// The body.
    pub body: Vec<u8>,
    /// Further header fields, in order.
    pub fields: Vec<(&'static str, Cow<'static, str>)>,
}

impl Answer {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { status, content_type: "application/json".into(), body, fields: Vec::new() }
    }

    /// An answer with a body in plain text.
    pub fn text(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, content_type: content_type.into(), body: body.into(), fields: Vec::new() }
    }

    /// 405, with the methods that are allowed.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        problem(405, format!("only {allowed} may be used here")).header("Allow", allowed).into()
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let fields = problem.headers().map(|(name, value)| (name, Cow::Owned(value.to_owned()))).collect();
        let body = problem.body().into_bytes();
        Self { status: problem.status(), content_type: "application/json".into(), body, fields }
    }
}
