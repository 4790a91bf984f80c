//! How a command ends: the exit codes are a contract.

use std::{
    env,
    ffi::OsStr,
    fmt::Display,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

/// How a finished command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The work is done, and the answer can be relied on.
    Done,
    /// The run failed, or no request completed.
    Failed,
    /// The command line, or a file it names, is wrong.
    Usage,
    /// A `--gate` was breached, or `--fail-on-change` found what became worse.
    GateBreached,
    /// The answer cannot be relied on: generator-limited, not steady, never bounded; or a gate on a change is not decided.
    Inconclusive,
    /// Stopped by this signal; what was measured is reported.
    Interrupted(i32),
}

impl Exit {
    /// The worse of two: an interruption, then failure, then a breached gate, then no answer.
    #[must_use]
    pub fn or_worse(self, other: Exit) -> Exit {
        let rank = |exit| match exit {
            Exit::Interrupted(_) => 4,
            Exit::Failed | Exit::Usage => 3,
            Exit::GateBreached => 2,
            Exit::Inconclusive => 1,
            Exit::Done => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// The exit status that stands for it.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::GateBreached => 3,
            Exit::Inconclusive => 4,
            // 128 + signal number, as shells have it: 130 for SIGINT, 143 for SIGTERM.
            Exit::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}

/// Ends the program: prints why a command failed, and returns the exit code that goes with the result.
pub fn end(result: Result<Exit, Failure>) -> ExitCode {
    result
        .unwrap_or_else(|failure| {
            warn(&failure);
            failure.exit()
        })
        .into()
}

/// Prints a message for the person at the terminal on stderr, after the name of the running program.
pub fn warn(message: impl Display) {
    let called = env::args_os().next();
    let name = called.as_deref().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    say(&format!("{}: {message}", name.unwrap_or("nstar")));
}

/// Prints a line on stderr, and nothing that steers a terminal.
pub fn say(line: &str) {
    // A terminal that has gone away loses the line, and nothing else.
    let _ = writeln!(io::stderr(), "{}", report::printable(line));
}

/// Why a command could not do its work, for the person who ran it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The caller can mend it.
    #[error("{0}")]
    Usage(String),
    /// Something went wrong: in the environment, at the server, or here.
    #[error("{0}")]
    Failed(String),
    /// Stopped by this signal before it was done, and what that means.
    #[error("{1}")]
    Interrupted(i32, &'static str),
}

impl Failure {
    /// Wraps an error that the caller can mend by changing what was asked.
    pub fn usage(error: impl Display) -> Self {
        Failure::Usage(error.to_string())
    }

    /// Wraps an error that happened while doing what was asked.
    pub fn failed(error: impl Display) -> Self {
        Failure::Failed(error.to_string())
    }

    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) => Exit::Usage,
            Failure::Failed(_) => Exit::Failed,
            Failure::Interrupted(signal, _) => Exit::Interrupted(*signal),
        }
    }
}
