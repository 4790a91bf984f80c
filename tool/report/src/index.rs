//! The index of several experiments: one page with what each of them came to, beside what was published.

use analysis::comparison::Comparison;
use analysis::run::Host;

pub use crate::html::RenderError;

/// Several experiments that were run one after the other.
#[derive(Debug, Clone)]
pub struct Index {
    /// Where they ran.
    pub host: Host,
    /// When the first began, RFC 3339, UTC.
    pub started: String,
    /// How long they took together, seconds.
    pub elapsed_s: f64,
    /// The version of nstar.
    pub version: String,
    /// Whether each had its published time.
    pub full: bool,
    /// Whether it was stopped before all of them were run.
    pub interrupted: bool,
    /// The experiments in their order.
    pub experiments: Vec<Shown>,
}

/// One experiment of an index.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its name, which is that of its folder too.
    pub name: String,
    /// What it is called on the command line: the name, or a file.
    pub given: String,
    /// What it shows, in one line.
    pub title: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an experiment.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It was measured.
    Measured {
        /// What was found.
        comparison: Box<Comparison>,
        /// Its page, as a path from the index.
        page: String,
    },
    /// It failed, for this reason.
    Failed {
        /// The reason.
        why: String,
    },
    /// Its time was not up for it: another one is its short form.
    OnlyFull {
        /// The name of the short form.
        short_form: String,
    },
    /// The run was stopped before it was measured.
    NotMeasured,
}

/// The index as a page that opens offline.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(index: &Index) -> Result<String, RenderError> {
    crate::html::index::page(index)
}

/// The index as text for a terminal: a line or two for each experiment, ending in a newline.
#[must_use]
pub fn text(index: &Index) -> String {
    crate::summary::index::text(index)
}
