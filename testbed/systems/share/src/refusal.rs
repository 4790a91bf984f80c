//! Error responses.

use http_io::{FieldsError, Response};
use serde::Serialize;

/// The body of an error response.
#[derive(Debug, Serialize)]
struct Refusal<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// The response to a request with an invalid field or body.
pub(crate) fn of_fields(error: &FieldsError) -> Response {
    let field = match error {
        FieldsError::Field { field, .. } => Some(field.as_ref()),
        FieldsError::Body(_) => None,
    };
    Response::json(error.status(), &Refusal { error: &error.to_string(), field, hint: None })
}

/// The response to a request that cannot be served now or at all. With status 503 it says when to retry.
pub(crate) fn new(status: u16, error: &str, hint: &str) -> Response {
    let answer = Response::json(status, &Refusal { error, field: None, hint: Some(hint) });
    if status == 503 { answer.with("Retry-After", "1") } else { answer }
}
