//! What is wrong with a request, as the answer to it.

use http_io::{FieldsError, Response};
use serde::Serialize;

/// An answer that tells what is wrong, in which field, and what to do.
#[derive(Debug, Serialize)]
struct Refusal<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// The answer to a request with something wrong in it.
pub(crate) fn of_fields(error: &FieldsError) -> Response {
    let field = match error {
        FieldsError::Field { field, .. } => Some(field.as_ref()),
        FieldsError::Body(_) => None,
    };
    Response::json(error.status(), &Refusal { error: &error.to_string(), field, hint: None })
}

/// The answer when something cannot be done now or at all. That of 503 says when to ask again.
pub(crate) fn new(status: u16, error: &str, hint: &str) -> Response {
    let answer = Response::json(status, &Refusal { error, field: None, hint: Some(hint) });
    if status == 503 { answer.with("Retry-After", "1") } else { answer }
}
