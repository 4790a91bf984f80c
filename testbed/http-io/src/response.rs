//! A response before it is sent, independent of the connection it goes out on.

use std::borrow::Cow;

use engine::service::Connection;
use serde::Serialize;

use crate::{
    Problem,
    server::{Error, Exchange},
};

/// A status, a body, and further header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body's media type.
    pub content_type: Cow<'static, str>,
    /// The body. Not sent with 204.
    pub body: Vec<u8>,
    /// Further header fields, in order.
    pub fields: Vec<(&'static str, Cow<'static, str>)>,
}

impl Response {
    /// A response with a body of any type.
    pub fn new(status: u16, content_type: impl Into<Cow<'static, str>>, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: content_type.into(), body: body.into(), fields: Vec::new() }
    }

    /// A response with a JSON body, which ends with a newline.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        // Everything that servers send has a JSON form.
        let mut body = serde_json::to_vec(body).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    /// A 204: the request was fulfilled, and there is nothing to add.
    pub fn done() -> Self {
        Self::new(204, "text/plain", "")
    }

    /// A 405, with the methods that are allowed.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        Problem::method_not_allowed(allowed).into()
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.fields.push((field, value.into()));
        self
    }

    /// Sends it as the response to the request of `exchange`, and tells browsers not to guess another media type.
    ///
    /// # Errors
    /// As [`ResponseWriter::body`](crate::server::ResponseWriter::body).
    pub fn send<C: Connection>(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let mut response = exchange.respond(self.status).header("X-Content-Type-Options", "nosniff");
        for (name, value) in &self.fields {
            response = response.header(name, value.as_bytes());
        }
        if self.status == 204 { response.empty() } else { response.body(&self.content_type, &self.body) }
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let fields = problem.headers().map(|(name, value)| (name, Cow::Owned(value.to_owned()))).collect();
        Self { fields, ..Self::new(problem.status(), "application/json", problem.body()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_keeps_its_status_body_and_fields() {
        let answer = Response::from(Problem::new(503, "busy").header("Retry-After", "1"));
        assert_eq!((answer.status, &answer.body[..]), (503, &b"{\"error\":\"busy\"}\n"[..]));
        assert_eq!(answer.fields, [("Retry-After", "1".into())]);
        let refused = Response::method_not_allowed("GET").with("X", "y");
        assert_eq!((refused.status, refused.fields.len()), (405, 2));
    }
}
