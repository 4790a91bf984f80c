//! An error as an answer: a status, and a small JSON body that says what is wrong and what to do.

use std::borrow::Cow;

/// What went wrong with a request, for the person who sent it: `{"error": "...", "hint": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Problem {
    status: u16,
    error: Cow<'static, str>,
    hint: Cow<'static, str>,
    headers: Vec<(&'static str, Cow<'static, str>)>,
}

impl Problem {
    /// A problem with its status and what is wrong, in a few words.
    pub fn new(status: u16, error: impl Into<Cow<'static, str>>) -> Self {
        Self { status, error: error.into(), hint: Cow::Borrowed(""), headers: Vec::new() }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds a header to the answer, such as `WWW-Authenticate` or `Retry-After`.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The status to answer with.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers to answer with.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    /// The JSON body.
    pub fn body(&self) -> String {
        let body = if self.hint.is_empty() {
            serde_json::json!({ "error": self.error })
        } else {
            serde_json::json!({ "error": self.error, "hint": self.hint })
        };
        format!("{body}\n")
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
    }
}
