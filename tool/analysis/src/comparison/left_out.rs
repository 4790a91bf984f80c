//! What was asked for and not done, and what was in the way.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Words, known};

/// Something that was not measured, or not done, although it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// A variant, a workload, a variant on a workload, or a program; empty where it is all that needs a link.
    pub what: String,
    /// Why, and what to do about it.
    pub why: Words,
    /// The same as data; absent in files from before it was typed.
    #[serde(default, skip_serializing_if = "LeftOutCause::is_empty", deserialize_with = "known::or_default")]
    pub cause: LeftOutCause,
}

impl LeftOut {
    /// Something left out for a cause.
    pub fn new(what: String, cause: LeftOutCause) -> Self {
        Self { what, why: Words::default(), cause }
    }
}

/// What was in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LeftOutCause {
    /// Only root may make a network namespace and a shaped link.
    LinkNeedsRoot,
    /// A tool that makes links cannot be run.
    LinkToolFailed {
        /// The tool.
        tool: String,
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
    /// A tool that makes links failed.
    LinkRefused {
        /// What was run.
        command: String,
        /// The last line that it printed; empty where it printed nothing.
        said: String,
    },
    /// The memory of a program could not be limited.
    MemoryNotLimited {
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
    /// What a program may ask of the disk could not be limited.
    DiskNotLimited {
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
    /// A program is not installed.
    ProgramMissing {
        /// What the experiment calls it; absent for a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<String>,
        /// What was looked for.
        program: String,
    },
    /// A program could not be started.
    NotStarted {
        /// What the experiment calls it.
        process: String,
        /// What the system said.
        error: String,
    },
    /// A program ended before it was ready.
    EndedBeforeReady {
        /// What the experiment calls it.
        process: String,
        /// How.
        ending: Ending,
        /// Its last lines; empty where it printed nothing.
        said: String,
    },
    /// Something else answers where a program is to answer.
    Taken {
        /// What the experiment calls it.
        process: String,
        /// The sign that is there too early.
        sign: ReadySign,
    },
    /// A program did not get ready in time.
    NotReady {
        /// What the experiment calls it.
        process: String,
        /// How long it had, milliseconds.
        within_ms: u64,
        /// What was waited for.
        sign: ReadySign,
        /// Its last lines; empty where it printed nothing.
        said: String,
    },
    /// A program ended during the measurement.
    EndedMeanwhile {
        /// What the experiment calls it.
        process: String,
        /// How.
        ending: Ending,
        /// Its last lines; empty where it printed nothing.
        said: String,
    },
    /// A command failed.
    CommandFailed {
        /// Its program.
        program: String,
        /// How it ended.
        ending: Ending,
        /// Its last lines; empty where it printed nothing.
        said: String,
    },
    /// A command did not end in time.
    CommandSlow {
        /// Its program.
        program: String,
        /// How long it had, milliseconds.
        within_ms: u64,
        /// Its last lines; empty where it printed nothing.
        said: String,
    },
    /// A command printed something else than the JSON object that is read there.
    NotTheJson {
        /// Its program.
        program: String,
        /// What the parser said.
        error: String,
    },
    /// A command gave the scenario a list without values.
    EmptyList {
        /// Its program.
        program: String,
        /// The name of the list.
        list: String,
    },
    /// A load that prepares did not succeed.
    NotPrepared {
        /// Requests that succeeded.
        made: u64,
        /// Requests that were wanted.
        wanted: u64,
    },
    /// The experiment's folder could not be made.
    NoFolder {
        /// What the system said.
        error: String,
    },
    /// The experiment's files could not be made.
    NoData {
        /// What the system said.
        error: String,
    },
    /// The load or the sweep could not be made, or the file says something that cannot be done.
    Failed {
        /// What the error says of itself.
        error: String,
    },
    /// Words from a file of an older version, which has no data beside them, or of a newer one.
    Told {
        /// The words.
        text: String,
    },
}

impl Default for LeftOutCause {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

impl LeftOutCause {
    /// Whether nothing is known of it but words that stand elsewhere.
    fn is_empty(&self) -> bool {
        matches!(self, Self::Told { text } if text.is_empty())
    }

    /// Whether the experiment failed in it, and did not only lack a right or a program here.
    pub fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::LinkNeedsRoot
                | Self::LinkToolFailed { .. }
                | Self::LinkRefused { .. }
                | Self::MemoryNotLimited { .. }
                | Self::DiskNotLimited { .. }
                | Self::ProgramMissing { .. }
                | Self::Told { .. }
        )
    }

    /// Whether a program cannot be started, whatever it is driven with.
    pub fn prevents_start(&self) -> bool {
        matches!(
            self,
            Self::LinkNeedsRoot
                | Self::LinkToolFailed { .. }
                | Self::LinkRefused { .. }
                | Self::ProgramMissing { process: Some(_), .. }
                | Self::NotStarted { .. }
                | Self::EndedBeforeReady { .. }
                | Self::Taken { .. }
                | Self::NotReady { .. }
        )
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// By itself, with this exit status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows how.
    Unknown,
}

/// How a program is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadySign {
    /// It runs.
    Running,
    /// It prints this.
    Line(String),
    /// It accepts connections here.
    Connections(SocketAddr),
    /// It answers at this URL.
    Answers(String),
}
