//! The `[values]` of a scenario file.

use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, text_of, wrong};
use super::value::{Each, Value, ValueKind};

const KINDS: [&str; 5] = ["user", "counter", "random", "random-string", "cycle"];
const EACH: [&str; 2] = ["request", "user"];
const ALPHABETS: [(&str, &str); 4] = [
    ("letters", "abcdefghijklmnopqrstuvwxyz"),
    ("digits", "0123456789"),
    ("hex", "0123456789abcdef"),
    ("alphanumeric", "abcdefghijklmnopqrstuvwxyz0123456789"),
];

/// Reads one value.
pub(super) fn read_value(name: &str, mut section: Section<'_>) -> Result<Value, ScenarioError> {
    let kind = one_of(&mut section, "kind", "kind of value", &KINDS)?;
    let kind = match kind {
        Some("user") => ValueKind::User { start: section.number("start", 0..=u64::MAX, 0)? },
        Some("counter") => counter(&mut section)?,
        Some("random") => random(&mut section)?,
        Some("random-string") => random_string(&mut section)?,
        Some(_) => cycle(&mut section)?,
        None => return Err(section.missing("kind", "one of user, counter, random, random-string, cycle")),
    };
    let each = match one_of(&mut section, "each", "word for when a value is drawn", &EACH)? {
        Some("user") => Each::User,
        _ => Each::Request,
    };
    let width = section.number("width", 0..=64, 0)? as usize;
    section.finish()?;
    Ok(Value { name: name.into(), kind, each, width })
}

fn counter(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    Ok(ValueKind::Counter {
        start: section.number("start", 0..=u64::MAX, 0)?,
        step: section.number("step", 0..=u64::MAX, 1)?,
        per_user: section.number("per_user", 0..=u64::MAX, 0)?,
        wrap: section.number("wrap", 0..=u64::MAX, 0)?,
    })
}

fn random(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    let min = section.number("min", 0..=u64::MAX, 0)?;
    if section.field("max").is_none() {
        return Err(section.missing("max", "the largest number it may be"));
    }
    Ok(ValueKind::Random { min, max: section.number("max", min..=u64::MAX, min)? })
}

fn random_string(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    let length = section.number("length", 1..=4_096, 16)? as usize;
    let names = ALPHABETS.map(|(name, _)| name);
    let name = one_of(section, "alphabet", "alphabet", &names)?.unwrap_or("alphanumeric");
    let alphabet =
        ALPHABETS.iter().find(|(known, _)| *known == name).map_or("", |(_, characters)| characters);
    Ok(ValueKind::RandomString { length, alphabet: alphabet.as_bytes().to_vec() })
}

fn cycle(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    let source = section.source;
    let Some(fields) = section.array("items")?.filter(|fields| !fields.is_empty()) else {
        return Err(section.missing("items", "a list of texts, at least one"));
    };
    let item = |field: Field<'_>| {
        let text = text_of(source, field)?;
        if text.chars().any(char::is_control) {
            return Err(wrong(source, field, "texts without control characters"));
        }
        Ok(text.to_owned())
    };
    Ok(ValueKind::Cycle { items: fields.into_iter().map(item).collect::<Result<_, _>>()? })
}

/// A text out of a fixed set of words.
fn one_of<'a>(
    section: &mut Section<'a>,
    key: &'static str,
    what: &'static str,
    words: &[&'static str],
) -> Result<Option<&'static str>, ScenarioError> {
    let source = section.source;
    let Some(field) = section.field(key) else { return Ok(None) };
    let text = text_of(source, field)?;
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(Some(word));
    }
    let expected = words.iter().map(|word| (*word).into()).collect();
    Err(source.error(field.offset, Problem::UnknownName { what, name: text.into(), expected }))
}
