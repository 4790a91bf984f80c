//! A request to an upstream server, and the response.

use wire::{Fields, Method, write};

use crate::server::HTTPS_ONLY;

/// A request to an upstream server.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    method: Method,
    target: &'a str,
    headers: &'a [(&'a str, &'a [u8])],
    body: &'a [u8],
    repeatable: bool,
}

impl<'a> Request<'a> {
    /// A request without further header fields or a body. `target` is a percent-encoded path, with a query if there is one.
    pub fn new(method: Method, target: &'a str) -> Self {
        Self { method, target, headers: &[], body: &[], repeatable: method.is_idempotent() }
    }

    /// Sets the header fields. `Host` and `Content-Length` are added.
    #[must_use]
    pub fn headers(self, headers: &'a [(&'a str, &'a [u8])]) -> Self {
        Self { headers, ..self }
    }

    /// Sets the body.
    #[must_use]
    pub fn body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }

    /// Declares that sending it twice does no harm, though its method does not promise that. It may then be sent again when a
    /// kept connection dies before the response.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Declares that sending it twice may do harm, though its method promises otherwise.
    #[must_use]
    pub fn once(self) -> Self {
        Self { repeatable: false, ..self }
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// Renders the whole request.
    pub(crate) fn render(&self, host: &str, out: &mut Vec<u8>) -> Result<(), write::WriteError> {
        write::request_line(out, self.method.as_str(), self.target)?;
        write::header(out, "Host", host.as_bytes())?;
        for (name, value) in self.headers {
            write::header(out, name, value)?;
        }
        if !self.body.is_empty() || matches!(self.method, Method::Post | Method::Put | Method::Patch) {
            write::content_length(out, self.body.len() as u64);
        }
        write::end(out);
        out.extend_from_slice(self.body);
        Ok(())
    }
}

/// A complete response.
pub struct Response {
    pub(crate) status: u16,
    pub(crate) head: Vec<u8>,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first value of the header field `name`. Case does not matter.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(&self.head, name)
    }

    /// Whether one of our servers refused the request because it speaks HTTPS only.
    pub fn wants_tls(&self) -> bool {
        self.status == 400
            && serde_json::from_slice::<serde_json::Value>(&self.body)
                .is_ok_and(|problem| problem["error"] == HTTPS_ONLY)
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body, by value.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// Shows status and size only: header fields and body may contain secrets.
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
