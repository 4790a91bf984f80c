//! A response before it is sent, independent of the connection it goes out on; and pages for browsers, each one file that
//! loads nothing else.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use engine::service::Connection;
use serde::Serialize;

use crate::{
    Problem,
    server::{Error, Exchange},
};

/// A status, a body, and further header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body's media type.
    pub content_type: Cow<'static, str>,
    /// The body. Not sent with 204.
    pub body: Vec<u8>,
    /// Further header fields, in order.
    pub fields: Vec<(&'static str, Cow<'static, str>)>,
}

impl Response {
    /// A response with a body of any type.
    pub fn new(status: u16, content_type: impl Into<Cow<'static, str>>, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: content_type.into(), body: body.into(), fields: Vec::new() }
    }

    /// A response with a JSON body, which ends with a newline.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        // Everything that servers send has a JSON form.
        let mut body = serde_json::to_vec(body).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    /// A 204: the request was fulfilled, and there is nothing to add.
    pub fn done() -> Self {
        Self::new(204, "text/plain", "")
    }

    /// A 405, with the methods that are allowed.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        Problem::method_not_allowed(allowed).into()
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.fields.push((field, value.into()));
        self
    }

    /// Sends it as the response to the request of `exchange`. Tells browsers not to guess another media type, not to show it
    /// within other sites and, over TLS, to come back that way only.
    ///
    /// # Errors
    /// As [`ResponseWriter::body`](crate::server::ResponseWriter::body).
    pub fn send<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let stays_encrypted = exchange.came_encrypted() && exchange.header("host").is_some_and(is_domain);
        let mut response = exchange
            .respond(self.status)
            .header("X-Content-Type-Options", "nosniff")
            .header("Cross-Origin-Resource-Policy", "same-origin");
        if stays_encrypted {
            response = response.header("Strict-Transport-Security", HSTS);
        }
        for (name, value) in &self.fields {
            response = response.header(name, value.as_bytes());
        }
        if self.status == 204 { response.empty() } else { response.body(&self.content_type, &self.body) }
    }
}

/// A year, in seconds, for this name only.
const HSTS: &str = "max-age=31536000";

/// Whether `Host` is a domain that is this server's alone: not `localhost`, which other servers share, nor an address.
fn is_domain(host: &[u8]) -> bool {
    let name = host.split(|&byte| byte == b':').next().unwrap_or_default();
    let top = name.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    top != name && top.iter().all(u8::is_ascii_alphabetic) && !top.eq_ignore_ascii_case(b"localhost")
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let fields = problem.headers().map(|(name, value)| (name, Cow::Owned(value.to_owned()))).collect();
        Self { fields, ..Self::new(problem.status(), "application/json", problem.body()) }
    }
}

/// The placeholder of the nonce in a page.
const PLACE: &str = "NONCE";
/// The placeholders of the shared style and script in a page, and these themselves.
const BASE: [(&str, &str); 2] =
    [("BASE_STYLE", include_str!("page/base.css")), ("BASE_SCRIPT", include_str!("page/base.js"))];
/// How many random bytes tell the page's own script from any other.
const NONCE_LEN: usize = 16;

/// The response that shows `page`. Its scripts and styles carry `nonce="NONCE"` and may begin with `BASE_SCRIPT` and
/// `BASE_STYLE`, which stand for what all pages share. No other scripts run, they can contact this server only, and no
/// other site can embed the page. 503 if the system has no randomness.
pub fn page(page: &str) -> Response {
    let mut nonce = [0; NONCE_LEN];
    if getrandom::fill(&mut nonce).is_err() {
        return Problem::new(503, "the system has no randomness").into();
    }
    let nonce = URL_SAFE_NO_PAD.encode(nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = BASE.iter().fold(page.replace(PLACE, &nonce), |page, (place, base)| page.replace(place, base));
    Response::new(200, "text/html; charset=utf-8", page)
        .with("Content-Security-Policy", policy)
        .with("Referrer-Policy", "no-referrer")
        .with("Cache-Control", "no-cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_domains_are_told_to_stay_encrypted() {
        assert!(["files.example.org", "example.org:8443"].iter().all(|host| is_domain(host.as_bytes())));
        for host in
            ["", "localhost", "localhost:8080", "a.localhost", "127.0.0.1:80", "[::1]", "[::1]:8080", "files"]
        {
            assert!(!is_domain(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_problem_keeps_its_status_body_and_fields() {
        let answer = Response::from(Problem::new(503, "busy").header("Retry-After", "1"));
        assert_eq!((answer.status, &answer.body[..]), (503, &b"{\"error\":\"busy\"}\n"[..]));
        assert_eq!(answer.fields, [("Retry-After", "1".into())]);
        let refused = Response::method_not_allowed("GET").with("X", "y");
        assert_eq!((refused.status, refused.fields.len()), (405, 2));
    }

    #[test]
    fn each_time_the_nonce_is_another_and_the_policy_names_it() {
        let show = || {
            let response = page("<script nonce=\"NONCE\"></script>");
            let policy = response.fields[0].1.clone().into_owned();
            (String::from_utf8(response.body).unwrap(), policy)
        };
        let ((one, policy), (other, _)) = (show(), show());
        assert_ne!(one, other);
        let nonce = one.split('"').nth(1).unwrap();
        assert!(nonce.len() >= 22 && policy.contains(&format!("script-src 'nonce-{nonce}'")), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn what_all_pages_share_is_put_in() {
        let shown = page("<style>BASE_STYLE</style><script>BASE_SCRIPT</script>");
        let shown = String::from_utf8(shown.body).unwrap();
        assert!(shown.contains("<style>:root {") && shown.contains("<script>\"use strict\";"), "{shown}");
        assert!(!shown.contains("BASE_"), "{shown}");
    }
}
