//! The fields of a JSON body, taken one by one, so that what is wrong can be told by its field.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The fields not taken yet.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body. None of the errors holds what was sent.
    pub(crate) fn read(body: &[u8], example: &'static str) -> Result<Self, Refusal> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(Refusal::new(400, "the body is not a JSON object").hint(example)),
            Err(error) => {
                let place = format!("line {}, column {}", error.line(), error.column());
                Err(Refusal::new(400, format!("the body is not JSON ({place})")).hint(example))
            }
        }
    }

    /// Text that must be there.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, Refusal> {
        self.maybe_text(field)?.ok_or_else(|| Refusal::field(field, "is missing"))
    }

    /// Text that may be there; `null` is as good as nothing.
    pub(crate) fn maybe_text(&mut self, field: &'static str) -> Result<Option<String>, Refusal> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::field(field, "must be text, in quotation marks")),
        }
    }

    /// A whole number that may be there.
    pub(crate) fn maybe_number(&mut self, field: &'static str) -> Result<Option<i64>, Refusal> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) if number.as_i64().is_some() => Ok(number.as_i64()),
            Some(_) => Err(Refusal::field(field, "must be a whole number, without quotation marks")),
        }
    }

    /// A list of texts that may be there.
    pub(crate) fn maybe_texts(&mut self, field: &'static str) -> Result<Vec<String>, Refusal> {
        let wrong = || Refusal::field(field, "must be a list of texts");
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let texts = items.into_iter().map(|item| match item {
                    Value::String(text) => Ok(text),
                    _ => Err(wrong()),
                });
                texts.collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// That nothing else was sent: a mistyped field would be ignored otherwise.
    pub(crate) fn finish(self, known: &'static str) -> Result<(), Refusal> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        // A name that is not a word may be anything, so it is not repeated.
        let word = name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let name = if word { name.clone() } else { "a field".into() };
        Err(Refusal::field(name, format!("is not known here; known are {known}")))
    }
}
