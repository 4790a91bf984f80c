//! What is wrong with a scenario: file, line, what was expected, the nearest name.

use std::path::{Path, PathBuf};

/// An error in a scenario file, for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {problem}", file.display())]
pub struct ScenarioError {
    /// The scenario file.
    pub file: PathBuf,
    /// Line in it, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with one place of a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// A key that nothing reads.
    #[error("unknown key `{key}` in {section}{}; expected one of {}", nearest(.key, .expected), list(.expected))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table it stands in.
        section: String,
        /// The keys of that table.
        expected: Vec<String>,
    },
    /// A name out of a fixed set, or of another part of the file, that is none of them.
    #[error("unknown {what} `{name}`{}; {}", nearest(.name, .expected), those_there_are(.expected))]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        expected: Vec<String>,
    },
    /// A key that must be there and is not.
    #[error("{section} needs `{key}`: {expected}")]
    Missing {
        /// The key.
        key: String,
        /// The table it belongs in.
        section: String,
        /// What it holds.
        expected: &'static str,
    },
    /// A value of the wrong type or outside its range.
    #[error("`{key}` must be {expected}")]
    Value {
        /// The key.
        key: String,
        /// What it may be.
        expected: String,
    },
    /// `${` that is never closed.
    #[error("`{key}` holds `${{` without a `}}`; write `$${{` for the characters themselves")]
    UnclosedSlot {
        /// The key.
        key: String,
    },
    /// A file named by the scenario that cannot be read.
    #[error("`{key}` names {}, which cannot be read: {reason}", path.display())]
    Unreadable {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
}

/// An error in the flags that describe a single request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// A method that is not a token.
    #[error("`{0}` is not a method: expected one such as GET or POST")]
    Method(String),
    /// A header line without a name and a colon. The line is not shown, it may hold a secret.
    #[error("a header must be `Name: value`")]
    Header,
    /// A header value with a control character. The value is not shown, it may be a secret.
    #[error("the value of header `{0}` holds a control character")]
    HeaderValue(String),
}

/// Where byte `offset` of `text` is: a problem there.
pub(super) fn at(file: &Path, text: &str, offset: usize, problem: Problem) -> ScenarioError {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let line = 1 + before.iter().filter(|b| **b == b'\n').count();
    ScenarioError { file: file.into(), line, problem }
}

fn those_there_are(names: &[String]) -> String {
    if names.is_empty() { "the file defines none".into() } else { format!("expected one of {}", list(names)) }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// `, did you mean ...?` where a name is near enough to have been meant.
fn nearest(name: &str, names: &[String]) -> String {
    let near = names.iter().map(|other| (strsim::damerau_levenshtein(name, other), other)).min();
    match near {
        Some((distance, other)) if distance <= 1 + name.len() / 3 => format!(", did you mean `{other}`?"),
        _ => String::new(),
    }
}
