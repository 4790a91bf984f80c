//! An answer before it is sent.

use std::borrow::Cow;

use serde::Serialize;

use crate::refusal::Refusal;

/// A status, a body, and further header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) fields: Vec<(&'static str, Cow<'static, str>)>,
}

impl Answer {
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into(), fields: Vec::new() }
    }

    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        // What is shown here always has a JSON form.
        let mut body = serde_json::to_vec(body).unwrap_or_default();
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    pub(crate) fn with(mut self, field: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.fields.push((field, value.into()));
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let answer = Self::json(refusal.status, &refusal);
        match refusal.status {
            401 => answer.with("WWW-Authenticate", r#"Bearer realm="nstar booking""#),
            503 => answer.with("Retry-After", "1"),
            _ => answer,
        }
    }
}
