//! Parameters of operations.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value as Json};

use super::budget::Budget;
use super::document::Document;
use super::sample::{Sample, json_of, text_of};

/// Headers that a description says nothing about as parameters.
const IGNORED: [&str; 3] = ["accept", "authorization", "content-type"];

/// What is not percent-encoded.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is not percent-encoded in a path.
const KEPT_IN_PATHS: &AsciiSet = &KEPT.remove(b'/');

/// A parameter.
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    /// Where it stands: `path`, `query`, `header` or `cookie`.
    pub(super) place: &'a str,
    described: &'a Json,
}

impl<'a> Parameter<'a> {
    pub(super) fn new(described: &'a Json) -> Self {
        let text = |key| described.get(key).and_then(Json::as_str).unwrap_or_default();
        Parameter { name: text("name"), place: text("in"), described }
    }

    /// A part of a path that is not described.
    pub(super) fn in_path(name: &'a str) -> Self {
        Parameter { name, place: "path", described: &Json::Null }
    }

    pub(super) fn is_required(&self) -> bool {
        self.described.get("required") == Some(&Json::Bool(true))
    }

    /// Whether something else in the description says what it is.
    pub(super) fn is_ignored(&self) -> bool {
        self.place == "header" && IGNORED.iter().any(|ignored| self.name.eq_ignore_ascii_case(ignored))
    }

    /// The kind of body whose text it is, if it is one.
    fn media(&self) -> Option<&'a Json> {
        self.described.get("content")?.as_object()?.values().next()
    }

    /// What it can be: its examples as far as the budget goes, or a value that its schema allows. There is always one.
    pub(super) fn samples(&self, document: &Document<'a>, budget: &Budget) -> Vec<Json> {
        let holder = self.media().unwrap_or(self.described);
        let given = examples(document, holder).into_iter();
        let mut samples: Vec<Json> = given.filter_map(|example| budget.copy(example)).collect();
        if samples.is_empty() {
            let sample = Sample::new(document, budget);
            samples.push(sample.of(holder.get("schema").unwrap_or(&Json::Null)));
        }
        samples
    }

    /// The texts that these are sent as. There is always one.
    pub(super) fn texts(&self, samples: &[Json]) -> Vec<String> {
        let is_body = self.media().is_some();
        let is_repeated = self.place == "query" && self.described.get("explode") != Some(&Json::Bool(false));
        let texts = samples.iter().flat_map(|sample| match sample {
            sample if is_body => vec![json_of(sample)],
            // Its name would stand before each of them: one is sent.
            Json::Array(items) if is_repeated => items.iter().map(text_of).collect(),
            sample => vec![text_of(sample)],
        });
        let mut texts: Vec<String> = texts.collect();
        if texts.is_empty() {
            texts.push(String::new());
        }
        texts
    }

    /// What stands in its place for this text, in which `${` begins a slot, and `$${` is a text.
    pub(super) fn in_place(&self, text: String) -> String {
        if ["path", "query"].contains(&self.place) { encoded_but_slots(&text) } else { text }
    }
}

/// The examples of a parameter or a body, but those in other files.
pub(super) fn examples<'a>(document: &Document<'a>, holder: &'a Json) -> Vec<&'a Json> {
    if let Some(example) = holder.get("example") {
        return vec![example];
    }
    let all = holder.get("examples").and_then(Json::as_object).into_iter().flat_map(Map::values);
    all.filter_map(|example| document.resolved(example).get("value")).collect()
}

/// A text percent-encoded for a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// The same, of a text with slots, which are encoded when they are filled in.
fn encoded_but_slots(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        rest = match (before.strip_suffix('$'), after.split_once('}')) {
            (None, Some((name, after))) => {
                out.push_str(&format!("{}${{{name}}}", encoded(before)));
                after
            }
            (literal, _) => {
                out.push_str(&encoded(literal.unwrap_or(before)));
                out.push_str(&encoded("${"));
                after
            }
        };
    }
    out + &encoded(rest)
}

/// A part of a path, percent-encoded.
pub(super) fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, KEPT_IN_PATHS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_not_encoded_and_what_only_looks_like_one_is() {
        assert_eq!(encoded_but_slots("{\"a b\":\"${x}\"}"), "%7B%22a%20b%22%3A%22${x}%22%7D");
        assert_eq!(encoded_but_slots("$${x}${y}$"), "%24%7Bx%7D${y}%24");
        assert_eq!(encoded_but_slots("a${"), "a%24%7B");
    }
}
