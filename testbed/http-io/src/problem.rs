//! An error as a response: a status, and a small JSON body that says what is wrong and what to do.

use std::borrow::Cow;

use serde::Serialize;

use crate::FieldsError;

/// What went wrong with a request, for the person who sent it: `{"error": "...", "hint": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", body.error)]
pub struct Problem {
    status: u16,
    body: Body,
    headers: Vec<(&'static str, Cow<'static, str>)>,
}

/// The JSON body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Body {
    error: Cow<'static, str>,
    #[serde(flatten)]
    field: Option<Box<Field>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'static, str>>,
}

/// Which field of the request is wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Field {
    field: Cow<'static, str>,
    reason: Cow<'static, str>,
}

impl Problem {
    /// A problem with a status and a short description.
    pub fn new(status: u16, error: impl Into<Cow<'static, str>>) -> Self {
        let body = Body { error: error.into(), field: None, hint: None };
        Self { status, body, headers: Vec::new() }
    }

    /// 422: a field of the request is not what it must be. The body names the `field` and the `reason` too.
    pub fn field(field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let mut problem = Self::new(422, format!("{field} {reason}"));
        problem.body.field = Some(Box::new(Field { field, reason }));
        problem
    }

    /// 405, with the methods that are allowed.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        Self::new(405, format!("only {allowed} may be used here")).header("Allow", allowed)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// Adds a header field to the response, such as `WWW-Authenticate` or `Retry-After`.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The status of the response.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The header fields of the response, besides those of its body.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    /// The JSON body of the response.
    pub fn body(&self) -> String {
        // Text always has a JSON form.
        serde_json::to_string(&self.body).unwrap_or_default() + "\n"
    }
}

/// 400 for a body that is not a JSON object, 422 for a field.
impl From<FieldsError> for Problem {
    fn from(error: FieldsError) -> Self {
        let status = error.status();
        match error {
            FieldsError::Field { field, reason } => Self::field(field, reason),
            error @ FieldsError::Body(_) => Self::new(status, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_json_whatever_the_text() {
        let problem = Problem::new(404, "no \"x\"\\\n\u{1}").hint("look");
        assert_eq!(problem.body(), "{\"error\":\"no \\\"x\\\"\\\\\\n\\u0001\",\"hint\":\"look\"}\n");
        assert_eq!(Problem::new(404, "gone").body(), "{\"error\":\"gone\"}\n");
        let field = Problem::from(FieldsError::field("room", "is missing"));
        let body = "{\"error\":\"room is missing\",\"field\":\"room\",\"reason\":\"is missing\"}\n";
        assert_eq!(
            (field.status(), field.to_string().as_str(), field.body().as_str()),
            (422, "room is missing", body)
        );
        assert_eq!(Problem::from(FieldsError::Body("JSON".into())).status(), 400);
    }
}
