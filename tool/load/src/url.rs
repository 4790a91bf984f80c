//! Where the load goes: an http or https URL, its credentials kept apart from everything that is shown.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::{ParseError, Position};

/// Stands for what is not shown.
pub(crate) const HIDDEN: &str = "***";

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain TCP, port 80 by default.
    Http,
    /// TLS over TCP, port 443 by default.
    Https,
}

/// A user name and password for Basic authentication. Never shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// User name; must not contain a colon (RFC 7617 section 2).
    pub name: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(hidden)")
    }
}

/// An absolute http or https URL, normalised as browsers do it (WHATWG URL).
///
/// Its text form leaves out the credentials and the values of the query, which may be tokens under any name, so it is safe to
/// print and store.
///
/// ```
/// let url: load::Url = "http://joe:secret@localhost:8080/a?b=c".parse()?;
/// assert_eq!(url.to_string(), "http://localhost:8080/a?b=***");
/// # Ok::<(), load::UrlError>(())
/// ```
/// Serialised it holds them: that form is for a stream to another generator, never for a file or a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(String, Option<Credentials>)", try_from = "(String, Option<Credentials>)")]
pub struct Url {
    /// Without credentials and fragment.
    inner: url::Url,
    credentials: Option<Credentials>,
}

/// Why a text is not a URL that the generator can send to. Never holds any of the text, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text does not start with `http://` or `https://`.
    #[error("a URL starts with http:// or https://, such as http://127.0.0.1:8080/path")]
    Scheme,
    /// Nothing stands between `//` and the path.
    #[error("the URL has no host")]
    NoHost,
    /// The host is neither a name nor an address.
    #[error(
        "the host in the URL is not valid: expected a name, an IPv4 address, or an IPv6 address in brackets"
    )]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the port in the URL is not valid: expected a number from 1 to 65535")]
    Port,
    /// The credentials contain a percent sign without two hexadecimal digits after it, or do not decode to UTF-8.
    #[error(
        "the user name or password in the URL is not valid: a `%` must be followed by two hexadecimal digits, and the \
         whole must be UTF-8"
    )]
    Credentials,
    /// The URL is malformed in another way.
    #[error("the URL is not valid: {0}")]
    Other(ParseError),
}

impl From<ParseError> for UrlError {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::EmptyHost => Self::NoHost,
            ParseError::InvalidPort => Self::Port,
            ParseError::IdnaError
            | ParseError::InvalidDomainCharacter
            | ParseError::InvalidIpv4Address
            | ParseError::InvalidIpv6Address => Self::Host,
            other => Self::Other(other),
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        // Browsers ignore tabs and line ends anywhere.
        let text = text.trim().replace(['\t', '\n', '\r'], "");
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(UrlError::Scheme);
        }
        // Browsers skip further slashes and would take `x` in `http:///x` for the host.
        if rest.starts_with(['/', '\\']) {
            return Err(UrlError::NoHost);
        }
        let mut inner = url::Url::parse(&text)?;
        if inner.port() == Some(0) {
            return Err(UrlError::Port);
        }
        let credentials = credentials(&inner)?;
        inner.set_fragment(None);
        // These fail only for URLs without a host.
        let _ = inner.set_username("").and(inner.set_password(None));
        Ok(Url { inner, credentials })
    }
}

impl From<Url> for (String, Option<Credentials>) {
    fn from(url: Url) -> Self {
        // Not the text that is shown, which lacks the values of the query.
        (url.inner.into(), url.credentials)
    }
}

impl TryFrom<(String, Option<Credentials>)> for Url {
    type Error = UrlError;

    fn try_from((text, credentials): (String, Option<Credentials>)) -> Result<Self, UrlError> {
        Ok(Url { credentials, ..text.parse()? })
    }
}

impl Url {
    /// Whether the connection is encrypted.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        if self.inner.scheme() == "https" { Scheme::Https } else { Scheme::Http }
    }

    /// Host name or address; an IPv6 address comes without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.inner.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// Port, or the scheme's default if the URL gives none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.inner.port_or_known_default().unwrap_or_default()
    }

    /// Path and query, starting with `/`, as sent in the request line.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.inner[Position::BeforePath..Position::AfterQuery]
    }

    /// The user name and password given in the URL.
    #[must_use]
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// The root of the same server, with the same credentials.
    #[must_use]
    pub fn origin(&self) -> Url {
        let mut origin = self.clone();
        origin.inner.set_path("/");
        origin.inner.set_query(None);
        origin
    }

    /// Value of the Host header: without the port if it is the scheme's default (RFC 9110 section 7.2).
    #[must_use]
    pub fn host_header(&self) -> &str {
        &self.inner[Position::BeforeHost..Position::AfterPort]
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner[..Position::BeforePath])?;
        f.write_str(&shown_path(self.path()))
    }
}

/// A path as it may be shown: with the names in its query, and without their values.
pub(crate) fn shown_path(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let shown = |part: &str| match part.split_once('=') {
        // What a scenario fills in has a name there.
        Some((_, value)) if is_slot(value) => part.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if part.is_empty() => String::new(),
        None => HIDDEN.to_owned(),
    };
    format!("{path}?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"))
}

