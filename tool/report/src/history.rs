//! Shows many runs in the order of time: a table, a page, a file.

use analysis::contrast::Point;
use analysis::history::{ChangePoint, Course, History, SCHEMA};

use crate::html::RenderError;
use crate::sentences::histories;
use crate::terminal::{TerminalOptions, plain};
use crate::{beside, markdown};

/// The history as JSON, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`History`] gives cause for.
pub fn json(history: &History) -> Result<String, serde_json::Error> {
    let mut history = history.clone();
    let runs = history.courses.iter_mut().flat_map(|course| &mut course.runs);
    for limit in runs.filter_map(|run| run.bottleneck.as_mut()) {
        beside::put_name(&mut limit.holder, &mut limit.identity);
    }
    serde_json::to_string_pretty(&history).map(|text| text + "\n")
}

/// The JSON Schema of a history, as shipped in `docs/history.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<History>(SCHEMA)
}

/// The history as text for a terminal, ending in a newline.
#[must_use]
pub fn terminal(history: &History, options: &TerminalOptions) -> String {
    crate::terminal::history::text(history, options)
}

/// Repeats of one measurement as text for a terminal, ending in a newline.
#[must_use]
pub fn repeats(points: &[Point], options: &TerminalOptions) -> String {
    crate::terminal::history::repeats(points, options)
}

/// The history as a page that opens offline.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(history: &History) -> Result<String, RenderError> {
    crate::html::history::page(history)
}

/// The history in Markdown, for the summary of a CI job: of each load what changed, and its latest runs.
#[must_use]
pub fn markdown(history: &History) -> String {
    markdown::history(history)
}

/// Changes of a course, each with what else changed with that run, in ASCII: for stderr, which may be any terminal or a log.
#[must_use]
pub fn changes(course: &Course, all: &[&ChangePoint]) -> Vec<String> {
    let told = |(change, beside): (String, Option<String>)| {
        plain(&std::iter::once(change).chain(beside).collect::<Vec<_>>().join(" "))
    };
    histories::changes(course, all).into_iter().map(told).collect()
}

/// Why no change of throughput can be found in a course, in ASCII. `None` where one can.
#[must_use]
pub fn unjudged(course: &Course) -> Option<String> {
    histories::unjudged(course).map(|why| plain(&why))
}
