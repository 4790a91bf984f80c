//! The scenario of one URL and a few flags.

use std::fmt;

use super::error::FlagError;
use super::keep::Lists;
use super::sizes::Sizes;
use super::statuses::Statuses;
use super::template::Template;
use super::{Body, Request, Scenario, Verify};
use crate::url::{Credentials, Url};

/// One request as the command line gives it: `-m`, `-H`, `-b`, and a name and password.
#[derive(Clone)]
pub struct RequestTemplate {
    /// Method; default `GET`.
    pub method: String,
    /// Header lines, `Name: value`.
    pub headers: Vec<String>,
    /// Body, sent as it stands.
    pub body: Vec<u8>,
    /// A generated body of one of these sizes, in place of `body`.
    pub body_sizes: Option<Sizes>,
    /// Basic authentication; before what the URL gives.
    pub credentials: Option<Credentials>,
    /// Statuses that count as success; default 200 to 399.
    pub expect: Statuses,
    /// What every response's body must be, byte for byte; default anything.
    pub verify: Option<Vec<u8>>,
}

impl Default for RequestTemplate {
    fn default() -> Self {
        RequestTemplate {
            method: "GET".into(),
            headers: Vec::new(),
            body: Vec::new(),
            body_sizes: None,
            credentials: None,
            expect: Statuses::default(),
            verify: None,
        }
    }
}

impl fmt::Debug for RequestTemplate {
    /// Without headers, body and credentials: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTemplate").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Scenario {
    /// The same request again and again.
    ///
    /// # Errors
    /// A method that is not a token, or a header that is not `Name: value`.
    pub fn single(url: &Url, template: RequestTemplate) -> Result<Self, FlagError> {
        if !is_token(&template.method) {
            return Err(FlagError::Method(template.method));
        }
        let headers = template.headers.iter().map(|line| parse_header(line)).collect::<Result<_, _>>()?;
        let literal = |text: &str| Template::literal(text);
        let basic_auth = template.credentials.map(|c| (literal(&c.name), literal(&c.password)));
        let body = match template.body_sizes {
            Some(sizes) => Body::Generated(sizes),
            None => Body::Text(Template::literal(template.body)),
        };
        let request = Request {
            name: format!("{} {}", template.method, url.path()),
            weight: 1,
            method: template.method,
            path: literal(url.path()),
            headers,
            body,
            basic_auth,
            expect: template.expect,
            verify: template.verify.map_or(Verify::Nothing, |bytes| Verify::Bytes(bytes.into())),
            keep: None,
        };
        Ok(Scenario {
            name: url.to_string(),
            bases: vec![url.origin()],
            values: Vec::new(),
            lists: Lists::default(),
            requests: vec![request],
        })
    }
}

fn parse_header(line: &str) -> Result<(String, Template), FlagError> {
    // The value may be a secret: only the name is ever shown.
    let (name, value) = line.split_once(':').ok_or(FlagError::Header)?;
    if !is_token(name) {
        return Err(FlagError::Header);
    }
    let value = value.trim();
    if !is_field_value(value.as_bytes()) {
        return Err(FlagError::HeaderValue(name.into()));
    }
    Ok((name.into(), Template::literal(value)))
}

/// Whether `text` may name a method or a header (RFC 9110 section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether bytes may stand in a header value: no control character but tab.
pub(crate) fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == b'\t' || (*b >= 0x20 && *b != 0x7f))
}
