//! The texts and numbers in JSON, by their places: what is replaced there leaves everything else as it was written, names
//! that are there twice included.

use std::ops::Range;
use std::rc::Rc;

use crate::secrets::is_secret;

/// A text or a number in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its bytes; those of a text are between its quotation marks.
    pub(crate) place: Range<usize>,
    /// Whether it is a text.
    pub(crate) is_text: bool,
    /// The innermost name above it that says that it is a secret.
    pub(crate) secret: Option<Rc<str>>,
}

/// A list or an object that what follows lies in.
#[derive(Default)]
struct Level {
    is_object: bool,
    /// Whether the next text is a name.
    at_name: bool,
    /// The innermost name of a secret above all of it.
    holder: Option<Rc<str>>,
    /// The same for its next value.
    next: Option<Rc<str>>,
}

impl Level {
    fn new(holder: Option<Rc<str>>, is_object: bool) -> Self {
        Level { is_object, at_name: is_object, next: holder.clone(), holder }
    }

    /// Takes note of the name of the next value, as it is written.
    fn name(&mut self, written: &str) {
        let name = serde_json::from_str(&format!("\"{written}\""));
        let name: String = name.unwrap_or_else(|_| written.to_owned());
        self.next = if is_secret(&name) { Some(name.into()) } else { self.holder.clone() };
        self.at_name = false;
    }
}

/// Finds the texts and numbers in `text`, which is JSON, one document or several, in their order there.
pub(crate) fn values(text: &str) -> Vec<Placed> {
    let bytes = text.as_bytes();
    let (mut found, mut above, mut at) = (Vec::new(), vec![Level::default()], 0);
    while let (Some(byte), Some(level)) = (bytes.get(at), above.last_mut()) {
        let from = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                let inner = Level::new(level.next.clone(), *byte == b'{');
                above.push(inner);
            }
            b'}' | b']' => {
                above.pop();
            }
            b',' => level.at_name = level.is_object,
            b'"' => {
                let place = at..end_of_text(bytes, at);
                at = place.end + 1;
                if level.at_name {
                    level.name(text.get(place).unwrap_or_default());
                } else {
                    found.push(Placed { place, is_text: true, secret: level.next.clone() });
                }
            }
            b'-' | b'0'..=b'9' => {
                at += length_of_number(bytes.get(at..).unwrap_or_default());
                found.push(Placed { place: from..at, is_text: false, secret: level.next.clone() });
            }
            // Blanks, colons, `true`, `false` and `null`.
            _ => {}
        }
    }
    found
}

/// Where a text ends that begins here: at its quotation mark.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// How many bytes belong to a number that has begun.
fn length_of_number(bytes: &[u8]) -> usize {
    let belongs = |byte: &&u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    bytes.iter().take_while(belongs).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, Option<Rc<str>>)> {
        values(text).into_iter().map(|value| (&text[value.place], value.secret)).collect()
    }

    #[test]
    fn values_are_found_with_the_name_of_a_secret_above_them() {
        let text = r#" {"a" : "x","pin":-7.5e1,"session":{"id":"s\"", "open":true,
            "of":[{"tok\u0065n":"t"},1]}, "n":[2,"",{}], "pin":"é"} "#;
        let expected = [
            ("x", None),
            ("-7.5e1", Some("pin")),
            (r#"s\""#, Some("session")),
            ("t", Some("token")),
            ("1", Some("session")),
            ("2", None),
            ("", None),
            ("é", Some("pin")),
        ];
        assert_eq!(found(text), expected.map(|(value, name)| (value, name.map(Rc::<str>::from))));
        assert_eq!(found("7"), [("7", None)]);
        let lines = [("s", Some("token")), ("x", None)];
        assert_eq!(
            found("{\"token\":\"s\"}\n{\"a\":\"x\"}"),
            lines.map(|(value, name)| (value, name.map(Rc::<str>::from)))
        );
        assert!(found("null").is_empty());
    }

    #[test]
    fn what_is_no_json_after_all_ends_too() {
        for text in ["}", "]]", "\"", "\"\\", "{\"token", "{\"token\":\"", ",,\"a\"", "[-"] {
            let _ = found(text);
        }
    }
}