/// Whether a text is a slot of a template, and nothing more: what stands between two may be a token.
fn is_slot(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.contains('}'))
}

fn credentials(url: &url::Url) -> Result<Option<Credentials>, UrlError> {
    let (name, password) = (url.username(), url.password());
    if name.is_empty() && password.is_none() {
        return Ok(None);
    }
    Ok(Some(Credentials { name: decode(name)?, password: decode(password.unwrap_or_default())? }))
}

/// Percent-decodes part of the credentials. The library leaves a malformed escape as it is, which would send a password
/// other than the one that was meant.
fn decode(part: &str) -> Result<String, UrlError> {
    let is_escape = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !part.split('%').skip(1).all(is_escape) {
        return Err(UrlError::Credentials);
    }
    let decoded = percent_decode_str(part).decode_utf8().map_err(|_| UrlError::Credentials)?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn parts_and_defaults() {
        let plain = url("http://example.com");
        assert_eq!((plain.host(), plain.port(), plain.path()), ("example.com", 80, "/"));
        assert_eq!(plain.host_header(), "example.com");
        let tls = url("HTTPS://Example.com:8443/a b?q=1#part");
        assert_eq!((tls.scheme(), tls.port(), tls.path()), (Scheme::Https, 8443, "/a%20b?q=1"));
        assert_eq!(tls.host_header(), "example.com:8443");
        assert_eq!(url("http://h?x=1").path(), "/?x=1");
        assert_eq!(url("http://h:/").port(), 80);
    }

    #[test]
    fn paths_are_normalised_as_browsers_do_it() {
        assert_eq!(url("http://h/a/../b/./c").path(), "/b/c");
        assert_eq!(url("http://h/%7e//x?{y}").path(), "/%7e//x?{y}");
        assert_eq!(url("http://h/a?b=c#d").origin().to_string(), "http://h/");
    }

    #[test]
    fn international_hosts_are_asked_for_in_their_ascii_form() {
        for host in ["b\u{fc}cher.example", "B\u{dc}CHER.example", "joe:pw@b%C3%BCcher.example"] {
            assert_eq!(url(&format!("http://{host}/")).host(), "xn--bcher-kva.example", "{host}");
        }
    }

    #[test]
    fn ipv6() {
        let six = url("http://[::1]:8080/x");
        assert_eq!((six.host(), six.port()), ("::1", 8080));
        assert_eq!(six.to_string(), "http://[::1]:8080/x");
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let with = url("http://joe:p%40ss%3A@h/x");
        let credentials = with.credentials().unwrap();
        assert_eq!((credentials.name.as_str(), credentials.password.as_str()), ("joe", "p@ss:"));
        assert_eq!(with.to_string(), "http://h/x");
        assert!(!format!("{with:?}").contains("p@ss"));
    }

    #[test]
    fn the_values_of_a_query_are_not_shown() {
        for (query, shown) in
            [("a=1&token=x%26y&", "a=***&token=***&"), ("x", "***"), ("a==b", "a=***"), ("", "")]
        {
            assert_eq!(url(&format!("http://h/p?{query}")).to_string(), format!("http://h/p?{shown}"));
        }
        assert_eq!(shown_path("/p?a=${size}&b=c"), "/p?a=${size}&b=***");
        assert_eq!(shown_path("/p?a=${size}b${size}"), "/p?a=***");
        assert_eq!(url("http://h/p?a=1").path(), "/p?a=1", "it is sent");
    }

    #[test]
    fn another_generator_gets_the_values_of_a_query_and_the_credentials() {
        let here = url("http://joe:pw@h/p?token=x");
        let (text, credentials) = here.clone().into();
        assert_eq!(Url::try_from((text, credentials)), Ok(here));
    }

    #[test]
    fn invalid_urls_are_refused_with_the_part_that_is_wrong() {
        let fails = |text: &str| text.parse::<Url>().unwrap_err();
        assert_eq!(fails("localhost:80"), UrlError::Scheme);
        assert_eq!(fails("ftp://h/"), UrlError::Scheme);
        assert_eq!(fails("http:///x"), UrlError::NoHost);
        assert_eq!(fails("http://?x"), UrlError::NoHost);
        assert_eq!(fails("http://a b/"), UrlError::Host);
        assert_eq!(fails("http://A%a0/"), UrlError::Host);
        assert_eq!(fails("http://h:99999/"), UrlError::Port);
        assert_eq!(fails("http://h:0/"), UrlError::Port);
        assert_eq!(fails("http://h:+1/"), UrlError::Port);
        assert_eq!(fails("http://[::1/"), UrlError::Host);
        assert_eq!(fails("http://a%zz@h/"), UrlError::Credentials);
        assert_eq!(fails("http://a:%ff@h/"), UrlError::Credentials);
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_its_text_is_a_fixed_point(text in "(http|https)://(XN--|xn--)?[ -~\u{c0}-\u{ff}\t]{0,40}") {
            if let Ok(first) = text.parse::<Url>() {
                let second = url(&first.to_string());
                proptest::prop_assert_eq!(first.to_string(), second.to_string());
            }
        }
    }
}
