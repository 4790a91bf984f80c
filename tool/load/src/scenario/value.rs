//! The kinds of values that differ per user or per request, and the `[values]` tables that define them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, text_of, wrong};

const KINDS: [&str; 9] =
    ["user", "counter", "sequence", "random", "random-string", "choice", "cycle", "date", "env"];
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

/// A named value, which templates contain as `${name}`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Its name in templates.
    pub name: String,
    /// How it is drawn.
    pub kind: ValueKind,
    /// How often it is drawn.
    pub each: Each,
    /// Least number of digits; shorter numbers are padded with zeros.
    pub width: usize,
    /// Check digit to append to a number.
    pub check: CheckDigit,
    /// Where what it is drawn from was found. Generators elsewhere need not know.
    #[serde(skip)]
    pub origin: Origin,
}

impl fmt::Debug for Value {
    /// Leaves out what is drawn, which may be a secret from the environment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where what a value is drawn from was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// In the scenario.
    #[default]
    Scenario,
    /// When it was read: in the environment, which holds secrets, in the calendar, or by a program that was asked.
    Elsewhere,
}

/// The check digit appended to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CheckDigit {
    /// No check digit.
    #[default]
    None,
    /// The digit of Verhoeff's algorithm, which Aadhaar numbers end in.
    Verhoeff,
}

/// How a value is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueKind {
    /// The number of the user, counted from `start`.
    User {
        /// Number of the first user.
        start: u64,
    },
    /// `start + user * per_user + (k mod wrap) * step`, where k counts the earlier draws of this user.
    Counter {
        /// First value of the first user.
        start: u64,
        /// Difference between two successive draws of a user.
        step: u64,
        /// Difference between the first values of two successive users.
        per_user: u64,
        /// Number of draws after which a user starts again; 0 for never.
        wrap: u64,
    },
    /// `start + k mod wrap`, where k counts the earlier draws of all users that send to the same server: none draws what
    /// another has drawn, until all have been drawn.
    Sequence {
        /// First value.
        start: u64,
        /// Number of draws after which it starts again; 0 for never.
        wrap: u64,
    },
    /// A random whole number from `min` to `max`, both included.
    Random {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A random string of `length` characters from `alphabet`.
    RandomString {
        /// Number of characters.
        length: usize,
        /// ASCII characters to draw from.
        alphabet: Vec<u8>,
    },
    /// A random item.
    Choice {
        /// Items to draw from.
        items: Vec<String>,
    },
    /// The items in turn. User u starts at item u, so that users spread over the list.
    Cycle {
        /// Items to go through.
        items: Vec<String>,
        /// Number of items from one draw of a user to the next. If it equals the number of servers, all items that a
        /// user draws lie at the same place modulo that number: its own server's items.
        step: u64,
    },
}

/// How often a value is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Each {
    /// For each request that contains it.
    #[default]
    Request,
    /// Once per user: the same in all its requests.
    User,
}

/// Longest number with leading zeros, digits.
const WIDTH_MAX: usize = 64;

/// Longest random text, characters.
const LENGTH_MAX: usize = 4_096;

impl Value {
    /// Whether it is one that a file could hold.
    pub(crate) fn is_sound(&self) -> bool {
        let kind = match &self.kind {
            ValueKind::Random { min, max } => min <= max,
            ValueKind::RandomString { length, alphabet } => *length <= LENGTH_MAX && !alphabet.is_empty(),
            ValueKind::Choice { items } | ValueKind::Cycle { items, .. } => !items.is_empty(),
            ValueKind::User { .. } | ValueKind::Counter { .. } | ValueKind::Sequence { .. } => true,
        };
        kind && self.width <= WIDTH_MAX
    }
}

/// Reads one `[values.NAME]` table.
pub(super) fn read_value(name: &str, mut section: Section<'_>) -> Result<Value, ScenarioError> {
    let kind = one_of(&mut section, "kind", "kind of value", &KINDS)?;
    let origin = match kind {
        Some("date" | "env") => Origin::Elsewhere,
        _ => Origin::Scenario,
    };
    let kind = match kind {
        Some("user") => ValueKind::User { start: section.number("start", 0..=u64::MAX, 0)? },
        Some("counter") => counter(&mut section)?,
        Some("sequence") => ValueKind::Sequence {
            start: section.number("start", 0..=u64::MAX, 0)?,
            wrap: section.number("wrap", 0..=u64::MAX, 0)?,
        },
        Some("random") => random(&mut section)?,
        Some("random-string") => random_string(&mut section)?,
        Some("date") => date(&mut section)?,
        Some("choice") => ValueKind::Choice { items: items(&mut section)? },
        Some("env") => variable(&mut section)?,
        Some(_) => {
            ValueKind::Cycle { items: items(&mut section)?, step: section.number("step", 1..=1_000_000, 1)? }
        }
        None => {
            let kinds = "one of user, counter, sequence, random, random-string, choice, cycle, date, env";
            return Err(section.missing("kind", kinds));
        }
    };
    let each = match one_of(&mut section, "each", "setting for how often a value is drawn", &EACH)? {
        Some("user") => Each::User,
        _ => Each::Request,
    };
    let width = section.number("width", 0..=WIDTH_MAX as u64, 0)? as usize;
    let check = match one_of(&mut section, "check", "check digit", &CHECKS)? {
        Some(_) => CheckDigit::Verhoeff,
        None => CheckDigit::None,
    };
    section.finish()?;
    Ok(Value { name: name.into(), kind, each, width, check, origin })
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
    let length = section.number("length", 1..=LENGTH_MAX as u64, 16)? as usize;
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

/// A variable of the environment: the same text at every draw.
fn variable(section: &mut Section<'_>) -> Result<ValueKind, ScenarioError> {
    let source = section.source;
    let Some(field) = section.field("variable") else {
        return Err(section.missing("variable", "the name of a variable of the environment"));
    };
    let name = text_of(source, field)?;
    match std::env::var(name) {
        Ok(text) if !text.chars().any(char::is_control) => {
            Ok(ValueKind::Cycle { items: vec![text], step: 1 })
        }
        Ok(_) => Err(wrong(source, field, "a variable of the environment without control characters")),
        Err(_) => Err(source.error(field.offset, Problem::Variable { name: name.into() })),
    }
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

/// A value that is drawn for each request, with nothing added.
#[cfg(test)]
pub(crate) fn value(kind: ValueKind) -> Value {
    Value {
        name: "v".into(),
        kind,
        each: Each::Request,
        width: 0,
        check: CheckDigit::None,
        origin: Origin::Scenario,
    }
}
