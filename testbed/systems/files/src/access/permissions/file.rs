//! The file of rules, in TOML.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use accounts::Role;
use serde::Deserialize;
use toml::Spanned;

use super::{Group, Permissions, Rights, Rule};

/// Why rules cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PermissionsError {
    /// The file cannot be read.
    #[error("the rules in {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is invalid.
    #[error("{}line {line}: {reason}", .path.as_ref().map(|path| format!("{}, ", path.display())).unwrap_or_default())]
    Wrong {
        /// The file, if the rules come from one.
        path: Option<PathBuf>,
        /// The line, from 1.
        line: usize,
        /// What is wrong there and what was expected.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    rule: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    path: Spanned<String>,
    users: Option<Spanned<Vec<String>>>,
    roles: Option<Spanned<Vec<Role>>>,
    may: Vec<May>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum May {
    Read,
    Write,
}

impl Permissions {
    /// Reads rules from a file.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid. The error names the line and the reason.
    pub fn load(path: &Path) -> Result<Self, PermissionsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| PermissionsError::Unreadable { path: path.to_owned(), source })?;
        text.parse().map_err(|error| match error {
            PermissionsError::Wrong { line, reason, .. } => {
                PermissionsError::Wrong { path: Some(path.to_owned()), line, reason }
            }
            other => other,
        })
    }
}

impl FromStr for Permissions {
    type Err = PermissionsError;

    fn from_str(text: &str) -> Result<Self, PermissionsError> {
        let wrong = |at: usize, reason: &str| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            // Messages of the TOML parser may have several lines.
            PermissionsError::Wrong { path: None, line, reason: reason.replace('\n', "; ") }
        };
        let file: RulesFile = toml::from_str(text).map_err(|error| {
            wrong(error.span().map_or(0, |span| span.start), &in_plain_words(error.message()))
        })?;
        let mut groups: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        for rule in file.rule {
            let at = rule.path.span().start;
            let path = path(rule.path.get_ref()).map_err(|reason| wrong(at, reason))?;
            if let Some(at) = rule.empty_list() {
                return Err(wrong(at, "an empty list means nobody; leave it out to mean everybody"));
            }
            groups.entry(path.to_owned()).or_default().push(rule.read());
        }
        let mut groups: Vec<_> = groups.into_iter().map(|(path, rules)| Group { path, rules }).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(depth(&group.path)));
        Ok(Self { groups })
    }
}

impl RuleEntry {
    /// The position of an empty list.
    fn empty_list(&self) -> Option<usize> {
        let users = self.users.as_ref().filter(|users| users.get_ref().is_empty()).map(Spanned::span);
        let roles = self.roles.as_ref().filter(|roles| roles.get_ref().is_empty()).map(Spanned::span);
        users.or(roles).map(|span| span.start)
    }

    fn read(self) -> Rule {
        let may = Rights {
            read: self.may.iter().any(|may| matches!(may, May::Read)),
            write: self.may.iter().any(|may| matches!(may, May::Write)),
        };
        let users = self.users.map(Spanned::into_inner).unwrap_or_default();
        Rule { users, roles: self.roles.map(Spanned::into_inner).unwrap_or_default(), may }
    }
}

/// The message of the TOML parser, in the words of the file's author.
fn in_plain_words(message: &str) -> String {
    let plain = [
        ("unknown variant", "unknown word"),
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
    ];
    plain.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours))
}

/// The path without slashes at either end.
fn path(written: &str) -> Result<&str, &'static str> {
    let path = written.strip_prefix('/').ok_or("a path starts with a slash, such as /reports")?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if !path.is_empty() && path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err("a path must not contain empty names, . or ..");
    }
    if path.starts_with("files/") {
        return Err("a path starts below /files/: /reports, not /files/reports");
    }
    Ok(path)
}

fn depth(path: &str) -> usize {
    if path.is_empty() { 0 } else { path.split('/').count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let good = "[[rule]]\npath = \"/a\"\nmay = [\"read\"]\n";
        for (text, line, reason) in [
            ("[[rule]]\nmay = []\n", 1, "path"),
            ("[[rule]]\npath = \"/a\"\n", 1, "may"),
            ("[[rule]]\npath = \"a\"\nmay = []\n", 2, "slash"),
            ("[[rule]]\npath = \"/a//b\"\nmay = []\n", 2, "empty"),
            ("[[rule]]\npath = \"/../b\"\nmay = []\n", 2, ".."),
            ("[[rule]]\npath = \"/files/b\"\nmay = []\n", 2, "below"),
            (
                "[[rule]]\npath = \"/a\"\nmay = [\"raed\"]\n",
                3,
                "unknown word `raed`, expected `read` or `write`",
            ),
            ("[[rule]]\npath = \"/a\"\nmay = []\nroles = [\"boss\"]\n", 4, "boss"),
            ("[[rule]]\npath = \"/a\"\nmay = []\nusers = []\n", 4, "nobody"),
            ("[[rule]]\npath = \"/a\"\nmay = []\nuser = [\"ann\"]\n", 4, "user"),
            ("[[rules]]\n", 1, "rules"),
            ("[[rule]\n", 1, ""),
        ] {
            let error = format!("{good}{text}").parse::<Permissions>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {}: ", 3 + line)), "{text:?}: {error}");
            assert!(error.contains(reason) && !error.contains('\n'), "{text:?}: {error}");
        }
        assert!(good.parse::<Permissions>().is_ok() && "".parse::<Permissions>().is_ok());
    }

    #[test]
    fn the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        assert!(Permissions::load(&path).unwrap_err().to_string().contains("rules.toml"));
        fs::write(&path, "x").unwrap();
        assert!(Permissions::load(&path).unwrap_err().to_string().contains("rules.toml, line 1: "));
    }
}
