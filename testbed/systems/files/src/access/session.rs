//! Logins on the page: the session's token is in a cookie that scripts cannot read, so that plain links download too.
//!
//! Other sites cannot use the cookie: browsers send it with requests of this site only (`SameSite=Strict`), and a request
//! that changes something is refused if the browser says that another site caused it ([`Exchange::check_origin`]). Nor
//! can an uploaded file: one that could contain a script is sent so that browsers run none (see
//! [`crate::reading::media_type::is_active`]).

use std::borrow::Cow;

use engine::service::Connection;
use http_io::{Credentials, Response, server::Exchange};
use serde::Deserialize;
use zeroize::{Zeroize, Zeroizing};

/// The cookie over plain HTTP.
const PLAIN: &str = "nstar-session";
/// The cookie over TLS: browsers take one of this name from this host over TLS only, so that no other host of the domain and
/// nobody on the way can set it.
const BOUND: &str = "__Host-nstar-session";

/// The credential of a request: `Authorization`, or else the session cookie.
pub(crate) fn presented<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Option<Credentials<'e>> {
    match exchange.header("authorization") {
        Some(_) => exchange.credentials(),
        None => token(exchange).map(Credentials::Bearer),
    }
}

/// The same as the value of `Authorization`.
pub(crate) fn authorization<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Cow<'e, [u8]> {
    match (exchange.header("authorization"), token(exchange)) {
        (Some(given), _) => given.into(),
        (None, Some(token)) => [b"Bearer ", token].concat().into(),
        (None, None) => b"".into(),
    }
}

fn token<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Option<&'e [u8]> {
    session_token(exchange.header_all("cookie"), exchange.came_encrypted())
}

/// Finds the token of a session in the values of the `Cookie` fields of a request, which came over TLS or not. `None` if
/// there are several cookies of its name: somebody else may have added one, and nothing tells which.
pub fn session_token<'h>(fields: impl Iterator<Item = &'h [u8]>, encrypted: bool) -> Option<&'h [u8]> {
    let name = name_of(encrypted).as_bytes();
    let cookies = fields.flat_map(|field| field.split(|&byte| byte == b';'));
    let mut values = cookies.filter_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="));
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() && value.iter().all(plain) => Some(value),
        _ => None,
    }
}

fn name_of(encrypted: bool) -> &'static str {
    if encrypted { BOUND } else { PLAIN }
}

#[derive(Deserialize)]
struct NewSession {
    token: String,
    expires_in_s: u64,
}

/// Responds to a login on the page: moves the token from the accounts' response into the cookie.
pub(crate) fn begun(mut response: Response, encrypted: bool) -> Response {
    if response.status != 200 {
        return without_dialog(response);
    }
    let made = serde_json::from_slice(&response.body);
    response.body.zeroize();
    match made.map(|NewSession { token, expires_in_s }| (Zeroizing::new(token), expires_in_s)) {
        Ok((token, expires_in_s)) => Response::done()
            .with("Set-Cookie", cookie(&token, expires_in_s, encrypted))
            .with("Cache-Control", "no-store"),
        Err(_) => accounts::problem(503, "the response of the accounts server cannot be understood").into(),
    }
}

/// Responds to a logout on the page.
pub(crate) fn ended(encrypted: bool) -> Response {
    Response::done().with("Set-Cookie", cookie("", 0, encrypted))
}

fn cookie(token: &str, life_s: u64, encrypted: bool) -> String {
    let (name, secure) = (name_of(encrypted), if encrypted { "; Secure" } else { "" });
    format!("{name}={token}; Max-Age={life_s}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// Adapts a response to its client. Scripts get no challenge for Basic, as the browser would open its own dialog.
pub(crate) fn for_page<C: Connection>(exchange: &Exchange<'_, C>, response: Response) -> Response {
    let script = exchange.header("sec-fetch-dest").is_some_and(|dest| dest == b"empty");
    if script { without_dialog(response) } else { response }
}

fn without_dialog(mut response: Response) -> Response {
    if response.status == 401 {
        response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("WWW-Authenticate"));
        return response.with("WWW-Authenticate", r#"Bearer realm="nstar""#);
    }
    response
}
