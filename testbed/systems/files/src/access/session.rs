//! Logging in on the page: a session's token in a cookie that scripts cannot read, so that plain links download too.
//!
//! Another site cannot use the cookie: it is sent with this site's own requests only (`SameSite=Strict`), and whatever
//! changes something is refused when the browser says that another site asked for it ([`Exchange::check_origin`]). Nor
//! can a file that somebody uploaded: what could hold a script is sent so that the browser runs none (see
//! [`crate::reading::media_type::is_active`]).

use std::borrow::Cow;

use engine::service::Connection;
use http_io::{Credentials, Response, server::Exchange};
use serde::Deserialize;

const COOKIE: &str = "nstar-session";

/// What somebody presents to be let in: `Authorization`, or else the cookie of their session.
pub(crate) fn presented<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Option<Credentials<'e>> {
    match exchange.header("authorization") {
        Some(_) => exchange.credentials(),
        None => token(exchange).map(Credentials::Bearer),
    }
}

/// The same as a value of `Authorization`.
pub(crate) fn authorization<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Cow<'e, [u8]> {
    match (exchange.header("authorization"), token(exchange)) {
        (Some(given), _) => given.into(),
        (None, Some(token)) => [b"Bearer ", token].concat().into(),
        (None, None) => b"".into(),
    }
}

/// The token in the cookie.
fn token<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Option<&'e [u8]> {
    let mut cookies = exchange.header_all("cookie").flat_map(|header| header.split(|&byte| byte == b';'));
    cookies.find_map(|cookie| {
        let value = cookie.trim_ascii().strip_prefix(COOKIE.as_bytes())?.strip_prefix(b"=")?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        (!value.is_empty() && value.iter().all(plain)).then_some(value)
    })
}

#[derive(Deserialize)]
struct Session {
    token: String,
    expires_in_s: u64,
}

/// What to tell a page that logs in, from what the accounts answered: the token goes into the cookie.
pub(crate) fn begun(answer: Response, encrypted: bool) -> Response {
    if answer.status != 200 {
        return without_dialog(answer);
    }
    match serde_json::from_slice(&answer.body) {
        Ok(Session { token, expires_in_s }) => Response::done()
            .with("Set-Cookie", cookie(&token, expires_in_s, encrypted))
            .with("Cache-Control", "no-store"),
        Err(_) => accounts::problem(503, "the accounts server answered what cannot be understood").into(),
    }
}

/// What to tell a page that logs out.
pub(crate) fn ended(encrypted: bool) -> Response {
    Response::done().with("Set-Cookie", cookie("", 0, encrypted))
}

fn cookie(token: &str, life_s: u64, encrypted: bool) -> String {
    let secure = if encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Max-Age={life_s}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// The answer as it suits whoever asks: a page's script is not asked for Basic credentials, for then the browser would open
/// a dialog of its own.
pub(crate) fn for_page<C: Connection>(exchange: &Exchange<'_, C>, answer: Response) -> Response {
    let script = exchange.header("sec-fetch-dest").is_some_and(|dest| dest == b"empty");
    if script { without_dialog(answer) } else { answer }
}

fn without_dialog(mut answer: Response) -> Response {
    if answer.status == 401 {
        answer.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("WWW-Authenticate"));
        return answer.with("WWW-Authenticate", r#"Bearer realm="nstar""#);
    }
    answer
}
