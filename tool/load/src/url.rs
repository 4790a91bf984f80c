//! Where the load goes: an http or https URL, its credentials kept apart from all that is shown.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain TCP, port 80 unless given.
    Http,
    /// TLS over TCP, port 443 unless given.
    Https,
}

/// A name and a password for Basic authentication. Never shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name; must not hold a colon (RFC 7617 section 2).
    pub name: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(hidden)")
    }
}

/// An absolute http or https URL.
///
/// Its text form leaves credentials out, so it may be printed and stored.
///
/// ```
/// let url: load::Url = "http://joe:secret@localhost:8080/a?b=c".parse()?;
/// assert_eq!(url.to_string(), "http://localhost:8080/a?b=c");
/// # Ok::<(), load::UrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
    credentials: Option<Credentials>,
}

/// Why a text is not a URL a generator can drive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Something other than `http://` or `https://` in front.
    #[error("a URL begins with http:// or https://, such as http://127.0.0.1:8080/path")]
    Scheme,
    /// Nothing between `//` and the path.
    #[error("the URL names no host")]
    NoHost,
    /// A host with characters no host name has.
    #[error("`{0}` is not a host name or address")]
    Host(String),
    /// A port outside 1 to 65535.
    #[error("`{0}` is not a port: expected 1 to 65535")]
    Port(String),
    /// A percent sign not followed by two hexadecimal digits, in the credentials.
    #[error("the name or password in the URL holds a `%` that is not followed by two hexadecimal digits")]
    Credentials,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = split_scheme(text.trim())?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (credentials, host_port) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(parse_credentials(user)?), host),
            None => (None, authority),
        };
        let (host, port) = parse_host_port(host_port, scheme)?;
        Ok(Url { scheme, host, port, path: request_target(tail), credentials })
    }
}

impl Url {
    /// Whether the connection is encrypted.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host name or address, an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, the scheme's own where none was given.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, beginning with `/`, as sent in the request line.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name and password given in the URL.
    #[must_use]
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// The same server and credentials, at its root.
    #[must_use]
    pub fn origin(&self) -> Url {
        Url { path: "/".into(), ..self.clone() }
    }

    /// Value of the Host header: the port left out where it is the scheme's own (RFC 9110 section 7.2).
    #[must_use]
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.scheme) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.host_header(), self.path)
    }
}

fn default_port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    }
}

fn split_scheme(text: &str) -> Result<(Scheme, &str), UrlError> {
    let (name, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    match name.to_ascii_lowercase().as_str() {
        "http" => Ok((Scheme::Http, rest)),
        "https" => Ok((Scheme::Https, rest)),
        _ => Err(UrlError::Scheme),
    }
}

fn parse_host_port(text: &str, scheme: Scheme) -> Result<(String, u16), UrlError> {
    let (host, port) = split_port(text)?;
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = match port {
        None | Some("") => default_port(scheme),
        Some(digits) => parse_port(digits)?,
    };
    Ok((host, port))
}

fn split_port(text: &str) -> Result<(String, Option<&str>), UrlError> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or_else(|| UrlError::Host(text.into()))?;
        let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host(text.into()))?;
        let port = match after.strip_prefix(':') {
            None if after.is_empty() => None,
            Some(port) => Some(port),
            None => return Err(UrlError::Host(text.into())),
        };
        return Ok((IpAddr::V6(address).to_string(), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !host.chars().all(known) {
        return Err(UrlError::Host(host.into()));
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn parse_port(digits: &str) -> Result<u16, UrlError> {
    let bad = || UrlError::Port(digits.into());
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    digits.parse().ok().filter(|port| *port != 0).ok_or_else(bad)
}

fn parse_credentials(text: &str) -> Result<Credentials, UrlError> {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    let decode = |part| percent_decode(part).ok_or(UrlError::Credentials);
    Ok(Credentials { name: decode(name)?, password: decode(password)? })
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).filter(|d| d.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

/// The request target of what follows the authority: no fragment, a leading slash, nothing a request
/// line may not hold.
fn request_target(tail: &str) -> String {
    let tail = tail.split_once('#').map_or(tail, |(before, _)| before);
    let slash = if tail.starts_with('/') { "" } else { "/" };
    let mut target = String::with_capacity(tail.len() + 1);
    target.push_str(slash);
    push_target(&mut target, tail);
    target
}

/// Appends `text` as part of a request target, percent-encoding what may not stand in one.
pub(crate) fn push_target(target: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && byte != b'#' {
            target.push(char::from(byte));
        } else {
            target.push_str(&format!("%{byte:02X}"));
        }
    }
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
    fn what_is_refused() {
        let fails = |text: &str| text.parse::<Url>().unwrap_err();
        assert_eq!(fails("localhost:80"), UrlError::Scheme);
        assert_eq!(fails("ftp://h/"), UrlError::Scheme);
        assert_eq!(fails("http:///x"), UrlError::NoHost);
        assert_eq!(fails("http://a b/"), UrlError::Host("a b".into()));
        assert_eq!(fails("http://h:99999/"), UrlError::Port("99999".into()));
        assert_eq!(fails("http://h:0/"), UrlError::Port("0".into()));
        assert_eq!(fails("http://h:+1/"), UrlError::Port("+1".into()));
        assert_eq!(fails("http://[::1/"), UrlError::Host("[::1".into()));
        assert_eq!(fails("http://a%zz@h/"), UrlError::Credentials);
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_its_text_is_a_fixed_point(text in "(http|https)://[ -~]{0,40}") {
            if let Ok(first) = text.parse::<Url>() {
                let second = url(&first.to_string());
                proptest::prop_assert_eq!(first.to_string(), second.to_string());
            }
        }
    }
}
