//! Pages for browsers: one file each, with what they all have in common put in, and nothing from elsewhere.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{Problem, Response};

/// What stands in a page for the nonce.
const PLACE: &str = "NONCE";
/// What stands in a page for the style and the script that all pages share, and those.
const BASE: [(&str, &str); 2] =
    [("BASE_STYLE", include_str!("page/base.css")), ("BASE_SCRIPT", include_str!("page/base.js"))];
/// Bytes of randomness that tell the page's own script from any other.
const NONCE_LEN: usize = 16;

/// The answer that shows `page`, whose own scripts and styles carry `nonce="NONCE"` and may begin with `BASE_SCRIPT` and
/// `BASE_STYLE`: what all pages share. Only they run, they talk to this server only, and no other site can show the page as
/// a part of its own. 503 when the system gives no randomness.
pub fn page(page: &str) -> Response {
    let mut nonce = [0; NONCE_LEN];
    if getrandom::fill(&mut nonce).is_err() {
        return Problem::new(503, "the system gives no randomness").into();
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
    fn each_time_the_nonce_is_another_and_the_policy_names_it() {
        let show = || {
            let answer = page("<script nonce=\"NONCE\"></script>");
            let policy = answer.fields[0].1.clone().into_owned();
            (String::from_utf8(answer.body).unwrap(), policy)
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
