//! Pages for browsers. Each is one file that loads nothing else; the style and script that all share are inserted.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{Problem, Response};

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
