//! Steps of a run, and entries of a comparison, as comma-separated values (RFC 4180) for spreadsheets and scripts.
//!
//! Numbers are unrounded. Columns keep their names and order; new ones may come between.

use std::fmt::Write as _;

use analysis::comparison::{Comparison, Entry, Workload};
use analysis::run::{Identity, ResourceKind, Run, Step};
use analysis::ticks::ErrorCounts;
use serde::Serialize;

use crate::metrics::{Measurement, Output, shown_in};
use crate::sentences::holders;
use crate::summary::comparison::stopped_by;
use crate::words::ERROR_KINDS;

/// One line per step, after a line of column names.
///
/// The first columns are always the same; then one per kind of error (`errors_refused`), then one per
/// resource seen (`utilization cpu nginx (pid 812)`), empty at the steps that did not see it.
#[must_use]
pub fn csv(run: &Run) -> String {
    let resources = resources(run);
    let mut header = metric_names(Output::StepsCsv);
    header.extend(error_names());
    header.extend(resources.iter().map(|(kind, identity)| {
        format!("utilization {} {}", name(kind), holders::name_or_nothing(identity.as_ref()))
    }));
    run.steps.iter().fold(line(header), |text, step| text + &line(step_cells(step, &resources)))
}

/// One line per variant and workload, after a line of column names; the columns are always the same.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let mut header: Vec<String> = ["work", "variant", "place_best", "place_worst"].map(str::to_owned).into();
    header.extend(metric_names(Output::EntriesCsv));
    header.push("bottleneck".to_owned());
    header.extend(error_names());
    let entries =
        comparison.works.iter().flat_map(|work| work.entries.iter().map(move |entry| (work, entry)));
    entries.fold(line(header), |text, (work, entry)| text + &line(entry_cells(work, entry)))
}

fn metric_names(output: Output) -> Vec<String> {
    shown_in(output).flat_map(|metric| metric.csv_names()).map(str::to_owned).collect()
}

fn metric_cells(output: Output, of: &Measurement<'_>) -> Vec<String> {
    shown_in(output).flat_map(|metric| metric.csv_cells(of)).collect()
}

fn step_cells(step: &Step, resources: &[(ResourceKind, Option<Identity>)]) -> Vec<String> {
    let mut cells = metric_cells(Output::StepsCsv, &step.into());
    cells.extend(error_cells(&step.errors));
    cells.extend(resources.iter().map(|(kind, identity)| {
        let found = step.resources.iter().find(|r| r.kind == *kind && r.identity == *identity);
        found.map_or_else(String::new, |resource| resource.utilization.to_string())
    }));
    cells
}

fn entry_cells(work: &Workload, entry: &Entry) -> Vec<String> {
    let [best, worst] = entry.place.map_or_else(Default::default, |place| place.map(|end| end.to_string()));
    let mut cells = vec![work.name.clone(), entry.variant.clone(), best, worst];
    cells.extend(metric_cells(Output::EntriesCsv, &entry.into()));
    cells.push(stopped_by(entry));
    cells.extend(error_cells(&entry.errors));
    cells
}

/// Every resource of the run, in the order of first appearance.
fn resources(run: &Run) -> Vec<(ResourceKind, Option<Identity>)> {
    let mut seen = Vec::new();
    for resource in run.steps.iter().flat_map(|step| &step.resources) {
        let key = (resource.kind, resource.identity.clone());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    seen
}

fn error_names() -> impl Iterator<Item = String> {
    ERROR_KINDS.into_iter().map(|kind| format!("errors_{}", name(&kind)))
}

fn error_cells(counts: &ErrorCounts) -> impl Iterator<Item = String> {
    ERROR_KINDS.into_iter().map(|kind| counts.get(&kind).copied().unwrap_or(0).to_string())
}

/// The name a value has in the run file.
fn name(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn line(cells: Vec<String>) -> String {
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let _ = write!(text, "{separator}{}", quoted(cell));
    }
    text + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}
