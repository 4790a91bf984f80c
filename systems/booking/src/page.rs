//! The page to book and cancel on: one file, with nothing from elsewhere.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http_io::Answer;

use crate::refusal::Refusal;

const PAGE: &str = include_str!("page.html");
/// Bytes of randomness that tell the page's own script from any other.
const NONCE_LEN: usize = 16;

/// The page. Only its own script runs, and it may talk to this server only.
pub(crate) fn show() -> Result<Answer, Refusal> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|_| Refusal::new(503, "the system gives no randomness"))?;
    let nonce = URL_SAFE_NO_PAD.encode(nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Ok(Answer::new(200, "text/html; charset=utf-8", PAGE.replace("NONCE", &nonce))
        .with("Content-Security-Policy", policy)
        .with("Referrer-Policy", "no-referrer")
        .with("Cache-Control", "no-cache"))
}
