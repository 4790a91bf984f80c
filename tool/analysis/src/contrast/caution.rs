//! Reasons to distrust single runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::side::{Given, Variant};
use crate::comparison::{Entry, is_lower_bound};
use crate::run::{Run, WarningKind};

/// A reason to distrust a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caution {
    /// It was cut short.
    Interrupted {
        /// Its file.
        file: String,
    },
    /// Its throughput is only a lower bound: the generator was the limit, or throughput never stopped growing.
    LowerBound {
        /// Its file.
        file: String,
    },
    /// It doubts its answer itself.
    Inconclusive {
        /// Its file.
        file: String,
    },
    /// Requests failed.
    Failed {
        /// Its file.
        file: String,
        /// Their share of all, 0 to 1.
        share: f64,
    },
    /// It was made by an nstar built without optimisation.
    DebugBuild {
        /// Its file.
        file: String,
    },
    /// It is the same run as another one, and counts once on its side.
    Copy {
        /// Its file.
        file: String,
        /// The other file.
        of: String,
    },
}

/// Fewer failures than this are not worth a word.
const FAILED: f64 = 0.001;

/// Whether a warning that says how the run went is among those of a run.
fn is_warned(run: &Run, kind: WarningKind) -> bool {
    run.warnings.iter().any(|warning| warning.kind == kind)
}

/// Reasons to distrust the runs of both sides.
pub(super) fn of_runs(before: &[Given], after: &[Given]) -> Vec<Caution> {
    let all: Vec<&Given> = before.iter().chain(after).collect();
    let mut found = Vec::new();
    for (index, given) in all.iter().enumerate() {
        let copied = all[..index].iter().find(|other| other.run == given.run);
        match copied {
            Some(other) => found.push(Caution::Copy { file: given.file.clone(), of: other.file.clone() }),
            None => found.extend(of_run(given)),
        }
    }
    found
}

fn of_run(given: &Given) -> Vec<Caution> {
    let (run, file) = (&given.run, || given.file.clone());
    let mut found = Vec::new();
    let lower_bound = is_lower_bound(run);
    if is_warned(run, WarningKind::Interrupted) {
        found.push(Caution::Interrupted { file: file() });
    }
    if lower_bound {
        found.push(Caution::LowerBound { file: file() });
    }
    if !lower_bound && !run.verdict.is_conclusive() {
        found.push(Caution::Inconclusive { file: file() });
    }
    if run.failed_share() > FAILED {
        found.push(Caution::Failed { file: file(), share: run.failed_share() });
    }
    if is_warned(run, WarningKind::DebugBuild) {
        found.push(Caution::DebugBuild { file: file() });
    }
    found
}

/// Reasons to distrust a variant.
pub(super) fn of_entry(entry: &Entry, of: &Variant) -> Option<Caution> {
    let file = || [of.file.as_str(), entry.variant.as_str()].join("#");
    match () {
        () if entry.lower_bound => Some(Caution::LowerBound { file: file() }),
        () if !entry.doubts.is_empty() => Some(Caution::Inconclusive { file: file() }),
        () => None,
    }
}
