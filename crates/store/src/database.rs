//! Which database, as people name it.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Which database to use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Database {
    /// An SQLite file; made when it is not there, in a folder that is.
    Sqlite(PathBuf),
}

/// Text that names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatabase {
    /// Nothing, or nothing after the scheme.
    #[error("a database is needed: write sqlite:PATH, or just a path")]
    Empty,
    /// A URL of a kind that is not known.
    #[error("{scheme}: is no kind of database known here; write sqlite:PATH, or just a path")]
    Scheme {
        /// What stands before `://`.
        scheme: String,
    },
}

impl Database {
    /// The file, where the database is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
        }
    }

    /// What names it again, whole: a secret where it holds a password.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
        }
    }
}

/// Without a password, should there be one.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for Database {
    type Err = InvalidDatabase;

    fn from_str(text: &str) -> Result<Self, InvalidDatabase> {
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        match path.split_once("://") {
            Some((scheme, _)) => Err(InvalidDatabase::Scheme { scheme: scheme.to_owned() }),
            None if path.is_empty() => Err(InvalidDatabase::Empty),
            None => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl From<&PathBuf> for Database {
    fn from(path: &PathBuf) -> Self {
        Self::Sqlite(path.clone())
    }
}

impl From<PathBuf> for Database {
    fn from(path: PathBuf) -> Self {
        Self::Sqlite(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_sqlite_file_with_or_without_its_scheme() {
        let file = Database::Sqlite("a/b.db".into());
        assert_eq!("a/b.db".parse(), Ok(file.clone()));
        assert_eq!("sqlite:a/b.db".parse(), Ok(file.clone()));
        assert_eq!(file.to_string(), "a/b.db");
    }

    #[test]
    fn nonsense_is_answered_with_what_may_be_written() {
        for text in ["", "sqlite:", "oracle://x/y"] {
            let error = text.parse::<Database>().unwrap_err();
            assert!(error.to_string().contains("sqlite:PATH"), "{error}");
        }
    }
}
