//! A TOML table, read key by key: keys that nobody asked for are errors.
//!
//! Scenarios are read with it, and experiments.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, ScenarioError, at, most_similar};

/// The text of the scenario file and its path, to locate errors.
#[derive(Clone, Copy)]
pub struct SourceText<'a> {
    /// The file.
    pub path: &'a Path,
    /// What is in it.
    pub text: &'a str,
}

impl SourceText<'_> {
    /// An error at this byte of the text.
    pub fn error(&self, offset: usize, problem: Problem) -> ScenarioError {
        at(self.path, self.text, offset, problem)
    }

    /// The line of this byte of the text, from 1.
    pub fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|b| **b == b'\n').count()
    }
}

/// One table of the file.
pub struct Section<'a> {
    pub(super) source: SourceText<'a>,
    name: String,
    offset: usize,
    table: &'a DeTable<'a>,
    asked: Vec<&'static str>,
}

/// A value with its key and its position in the file.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The key; for an element of a list, that of the list.
    pub key: &'a str,
    /// Byte of the text where the value begins.
    pub offset: usize,
    /// The value.
    pub value: &'a DeValue<'a>,
}

impl<'a> Section<'a> {
    /// A table that is called `name` in messages and begins at this byte.
    pub fn new(source: SourceText<'a>, name: String, offset: usize, table: &'a DeTable<'a>) -> Self {
        Section { source, name, offset, table, asked: Vec::new() }
    }

    /// Reads `field` as a table.
    pub fn under(source: SourceText<'a>, name: String, field: Field<'a>) -> Result<Self, ScenarioError> {
        match field.value {
            DeValue::Table(table) => Ok(Section::new(source, name, field.offset, table)),
            _ => Err(wrong(source, field, "a table")),
        }
    }

    /// Returns the value of `key`, if present.
    pub fn field(&mut self, key: &'static str) -> Option<Field<'a>> {
        // Some are asked for twice; a message lists each once.
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref().as_ref() == key)?;
        Some(Field { key, offset: value.span().start, value: value.get_ref() })
    }

    /// Returns all keys and values, whatever their names.
    pub fn entries(&self) -> Vec<Field<'a>> {
        let field = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let key: &'a std::borrow::Cow<'a, str> = key.get_ref();
            Field { key, offset: value.span().start, value: value.get_ref() }
        };
        self.table.iter().map(field).collect()
    }

    /// The text under `key`, if present.
    pub fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, ScenarioError> {
        let source = self.source;
        self.field(key).map(|field| text_of(source, field)).transpose()
    }

    /// Returns the whole number under `key`, which must be in `range`, or `default`.
    pub fn number(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, ScenarioError> {
        let source = self.source;
        match self.field(key) {
            Some(field) => number_of(source, field, range),
            None => Ok(default),
        }
    }

    /// Returns the elements of the array under `key`, if present.
    pub fn array(&mut self, key: &'static str) -> Result<Option<Vec<Field<'a>>>, ScenarioError> {
        let source = self.source;
        self.field(key).map(|field| elements_of(source, field)).transpose()
    }

    /// An error: the table needs `key`, whose value means this. A key that nobody asked for and that is nearly the same is
    /// most likely meant.
    pub fn missing(&self, key: &str, expected: &'static str) -> ScenarioError {
        let section = self.name.clone();
        let unasked = self.table.keys().filter(|name| !self.asked.contains(&name.get_ref().as_ref()));
        let unasked: Vec<(&str, usize)> =
            unasked.map(|name| (name.get_ref().as_ref(), name.span().start)).collect();
        // Other keys may be right, and are asked for later: `time` is no `title`.
        let found = most_similar(key, unasked.iter().map(|(name, _)| *name), 1 + key.len() / 7);
        match unasked.iter().find(|(name, _)| Some(*name) == found) {
            None => self.source.error(self.offset, Problem::Missing { key: key.into(), section, expected }),
            Some((found, offset)) => {
                let found = (*found).to_owned();
                self.source.error(*offset, Problem::Misspelt { key: key.into(), found, section, expected })
            }
        }
    }

    /// Fails if the table has a key that nobody asked for.
    pub fn finish(self) -> Result<(), ScenarioError> {
        let unknown = self.table.iter().find(|(key, _)| !self.asked.contains(&key.get_ref().as_ref()));
        let Some((key, _)) = unknown else { return Ok(()) };
        let problem = Problem::UnknownKey {
            key: key.get_ref().to_string(),
            section: self.name,
            expected: self.asked.iter().map(|name| (*name).into()).collect(),
        };
        Err(self.source.error(key.span().start, problem))
    }
}

/// An error: the value must be what is expected here.
pub fn wrong(source: SourceText<'_>, field: Field<'_>, expected: impl Into<String>) -> ScenarioError {
    source.error(field.offset, Problem::Value { key: field.key.into(), expected: expected.into() })
}

/// Reads a field as a text.
pub fn text_of<'a>(source: SourceText<'a>, field: Field<'a>) -> Result<&'a str, ScenarioError> {
    match field.value {
        DeValue::String(text) => Ok(text),
        _ => Err(wrong(source, field, "a text in quotes")),
    }
}

/// Reads a field as a whole number in this range.
pub fn number_of(
    source: SourceText<'_>,
    field: Field<'_>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, ScenarioError> {
    let parsed = match field.value {
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => None,
    };
    parsed.filter(|number| range.contains(number)).ok_or_else(|| {
        let most = range.end();
        let expected = if *most == u64::MAX {
            format!("a whole number, {} or more", range.start())
        } else {
            format!("a whole number from {} to {most}", range.start())
        };
        wrong(source, field, expected)
    })
}

/// Reads a field as a list.
pub fn elements_of<'a>(source: SourceText<'a>, field: Field<'a>) -> Result<Vec<Field<'a>>, ScenarioError> {
    let DeValue::Array(array) = field.value else { return Err(wrong(source, field, "a list in brackets")) };
    let element = |value: &'a Spanned<DeValue<'a>>| Field {
        key: field.key,
        offset: value.span().start,
        value: value.get_ref(),
    };
    Ok(array.iter().map(element).collect())
}
