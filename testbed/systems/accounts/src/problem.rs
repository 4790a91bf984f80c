//! Error responses.

use std::borrow::Cow;

use http_io::Problem;

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
