//! What a user keeps of an answer, to use it up in a later request.

use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, Source, text_of, wrong};
use super::single::is_token;

const FORMS: &str = "`json:FIELD` (`json:booking.id` for a field within a field, `json:found.0` for the first of a list) or `header:NAME`";

/// What is kept of the answers to a request that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Which of the scenario's lists it goes to.
    pub(crate) list: usize,
    /// Where it is found.
    pub(crate) from: From,
}

/// Where a value is found in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum From {
    /// The text or number under these names, one within the other; of a list, the number from 0 of the one that is meant.
    Json(Vec<String>),
    /// The path of the `Location` header, with its query.
    Location,
    /// The value of another header.
    Header(String),
}

/// The lists that the requests of a scenario keep values in; those that hold paths may begin one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    names: Vec<String>,
    paths: Vec<bool>,
}

impl Lists {
    /// Takes note of what a request's `keep` says, if it has one.
    pub(super) fn add(&mut self, source: Source<'_>, request: Field<'_>) -> Result<(), ScenarioError> {
        let mut section = Section::under(source, "[[request]]".into(), request)?;
        let Some((name, from)) = read(source, &mut section)? else { return Ok(()) };
        let holds_paths = from == From::Location;
        match self.names.iter().position(|known| known == name) {
            Some(list) => self.paths.iter_mut().skip(list).take(1).for_each(|paths| *paths &= holds_paths),
            None => {
                self.names.push(name.into());
                self.paths.push(holds_paths);
            }
        }
        Ok(())
    }

    /// What a request keeps; its list is known by now.
    pub(super) fn keep<'a>(
        &self,
        source: Source<'a>,
        section: &mut Section<'a>,
    ) -> Result<Option<Keep>, ScenarioError> {
        let keep = read(source, section)?;
        Ok(keep.and_then(|(name, from)| {
            let list = self.names.iter().position(|known| known == name)?;
            Some(Keep { list, from })
        }))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether all that a list holds are paths.
    pub(super) fn holds_paths(&self, list: usize) -> bool {
        self.paths.get(list).copied().unwrap_or(false)
    }
}

fn read<'a>(source: Source<'a>, request: &mut Section<'a>) -> Result<Option<(&'a str, From)>, ScenarioError> {
    let Some(field) = request.field("keep") else { return Ok(None) };
    let mut section = Section::under(source, "keep".into(), field)?;
    let name = match section.field("name") {
        Some(field) => (text_of(source, field)?, field),
        None => return Err(section.missing("name", "the name of a list of kept values")),
    };
    if name.0.is_empty() || !name.0.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        return Err(wrong(source, name.1, "a name of letters, digits, `-` and `_`"));
    }
    let from = match section.field("from") {
        Some(field) => place(text_of(source, field)?).ok_or_else(|| wrong(source, field, FORMS))?,
        None => return Err(section.missing("from", FORMS)),
    };
    section.finish()?;
    Ok(Some((name.0, from)))
}

fn place(text: &str) -> Option<From> {
    match text.split_once(':')? {
        ("json", path) if path.split('.').all(|name| !name.is_empty()) => {
            Some(From::Json(path.split('.').map(Into::into).collect()))
        }
        ("header", name) if name.eq_ignore_ascii_case("location") => Some(From::Location),
        ("header", name) if is_token(name) => Some(From::Header(name.into())),
        _ => None,
    }
}

/// A slot that takes what no request keeps.
pub(super) fn unknown(name: String, lists: &Lists) -> Problem {
    Problem::UnknownName { what: "list of kept values", name, expected: lists.names.to_vec() }
}
