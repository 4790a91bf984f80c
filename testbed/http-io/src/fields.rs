//! The fields of a JSON body, taken one by one, so that errors can name the field.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// The fields of a JSON object that have not been taken yet.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

/// What is wrong with a body or a query. Never contains what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The body is not a JSON object (400).
    #[error("the body is not {0}")]
    Body(String),
    /// A field is missing, unknown or invalid (422).
    #[error("{field} {reason}")]
    Field {
        /// The field's name.
        field: Cow<'static, str>,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
}

impl FieldsError {
    /// The error of a field, with what it must be.
    pub fn field(field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Field { field: field.into(), reason: reason.into() }
    }

    /// The status to respond with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Body(_) => 400,
            Self::Field { .. } => 422,
        }
    }
}

impl Fields {
    /// Parses a body.
    ///
    /// # Errors
    /// When it is not a JSON object, or has a field twice: another parser might use the other value.
    pub fn read(body: &[u8]) -> Result<Self, FieldsError> {
        match serde_json::from_slice(body) {
            Ok(Sent { fields, repeated: None }) => Ok(Self(fields)),
            Ok(Sent { repeated: Some(name), .. }) => Err(FieldsError::field(shown(&name), "appears twice")),
            Err(error) if error.is_data() => Err(FieldsError::Body("a JSON object".into())),
            Err(error) => {
                Err(FieldsError::Body(format!("JSON (line {}, column {})", error.line(), error.column())))
            }
        }
    }

    /// Takes the field if it was sent as `null`, which asks to remove a value. Returns whether it was.
    pub fn take_null(&mut self, field: &'static str) -> bool {
        let is_null = self.0.get(field) == Some(&Value::Null);
        if is_null {
            self.0.remove(field);
        }
        is_null
    }

    /// Takes a required text.
    ///
    /// # Errors
    /// When it is missing or not text.
    pub fn text(&mut self, field: &'static str) -> Result<String, FieldsError> {
        self.maybe_text(field)?.ok_or_else(|| FieldsError::field(field, "is missing"))
    }

    /// Takes a required text that is wiped from memory when it is dropped.
    ///
    /// # Errors
    /// When it is missing or not text.
    pub fn secret(&mut self, field: &'static str) -> Result<Zeroizing<String>, FieldsError> {
        self.text(field).map(Zeroizing::new)
    }

    /// Takes an optional text. `null` counts as absent, here and below.
    ///
    /// # Errors
    /// When it is not text.
    pub fn maybe_text(&mut self, field: &'static str) -> Result<Option<String>, FieldsError> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(FieldsError::field(field, "must be text, in quotation marks")),
        }
    }

    /// Takes an optional whole number.
    ///
    /// # Errors
    /// When it is not a whole number.
    pub fn maybe_number(&mut self, field: &'static str) -> Result<Option<i64>, FieldsError> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) if number.as_i64().is_some() => Ok(number.as_i64()),
            Some(_) => Err(FieldsError::field(field, "must be a whole number, without quotation marks")),
        }
    }

    /// Takes an optional `true` or `false`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn maybe_truth(&mut self, field: &'static str) -> Result<Option<bool>, FieldsError> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(truth)),
            Some(_) => Err(FieldsError::field(field, "must be true or false, without quotation marks")),
        }
    }

    /// Takes an optional list of texts.
    ///
    /// # Errors
    /// When it is something else.
    pub fn maybe_texts(&mut self, field: &'static str) -> Result<Vec<String>, FieldsError> {
        let wrong = || FieldsError::field(field, "must be a list of texts");
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

    /// Takes a required list of objects.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn items(&mut self, field: &'static str) -> Result<Vec<Self>, FieldsError> {
        let wrong = || FieldsError::field(field, "must be a list of objects");
        let Some(Value::Array(items)) = self.0.remove(field) else { return Err(wrong()) };
        let objects = items.into_iter().map(|item| match item {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(wrong()),
        });
        objects.collect()
    }

    /// Checks that no field is left, so that mistyped ones are not ignored. `known` lists the valid ones.
    ///
    /// # Errors
    /// When a field is left.
    pub fn finish(self, known: &'static str) -> Result<(), FieldsError> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        Err(FieldsError::field(shown(name), format!("is not known here; the known ones are {known}")))
    }
}

