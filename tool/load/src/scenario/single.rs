//! Scenarios made from one URL and a few flags.

use std::fmt;

use super::definition::{Body, Request, Scenario, Verify};
use super::error::FlagError;
use super::sizes::Sizes;
use super::statuses::Statuses;
use super::template::Template;
use crate::url::{Credentials, Url, shown_path};

/// One request as the command line describes it: `-m`, `-H`, `-b`, and credentials.
#[derive(Clone)]
pub struct RequestTemplate {
    /// Method, `GET` by default.
    pub method: String,
    /// Header lines, `Name: value`.
    pub headers: Vec<String>,
    /// Body, sent as it is.
    pub body: Vec<u8>,
    /// Sizes of a generated body, which replaces `body`.
    pub body_sizes: Option<Sizes>,
    /// Credentials for Basic authentication; they override those in the URL.
    pub credentials: Option<Credentials>,
    /// Statuses that count as success, 200 to 399 by default.
    pub expect: Statuses,
    /// What the body of every response must be, byte for byte; anything by default.
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
    /// Leaves out headers, body and credentials, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTemplate").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Scenario {
    /// Makes the scenario that repeats one request.
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
            name: format!("{} {}", template.method, shown_path(url.path())),
            weight: 1,
            method: template.method,
            path: literal(url.path()),
            headers,
            body,
            basic_auth,
            expect: template.expect,
            verify: template.verify.map_or(Verify::Nothing, |bytes| Verify::Bytes(bytes.into())),
            capture: None,
        };
        Ok(Scenario {
            name: url.to_string(),
            bases: vec![url.origin()],
            values: Vec::new(),
            lists: Vec::new(),
            requests: vec![request],
        })
    }
}

fn parse_header(line: &str) -> Result<(String, Template), FlagError> {
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

/// Whether `text` may name a method or a header.
pub(crate) fn is_token(text: &str) -> bool {
    wire::syntax::is_token(text.as_bytes())
}

/// Whether bytes may stand in a header value: no control characters but tab.
pub(crate) fn is_field_value(bytes: &[u8]) -> bool {
    bytes.iter().copied().all(wire::syntax::is_value_byte)
}
