//! The `keep` tables of a scenario file: what users capture from responses.

use super::definition::{Capture, CaptureFrom};
use super::error::{Problem, ScenarioError};
use super::section::{Field, Section, SourceText, text_of, wrong};
use super::single::is_token;

const FORMS: &str = "`json:FIELD` (`json:booking.id` for a nested field, `json:found.0` for the first of a list) or `header:NAME`";

/// The lists that the requests of a scenario capture values into.
#[derive(Debug, Default)]
pub(super) struct CaptureLists {
    names: Vec<String>,
    /// Whether all values of a list are paths, so that a request's path may start with one.
    paths: Vec<bool>,
}

impl CaptureLists {
    /// Adds the list that a request captures into, if it does.
    pub(super) fn add(&mut self, source: SourceText<'_>, request: Field<'_>) -> Result<(), ScenarioError> {
        let mut section = Section::under(source, "[[request]]".into(), request)?;
        let Some((name, from)) = read(source, &mut section)? else { return Ok(()) };
        let holds_paths = from == CaptureFrom::Location;
        match self.names.iter().position(|known| known == name) {
            Some(list) => self.paths.iter_mut().skip(list).take(1).for_each(|paths| *paths &= holds_paths),
            None => {
                self.names.push(name.into());
                self.paths.push(holds_paths);
            }
        }
        Ok(())
    }

    /// Reads what a request captures. Its list must have been added before.
    pub(super) fn capture<'a>(
        &self,
        source: SourceText<'a>,
        section: &mut Section<'a>,
    ) -> Result<Option<Capture>, ScenarioError> {
        let read = read(source, section)?;
        Ok(read.and_then(|(name, from)| {
            let list = self.names.iter().position(|known| known == name)?;
            Some(Capture { list, from })
        }))
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Whether all values of a list are paths.
    pub(super) fn holds_paths(&self, list: usize) -> bool {
        self.paths.get(list).copied().unwrap_or(false)
    }

    /// The error for a slot that takes from a list that no request captures into.
    pub(super) fn unknown(&self, name: String) -> Problem {
        Problem::UnknownName { what: "list of kept values", name, expected: self.names.clone() }
    }
}

fn read<'a>(
    source: SourceText<'a>,
    request: &mut Section<'a>,
) -> Result<Option<(&'a str, CaptureFrom)>, ScenarioError> {
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
        Some(field) => parse_from(text_of(source, field)?).ok_or_else(|| wrong(source, field, FORMS))?,
        None => return Err(section.missing("from", FORMS)),
    };
    section.finish()?;
    Ok(Some((name.0, from)))
}

fn parse_from(text: &str) -> Option<CaptureFrom> {
    match text.split_once(':')? {
        ("json", path) if path.split('.').all(|name| !name.is_empty()) => {
            Some(CaptureFrom::Json(path.split('.').map(Into::into).collect()))
        }
        ("header", name) if name.eq_ignore_ascii_case("location") => Some(CaptureFrom::Location),
        ("header", name) if is_token(name) => Some(CaptureFrom::Header(name.into())),
        _ => None,
    }
}
