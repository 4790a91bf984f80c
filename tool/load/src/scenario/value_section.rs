//! The `[values]` tables of a scenario file, and the tables that describe generated bodies.

use toml::de::DeValue;

use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, SourceText, number_of, text_of, wrong};
use super::sizes::{SIZE, SIZE_MAX, Sizes, parse_size};
use super::value::{CheckDigit, Each, Value, ValueKind};

const KINDS: [&str; 7] = ["user", "counter", "random", "random-string", "choice", "cycle", "date"];
/// How far ahead a date may lie, days.
const DAYS_MAX: u64 = 36_500;
const CHECKS: [&str; 1] = ["verhoeff"];
const EACH: [&str; 2] = ["request", "user"];
const ALPHABETS: [(&str, &str); 4] = [
    ("letters", "abcdefghijklmnopqrstuvwxyz"),
    ("digits", "0123456789"),
    ("hex", "0123456789abcdef"),
    ("alphanumeric", "abcdefghijklmnopqrstuvwxyz0123456789"),
];

/// Reads one `[values.NAME]` table.
pub(super) fn read_value(name: &str, mut section: Section<'_>) -> Result<Value, ScenarioError> {
    let kind = one_of(&mut section, "kind", "kind of value", &KINDS)?;
    let kind = match kind {
        Some("user") => ValueKind::User { start: section.number("start", 0..=u64::MAX, 0)? },
        Some("counter") => counter(&mut section)?,
        Some("random") => random(&mut section)?,
        Some("random-string") => random_string(&mut section)?,
        Some("date") => date(&mut section)?,
        Some("choice") => ValueKind::Choice { items: items(&mut section)? },
        Some(_) => {
            ValueKind::Cycle { items: items(&mut section)?, step: section.number("step", 1..=1_000_000, 1)? }
        }
        None => {
            let kinds = "one of user, counter, random, random-string, choice, cycle, date";
            return Err(section.missing("kind", kinds));
        }
    };
    let each = match one_of(&mut section, "each", "setting for how often a value is drawn", &EACH)? {
        Some("user") => Each::User,
        _ => Each::Request,
    };
    let width = section.number("width", 0..=64, 0)? as usize;
    let check = match one_of(&mut section, "check", "check digit", &CHECKS)? {
        Some(_) => CheckDigit::Verhoeff,
        None => CheckDigit::None,
    };
    section.finish()?;
    Ok(Value { name: name.into(), kind, each, width, check })
}

/// Reads the table of a generated body: `{ size = .. }` or `{ sizes = [..] }`.
pub(super) fn read_sizes(source: SourceText<'_>, body: Field<'_>) -> Result<Sizes, ScenarioError> {
    let mut section = Section::under(source, "body".into(), body)?;
    let fields = match (section.field("size"), section.array("sizes")?) {
        (Some(field), None) => vec![field],
        (None, Some(fields)) => fields,
        (Some(field), Some(_)) => return Err(wrong(source, field, "left out if there are `sizes`")),
        (None, None) => {
            return Err(
                section.missing("size", "a number of bytes, or `sizes`, a list from which one is drawn")
            );
        }
    };
    let sizes = fields.into_iter().map(|field| read_size(source, field)).collect::<Result<Vec<_>, _>>()?;
    let sizes = Sizes::new(sizes).ok_or_else(|| section.missing("sizes", "at least one size"))?;
    section.finish()?;
    Ok(sizes)
}

fn read_size(source: SourceText<'_>, field: Field<'_>) -> Result<u64, ScenarioError> {
    match field.value {
        DeValue::String(text) => parse_size(text).ok_or_else(|| wrong(source, field, SIZE)),
        DeValue::Integer(_) => number_of(source, field, 0..=SIZE_MAX),
        _ => Err(wrong(source, field, SIZE)),
    }
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

/// Dates relative to today in the time zone of this host.
fn date(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    let min = section.number("min", 0..=DAYS_MAX, 0)?;
    let max = section.number("max", min..=DAYS_MAX, min)?;
    let today = jiff::Zoned::now().date();
    let day = |ahead| today.saturating_add(jiff::SignedDuration::from_hours(24 * ahead)).to_string();
    Ok(ValueKind::Choice { items: (min as i64..=max as i64).map(day).collect() })
}

fn items(section: &mut Section<'_>) -> Result<Vec<String>, ScenarioError> {
    let source = section.source;
    let Some(fields) = section.array("items")?.filter(|fields| !fields.is_empty()) else {
        return Err(section.missing("items", "a list of at least one text"));
    };
    let item = |field: Field<'_>| {
        let text = text_of(source, field)?;
        if text.chars().any(char::is_control) {
            return Err(wrong(source, field, "texts without control characters"));
        }
        Ok(text.to_owned())
    };
    fields.into_iter().map(item).collect()
}

/// Reads a text that must be one of `words`.
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
