//! A request to another tier, and its answer.

use wire::{Fields, Method, write};

use crate::server::HTTPS_ONLY;

/// A request to another tier.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    method: Method,
    target: &'a str,
    headers: &'a [(&'a str, &'a [u8])],
    body: &'a [u8],
    repeatable: bool,
}

impl<'a> Request<'a> {
    /// A request without headers of its own and without a body. `target` is a path, percent-encoded.
    pub fn new(method: Method, target: &'a str) -> Self {
        Self { method, target, headers: &[], body: &[], repeatable: method.is_idempotent() }
    }

    /// With these headers. `Host` and `Content-Length` are added.
    #[must_use]
    pub fn headers(self, headers: &'a [(&'a str, &'a [u8])]) -> Self {
        Self { headers, ..self }
    }

    /// With this body.
    #[must_use]
    pub fn body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }

    /// Says that doing it twice does no harm, though its method does not promise that: it may be sent again when
    /// a kept connection dies before it is answered.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Says that doing it twice may do harm, though its method promises otherwise.
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

/// An answer, complete.
pub struct Response {
    pub(crate) status: u16,
    pub(crate) head: Vec<u8>,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Its status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first value of the header `name`, in any case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(&self.head, name)
    }

    /// Whether it refuses because it was asked without TLS, by a server of ours that speaks nothing else.
    pub fn wants_tls(&self) -> bool {
        self.status == 400
            && serde_json::from_slice::<serde_json::Value>(&self.body)
                .is_ok_and(|problem| problem["error"] == HTTPS_ONLY)
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Its body, to be kept.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// Status and sizes only: headers and body may hold tokens.
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}
