//! Shows a study: one table of the order per work, one page, one file.

use analysis::study::{Entry, SCHEMA, Study, Work};

use crate::html::RenderError;
use crate::json::ReadError;
use crate::terminal::TerminalOptions;
use crate::words;

/// The study as the JSON of its file, ending in a newline.
///
/// # Errors
/// Only where serde refuses a value, which no field of [`Study`] gives cause for.
pub fn json(study: &Study) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(study).map(|text| text + "\n")
}

/// Reads a study.
///
/// # Errors
/// [`ReadError`], which says what is wrong, where, and what to do.
pub fn parse(text: &str) -> Result<Study, ReadError> {
    crate::json::parse_as(text, SCHEMA)
}

/// The JSON Schema of a study, as shipped in `docs/study.schema.json`.
#[must_use]
pub fn schema() -> String {
    crate::json::schema_of::<Study>(SCHEMA)
}

/// The study as text for a terminal, ending in a newline.
#[must_use]
pub fn terminal(study: &Study, options: &TerminalOptions) -> String {
    crate::terminal::study::study(study, options)
}

/// The study as a page that opens offline.
///
/// # Errors
/// [`RenderError`] only where a template of this crate is broken.
pub fn html(study: &Study) -> Result<String, RenderError> {
    crate::html::study::page(study)
}

/// The study's entries as comma-separated values.
#[must_use]
pub fn csv(study: &Study) -> String {
    crate::csv::study::csv(study)
}

/// The entries as they are listed: in order where names have none of their own, else as the experiment has them.
pub(crate) fn listed<'a>(study: &Study, work: &'a Work) -> Vec<&'a Entry> {
    let mut entries: Vec<&Entry> = work.entries.iter().collect();
    if !is_count(study) && study.axis != "index" {
        entries.sort_by(|a, b| {
            let unplaced = |entry: &Entry| entry.place.is_none();
            unplaced(a).cmp(&unplaced(b)).then(b.throughput_per_s.total_cmp(&a.throughput_per_s))
        });
    }
    entries
}

/// `1`, `2–4`, or nothing for what is not to be compared.
pub(crate) fn place(entry: &Entry) -> String {
    match entry.place {
        Some([best, worst]) if best == worst => best.to_string(),
        Some([best, worst]) => format!("{best}–{worst}"),
        None => String::new(),
    }
}

/// What stopped it; of several runs that disagree, each.
pub(crate) fn stopped_by(entry: &Entry) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for limit in &entry.bottleneck {
        let kind = words::kind(limit.kind);
        let text =
            if limit.holder.is_empty() { kind.to_owned() } else { format!("{kind}, {}", limit.holder) };
        if !kinds.contains(&text) {
            kinds.push(text);
        }
    }
    kinds.join("; ")
}

/// Failed requests by kind, most frequent first: `812 reset, 3 timed out`.
pub(crate) fn denied(entry: &Entry) -> String {
    let mut kinds: Vec<_> = entry.errors.iter().filter(|(_, count)| **count > 0).collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1));
    let parts = kinds
        .iter()
        .map(|(kind, count)| format!("{} {}", crate::number::count(**count), words::error_kind(**kind)));
    parts.collect::<Vec<_>>().join(", ")
}

/// The name of the axis over its column.
pub(crate) fn axis(study: &Study) -> &str {
    match study.axis.as_str() {
        "workers" => "workers",
        "database" => "database",
        "peers" => "peers",
        "index" => "index",
        _ => "model",
    }
}

/// Whether the variants are numbers of something.
pub(crate) fn is_count(study: &Study) -> bool {
    matches!(study.axis.as_str(), "workers" | "peers")
}