/// A field's name for an error message. A name that is not a word may be anything, so it is not repeated.
pub(crate) fn shown(name: &str) -> String {
    let word = name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if word { name.to_owned() } else { "a field".to_owned() }
}

/// An object as sent.
#[derive(Default)]
struct Sent {
    fields: Map<String, Value>,
    /// The last field that occurred again.
    repeated: Option<String>,
}

impl<'de> Deserialize<'de> for Sent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SentVisitor)
    }
}

struct SentVisitor;

impl<'de> Visitor<'de> for SentVisitor {
    type Value = Sent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sent, A::Error> {
        let mut sent = Sent::default();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if sent.fields.contains_key(&name) {
                sent.repeated = Some(name.clone());
            }
            sent.fields.insert(name, value);
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_by_type_and_what_is_left_is_told() {
        let body = br#"{"a": "x", "b": 3, "c": true, "d": null, "e": ["y"], "f": 1.5}"#;
        let mut fields = Fields::read(body).unwrap();
        assert_eq!(fields.text("a").as_deref(), Ok("x"));
        assert_eq!(fields.maybe_number("b"), Ok(Some(3)));
        assert_eq!(fields.maybe_truth("c"), Ok(Some(true)));
        assert!(fields.take_null("d") && !fields.take_null("d") && !fields.take_null("e"));
        assert_eq!(fields.maybe_texts("e"), Ok(vec!["y".to_owned()]));
        assert_eq!(fields.text("g").unwrap_err().to_string(), "g is missing");
        let left = fields.finish("a to e").unwrap_err();
        assert_eq!(
            (left.status(), left.to_string().as_str()),
            (422, "f is not known here; the known ones are a to e")
        );
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused() {
        for (body, field) in [(&br#"{"room": 1, "room": 2}"#[..], "room"), (br#"{"a": 1, "\u0061": 1}"#, "a")]
        {
            let error = Fields::read(body).unwrap_err();
            assert_eq!((error.status(), error.to_string()), (422, format!("{field} appears twice")));
        }
        assert!(Fields::read(br#"{"a": [{"b": 1}, {"b": 1}], "b": 1}"#).is_ok());
        for body in ["", "{", "[]", "null", "\"x\"", "{\"a\":1,}", "{} {}", "{\"a\":1,\"a\":"] {
            assert_eq!(Fields::read(body.as_bytes()).unwrap_err().status(), 400, "{body}");
        }
    }

    #[test]
    fn a_list_of_objects_is_taken_apart_like_the_whole() {
        let mut fields = Fields::read(br#"{"a": [{"b": "x"}, {"b": 1}], "c": [1], "d": {}}"#).unwrap();
        let texts: Vec<_> =
            fields.items("a").unwrap().into_iter().map(|mut item| item.text("b").is_ok()).collect();
        assert_eq!(texts, [true, false]);
        for wrong in ["c", "d", "e"] {
            assert_eq!(fields.items(wrong).unwrap_err().status(), 422, "{wrong}");
        }
    }

    #[test]
    fn what_was_sent_is_in_no_error() {
        for body in [
            &b"hush"[..],
            b"\"hush\"",
            b"{\"hush, hush\": 1}",
            b"{\"hush, hush\": 1, \"hush, hush\": 1}",
            b"{\"a\": [\"hush\", 1]}",
        ] {
            let error = Fields::read(body).and_then(|mut fields| {
                fields.maybe_texts("a")?;
                fields.finish("a")
            });
            let message = error.unwrap_err().to_string();
            assert!(!message.contains("hush"), "{message}");
        }
    }
}
