//! Finds the value to capture in a response while it arrives.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use wire::{Limits, Method, response};

use crate::scenario::definition::CaptureFrom;
use crate::values::captured::VALUE_BYTES;

/// Longest body that is searched for a value.
const BODY_BYTES: usize = 16 * 1024;

/// The captured value of one response, or the body that may contain it. The memory is reused for the next response.
#[derive(Debug, Default)]
pub(crate) struct ResponseCapture {
    body: Vec<u8>,
    value: Vec<u8>,
}

impl ResponseCapture {
    /// Prepares for the next response.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.body.clear();
        self.value.clear();
    }

    /// Searches a whole head.
    pub(crate) fn head(&mut self, from: &CaptureFrom, head: &[u8], asked: Method, limits: &Limits) {
        let name = match from {
            CaptureFrom::Json(_) => return,
            CaptureFrom::Location => "location",
            CaptureFrom::Header(name) => name.as_str(),
        };
        let Ok(Some((_, fields))) = response::parse_indexed(head, asked, limits) else { return };
        let value = fields.get(head, name).unwrap_or_default();
        let value = if *from == CaptureFrom::Location { path_of(value) } else { value };
        self.found(value);
    }

    /// Collects a part of the body.
    pub(crate) fn body(&mut self, from: &CaptureFrom, bytes: &[u8]) {
        if matches!(from, CaptureFrom::Json(_)) {
            // One byte beyond the limit shows that the body is too long.
            let room = (BODY_BYTES + 1).saturating_sub(self.body.len());
            self.body.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
    }

    /// Returns the value; empty if the response has none that can be captured.
    pub(crate) fn value(&mut self, from: &CaptureFrom) -> &[u8] {
        if let CaptureFrom::Json(names) = from
            && self.body.len() <= BODY_BYTES
        {
            let mut json = serde_json::Deserializer::from_slice(&self.body);
            let value = &mut self.value;
            // A body that is not JSON has no value.
            if (Within { names, value }).deserialize(&mut json).is_err() || json.end().is_err() {
                self.value.clear();
            }
        }
        if self.value.len() > VALUE_BYTES || self.value.iter().any(u8::is_ascii_control) {
            self.value.clear();
        }
        &self.value
    }

    fn found(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value.get(..=VALUE_BYTES).unwrap_or(value));
    }
}

/// Returns the path and query of a URI reference with an absolute path, and nothing for other references.
///
/// Done by hand because this is on the request path, which allocates nothing.
fn path_of(location: &[u8]) -> &[u8] {
    let after_scheme = location.windows(3).position(|three| three == b"://").map_or(location, |at| {
        let rest = location.get(at + 3..).unwrap_or_default();
        rest.iter().position(|b| *b == b'/').and_then(|slash| rest.get(slash..)).unwrap_or_default()
    });
    let path = if location.starts_with(b"/") { location } else { after_scheme };
    let path = path.split(|b| *b == b'#').next().unwrap_or_default();
    if path.starts_with(b"/") && path.iter().all(u8::is_ascii_graphic) { path } else { b"" }
}

/// Finds the text or number under `names` and copies it. Allocates only for the copy, and only until that has its room.
struct Within<'a> {
    names: &'a [String],
    value: &'a mut Vec<u8>,
}

impl Within<'_> {
    fn found<T>(self, text: impl fmt::Display) -> Result<(), T> {
        use std::io::Write;
        self.value.clear();
        if self.names.is_empty() {
            // Writing to a Vec cannot fail.
            let _ = write!(self.value, "{text}");
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Within { names, value } = self;
        let (name, below) = names.split_first().map_or((None, names), |(name, below)| (Some(name), below));
        while let Some(same) = map.next_key_seed(Is(name.map_or("", String::as_str)))? {
            if same && name.is_some() {
                map.next_value_seed(Within { names: below, value })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.found(text)
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.found(number)
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.found(number)
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.found(number)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Within { names, value } = self;
        let at = names.first().and_then(|place| place.parse::<usize>().ok());
        let below = names.get(1..).unwrap_or_default();
        for place in 0.. {
            let there = match at == Some(place) {
                true => seq.next_element_seed(Within { names: below, value })?.is_some(),
                false => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !there {
                break;
            }
        }
        Ok(())
    }
}

/// Compares a key with this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(path: &str, parts: &[&[u8]]) -> String {
        let from = CaptureFrom::Json(path.split('.').map(Into::into).collect());
        let mut capture = ResponseCapture::default();
        parts.iter().for_each(|part| capture.body(&from, part));
        String::from_utf8(capture.value(&from).to_vec()).unwrap()
    }

    fn header(from: &CaptureFrom, head: &[u8]) -> String {
        let mut capture = ResponseCapture::default();
        capture.head(from, head, Method::Post, &Limits::default());
        String::from_utf8(capture.value(from).to_vec()).unwrap()
    }

    #[test]
    fn a_field_of_a_body() {
        let body = br#"{"room": 1, "id": "a-b", "of": {"id": 7, "x": [{"id": "no"}]}, "n": -1}"#;
        assert_eq!(json("id", &[body]), "a-b");
        assert_eq!(json("of.id", &[body]), "7");
        assert_eq!(json("n", &[body]), "-1");
        assert_eq!(json("of.x.0.id", &[body]), "no");
        for nothing in ["of", "of.x", "x", "id.id", "room.id", "of.x.id", "of.x.1.id", "of.x.0"] {
            assert_eq!(json(nothing, &[body]), "", "{nothing}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_captured_is_not() {
        let long = format!(r#"{{"id": "{}"}}"#, "x".repeat(VALUE_BYTES + 1));
        for body in [&b""[..], b"{", br#"{"id": "a"} x"#, br#"{"id": "a\r\nX: y"}"#, br#"{"id": null}"#] {
            assert_eq!(json("id", &[body]), "", "{}", body.escape_ascii());
        }
        assert_eq!(json("id", &[long.as_bytes()]), "");
        let padded = format!(r#"{{"id": "a", "pad": "{}"}}"#, "x".repeat(BODY_BYTES));
        assert_eq!(json("id", &[padded.as_bytes()]), "");
    }

    #[test]
    fn headers_and_locations() {
        let head = b"HTTP/1.1 201 Created\r\nLOCATION: http://h:1/bookings/7?x=y#z\r\nX-Id: q\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(header(&CaptureFrom::Location, head), "/bookings/7?x=y");
        assert_eq!(header(&CaptureFrom::Header("x-id".into()), head), "q");
        assert_eq!(header(&CaptureFrom::Header("x-no".into()), head), "");
        for place in ["7", "http://h", "/a b", ""] {
            let head = format!("HTTP/1.1 201 C\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(header(&CaptureFrom::Location, head.as_bytes()), "", "{place}");
        }
    }

    proptest! {
        #[test]
        fn the_value_does_not_depend_on_how_the_body_is_split(at in 0usize..40) {
            let body = br#"{"room": 1, "id": "a-b", "name": "Asha"}"#;
            let (one, other) = body.split_at(at);
            prop_assert_eq!(json("id", &[one, other]), "a-b");
        }

        #[test]
        fn any_body_is_searched_without_panic(body in prop::collection::vec(any::<u8>(), 0..60), text in r#"[{}\[\]":,id0-9a ]{0,30}"#) {
            json("id.id", &[&body]);
            json("id", &[text.as_bytes()]);
        }
    }
}
