//! Errors in scenarios: file, line, what was expected, and the nearest name.

use std::path::{Path, PathBuf};

/// An error in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), at_line(*.line))]
pub struct ScenarioError {
    /// The scenario file.
    pub file: PathBuf,
    /// Line number, from 1; 0 where it is no line of a file that is wrong, but a flag.
    pub line: usize,
    /// What is wrong in that line.
    pub problem: Problem,
}

/// What is wrong in one place of a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// A key that has no meaning.
    #[error("unknown key `{key}` in {section}{}one of {}", nearest(.key, .expected), list(.expected))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table that contains it.
        section: String,
        /// The keys that the table may have.
        expected: Vec<String>,
    },
    /// A key of the file as a whole that stands in one of its tables.
    #[error("unknown key `{key}` in {section}: it belongs at the top of the file, above the first `[`")]
    Misplaced {
        /// The key.
        key: String,
        /// The table that contains it.
        section: String,
    },
    /// A name outside a fixed set, or one that the file does not define.
    #[error("unknown {what} `{name}`{}", known_names(.name, .expected))]
    UnknownName {
        /// What the name stands for.
        what: &'static str,
        /// The unknown name.
        name: String,
        /// The known names.
        expected: Vec<String>,
    },
    /// A required key is missing.
    #[error("{section} needs `{key}`: {expected}")]
    Missing {
        /// The key.
        key: String,
        /// The table that needs it.
        section: String,
        /// What its value means.
        expected: &'static str,
    },
    /// A required key is missing, and one of nearly the same name is there.
    #[error("{section} needs `{key}`: {expected}; it has `{found}`, did you mean `{key}`?")]
    Misspelt {
        /// The key.
        key: String,
        /// The key that is there.
        found: String,
        /// The table that needs it.
        section: String,
        /// What its value means.
        expected: &'static str,
    },
    /// A value of the wrong type or outside its range.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key.
        key: String,
        /// What the value may be.
        expected: String,
    },
    /// A `${` that is never closed.
    #[error("`{key}` contains `${{` without a `}}`; write `$${{` for a literal `${{`")]
    UnclosedSlot {
        /// The key.
        key: String,
    },
    /// A variable that the scenario takes a value from is not set.
    #[error("the environment has no variable `{name}` with a text: set it, as in `export {name}=..`")]
    Variable {
        /// Its name.
        name: String,
    },
    /// A file that the scenario names cannot be read.
    #[error("`{key}` names {}, which cannot be read: {reason}", path.display())]
    Unreadable {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
}

impl Problem {
    /// Adds names that are known where the text is used. Other problems stay as they are.
    #[must_use]
    pub fn expecting_also(mut self, names: impl IntoIterator<Item = String>) -> Self {
        if let Problem::UnknownName { expected, .. } = &mut self {
            expected.extend(names);
        }
        self
    }
}

/// An error in the flags that describe a single request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// A method that is not a token.
    #[error("`{0}` is not a method: expected one such as GET or POST")]
    Method(String),
    /// A header line without a name and a colon. The line is not shown because it may contain a secret.
    #[error("a header must be `Name: value`")]
    Header,
    /// A header value with a control character. The value is not shown because it may be a secret.
    #[error("the value of header `{0}` contains a control character")]
    HeaderValue(String),
}

/// Locates a problem at byte `offset` of `text`.
pub(super) fn at(file: &Path, text: &str, offset: usize, problem: Problem) -> ScenarioError {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let line = 1 + before.iter().filter(|b| **b == b'\n').count();
    ScenarioError { file: file.into(), line, problem }
}

fn at_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!(":{line}") }
}

fn known_names(name: &str, names: &[String]) -> String {
    match names {
        [] => "; the file defines none".into(),
        names => format!("{}one of {}", nearest(name, names), list(names)),
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns `, did you mean ...? Expected ` if a known name is similar enough, otherwise `; expected `.
fn nearest(name: &str, names: &[String]) -> String {
    match most_similar(name, names.iter().map(String::as_str), 1 + name.len() / 3) {
        Some(other) => format!(", did you mean `{other}`? Expected "),
        None => "; expected ".into(),
    }
}

/// The name that is most like this one, if one differs by no more than so many letters.
pub(super) fn most_similar<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
    letters: usize,
) -> Option<&'a str> {
    let near = names.map(|other| (strsim::damerau_levenshtein(name, other), other)).min();
    near.filter(|(distance, _)| *distance <= letters).map(|(_, other)| other)
}
