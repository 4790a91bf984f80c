//! What is told to those who are refused.

use std::borrow::Cow;

use http_io::Problem;

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
