//! Gates on the figures of runs as CI shows them: a summary in Markdown, and tests in JUnit XML.

use analysis::contrast::GateVerdict;
use analysis::run::Run;

use crate::{junit, markdown};

/// A bound on a figure of a run, and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldGate {
    /// The file of the run, where there are several runs; empty otherwise.
    pub file: String,
    /// As it was written, such as `p99<=20ms`.
    pub text: String,
    /// What it came to; nothing is decided of a run that failed.
    pub verdict: GateVerdict,
    /// What was found, or why nothing was.
    pub found: String,
}

/// The gates as JUnit XML: a breached one is a failure, one that is not decided an error.
#[must_use]
pub fn junit(held: &[HeldGate]) -> String {
    junit::of_runs(held)
}

/// A run with its gates in Markdown, for the summary of a CI job; `file` is its file where there are several runs.
#[must_use]
pub fn markdown(run: &Run, file: &str, held: &[HeldGate]) -> String {
    markdown::run(run, file, held)
}
