//! Why no agent could be started through a command, for the person who gave it.

use crate::endpoint::Endpoint;
use crate::protocol::ProtocolError;

/// Reasons why an agent could not be started. Whoever shows one says which flag named it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command could not be run.
    #[error("cannot run `{program}`: {source}")]
    NotRun {
        /// Its program.
        program: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The command ended instead of running one.
    #[error("{endpoint} ended{}{}{}", status(*code), said(stderr), hint(*code))]
    Ended {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// Its exit code, if it has one.
        code: Option<i32>,
        /// The last lines on its stderr.
        stderr: String,
    },
    /// What came from it is not what an agent says.
    #[error("{endpoint}: {source}{}", said(stderr))]
    Protocol {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// What is wrong with it.
        source: ProtocolError,
        /// The last lines on its stderr.
        stderr: String,
    },
    /// More came from it than an agent may say.
    #[error(
        "{endpoint} sent more than an agent may before it was ready; see that what runs there is nstar {}, and nothing else writes \
         to its output{}",
        env!("CARGO_PKG_VERSION"),
        said(stderr)
    )]
    Flooded {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// The last lines on its stderr.
        stderr: String,
    },
    /// It did not answer in time.
    #[error("{endpoint} did not answer within {limit_s} s{}", said(stderr))]
    Silent {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// How long nstar waited, seconds.
        limit_s: u64,
        /// The last lines on its stderr.
        stderr: String,
    },
    /// The stream broke.
    #[error("the stream to {endpoint} broke: {reason}")]
    Disconnected {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// Why.
        reason: String,
    },
    /// ssh did not reach the host.
    #[error("{endpoint} cannot be reached{}", said(stderr))]
    NotReached {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// The last lines that ssh printed.
        stderr: String,
    },
    /// The host cannot run this program.
    #[error(
        "{endpoint} is {theirs}, and this nstar is built for {ours}; put nstar {} for {theirs} on its PATH",
        env!("CARGO_PKG_VERSION")
    )]
    OtherArchitecture {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// What its kernel calls it.
        theirs: String,
        /// What ours is called.
        ours: String,
    },
    /// The program could not be copied there.
    #[error(
        "nstar could not be copied to {endpoint}{}; TMPDIR there names another folder (with --keep-copy XDG_CACHE_HOME), and with nstar {} on \
         its PATH nothing is copied",
        said(stderr),
        env!("CARGO_PKG_VERSION")
    )]
    NotCopied {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
        /// The last lines on stderr there.
        stderr: String,
    },
    /// The copy is not what was sent.
    #[error("the copy of nstar at {endpoint} has another SHA-256 than what was sent; it was not run")]
    OtherHash {
        /// Where it was to run.
        endpoint: Box<Endpoint>,
    },
    /// Somebody asked to stop meanwhile.
    #[error("interrupted while agents were started")]
    Interrupted,
    /// Something that is needed here failed.
    #[error("{what}: {source}")]
    Here {
        /// What failed.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
}

fn status(code: Option<i32>) -> String {
    code.map_or_else(|| " by a signal".to_owned(), |code| format!(" with exit code {code}"))
}

/// What shells mean by an exit code.
fn hint(code: Option<i32>) -> &'static str {
    match code {
        Some(126) => {
            " (where the folder of the copy there is mounted noexec, TMPDIR, or with --keep-copy XDG_CACHE_HOME, has to name another)"
        }
        Some(127) => " (a program was not found there, or one of its libraries)",
        _ => "",
    }
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}
