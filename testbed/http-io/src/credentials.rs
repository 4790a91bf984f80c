//! Credentials: `Authorization: Basic` (RFC 7617) and `Bearer` (RFC 6750).

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroize;

/// The longest Basic credentials, in bytes of base64: room for any sane name and password.
const BASIC_BYTES_MAX: usize = 1024;

/// The credentials in an `Authorization` header. `Debug` hides them.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "decoding in place spares an allocation per request")]
pub enum Credentials<'h> {
    /// A bearer token as sent.
    Bearer(&'h [u8]),
    /// A name and a password.
    Basic(Basic),
}

/// A name and a password from Basic credentials, wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Basic {
    decoded: [u8; BASIC_BYTES_MAX / 4 * 3],
    colon: usize,
    len: usize,
}

impl<'h> Credentials<'h> {
    /// Parses the value of an `Authorization` header. Returns `None` for another scheme or malformed credentials.
    pub fn parse(value: &'h [u8]) -> Option<Self> {
        let blank = value.iter().position(|&byte| byte == b' ')?;
        let (scheme, rest) = value.split_at(blank);
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return is_token68(rest).then_some(Self::Bearer(rest));
        }
        if scheme.eq_ignore_ascii_case(b"basic") {
            return Basic::decode(rest).map(Self::Basic);
        }
        None
    }
}

impl Basic {
    /// The name: everything before the first colon.
    pub fn name(&self) -> &[u8] {
        &self.decoded[..self.colon]
    }

    /// The password: everything after the first colon.
    pub fn password(&self) -> &[u8] {
        &self.decoded[self.colon + 1..self.len]
    }

    fn decode(encoded: &[u8]) -> Option<Self> {
        let decoded = [0; BASIC_BYTES_MAX / 4 * 3];
        // In place, and all of it wiped if it turns out to be malformed.
        let mut basic = Self { len: decoded.len(), decoded, colon: 0 };
        let len = STANDARD.decode_slice(encoded, &mut basic.decoded).ok()?;
        basic.colon = basic.decoded[..len].iter().position(|&byte| byte == b':')?;
        basic.len = len;
        Some(basic)
    }
}

impl Drop for Basic {
    fn drop(&mut self) {
        self.decoded[..self.len].zeroize();
    }
}

/// RFC 9110 section 11.2: letters, digits, `-._~+/`, then any number of `=`.
fn is_token68(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    let token = &text[..text.len() - padding];
    !token.is_empty() && token.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(hidden)",
            Self::Basic(_) => "Basic(hidden)",
        })
    }
}

impl std::fmt::Debug for Basic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Basic(hidden)")
    }
}

/// Hides the user and password in a URL, so that it can be shown. Works on malformed URLs too.
pub fn without_user(url: &str) -> Cow<'_, str> {
    let Some((before, host)) = url.rsplit_once('@') else { return url.into() };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://...@{host}").into(),
        None => format!("...@{host}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(value: &str) -> Option<(String, String)> {
        match Credentials::parse(value.as_bytes())? {
            Credentials::Basic(basic) => {
                let text = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
                Some((text(basic.name()), text(basic.password())))
            }
            Credentials::Bearer(_) => None,
        }
    }

    #[test]
    fn a_url_is_shown_without_its_user() {
        assert_eq!(without_user("http://h:1/x"), "http://h:1/x");
        assert_eq!(without_user("http://u:hush@h:1"), "http://...@h:1");
        assert_eq!(without_user("http://u:hu@sh@h"), "http://...@h");
        assert_eq!(without_user("u:hush@h:1"), "...@h:1");
    }

    #[test]
    fn reads_the_example_of_rfc_7617() {
        let expected = Some(("Aladdin".to_owned(), "open sesame".to_owned()));
        assert_eq!(basic("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), expected);
        assert_eq!(basic("bAsIc  QWxhZGRpbjpvcGVuIHNlc2FtZQ== "), expected);
    }

    #[test]
    fn a_password_may_hold_colons_and_both_may_be_empty() {
        assert_eq!(basic("Basic YTpiOmM="), Some(("a".to_owned(), "b:c".to_owned())));
        assert_eq!(basic("Basic Og=="), Some((String::new(), String::new())));
    }

    #[test]
    fn refuses_what_is_malformed() {
        let long = format!("Basic {}", "QUFB".repeat(BASIC_BYTES_MAX / 4 + 1));
        for bad in
            ["", "Basic", "Basic ", "Basic ***", "Basic YWI=", "Bearer a b", "Bearer =", "Digest x", &long]
        {
            assert_eq!(Credentials::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn bearer_is_lent_and_never_shown() {
        let credentials = Credentials::parse(b"Bearer mF_9.B5f-4.1JqM").unwrap();
        assert_eq!(credentials, Credentials::Bearer(b"mF_9.B5f-4.1JqM"));
        assert!(!format!("{credentials:?}").contains("mF_9"));
        let basic = Credentials::parse(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").unwrap();
        assert!(!format!("{basic:?}").contains("sesame"));
    }
}
