//! Why a case could not be run.

use std::io;

/// Why a case could not be run. None of these says anything about nstar's verdict.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// A program of the stack is not installed.
    #[error("{program} is not installed; on Debian, as root: apt-get install {package}")]
    NotInstalled {
        /// The missing program.
        program: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },
    /// The case needs privileges that this process lacks.
    #[error("{0} needs root")]
    NeedsRoot(&'static str),
    /// The case asks a stack for something that it cannot do.
    #[error("{0}")]
    Case(String),
    /// The command line asks for something that there is not.
    #[error("{0}")]
    Usage(String),
    /// The suite was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// A program failed.
    #[error("{program} failed: {said}")]
    Failed {
        /// The program.
        program: String,
        /// What it said last, or how it ended.
        said: String,
    },
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Trouble {
    /// An error of the system, with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }

    /// Whether this machine lacks something that the case needs; any other trouble is a mistake of the suite.
    pub fn is_lack(&self) -> bool {
        matches!(self, Self::NotInstalled { .. } | Self::NeedsRoot(_))
    }
}
