//! A run's steps as comma-separated values (RFC 4180), for spreadsheets and scripts.

pub(crate) mod study;

use std::fmt::Write as _;

use analysis::run::{Resource, ResourceKind, ResponseTime, Run, Step};
use analysis::sample::ErrorCounts;
use serde::Serialize;

use crate::words::ERROR_KINDS;

/// The columns before those of errors and resources; names as in the run file.
const COLUMNS: [&str; 21] = [
    "users",
    "elapsed_s",
    "warmup_s",
    "completed",
    "throughput_per_s",
    "throughput_lo_per_s",
    "throughput_hi_per_s",
    "response_time_mean_us",
    "response_time_mean_lo_us",
    "response_time_mean_hi_us",
    "response_time_p50_us",
    "response_time_p90_us",
    "response_time_p99_us",
    "response_time_p999_us",
    "response_time_max_us",
    "received_bytes_per_s",
    "sent_bytes_per_s",
    "steady",
    "little_gap",
    "generator_useful_work",
    "generator_lag_us_p99",
];

/// One line per step, after a line of column names.
///
/// The first columns are always the same; then one per kind of error (`errors_refused`), then one per
/// resource seen (`utilization cpu nginx (pid 812)`), empty at the steps that did not see it. Numbers are unrounded.
#[must_use]
pub fn csv(run: &Run) -> String {
    let resources = resources(run);
    let mut header: Vec<String> = COLUMNS.map(str::to_owned).into();
    header.extend(ERROR_KINDS.map(|kind| format!("errors_{}", name(&kind))));
    header.extend(resources.iter().map(|(kind, holder)| format!("utilization {} {holder}", name(kind))));
    let mut text = line(header);
    for step in &run.steps {
        text += &line(cells(step, &resources));
    }
    text
}

/// Every resource of the run, in the order of first appearance.
fn resources(run: &Run) -> Vec<(ResourceKind, &str)> {
    let mut seen = Vec::new();
    for Resource { kind, holder, .. } in run.steps.iter().flat_map(|step| &step.resources) {
        if !seen.contains(&(*kind, holder.as_str())) {
            seen.push((*kind, holder.as_str()));
        }
    }
    seen
}

fn cells(step: &Step, resources: &[(ResourceKind, &str)]) -> Vec<String> {
    let mut cells = figures(step);
    cells.extend(errors(&step.errors));
    cells.extend(resources.iter().map(|(kind, holder)| {
        let found = step.resources.iter().find(|r| r.kind == *kind && r.holder == *holder);
        found.map_or_else(String::new, |resource| resource.utilization.to_string())
    }));
    cells
}

fn errors(counts: &ErrorCounts) -> impl Iterator<Item = String> {
    ERROR_KINDS.into_iter().map(|kind| counts.get(&kind).copied().unwrap_or(0).to_string())
}

fn figures(step: &Step) -> Vec<String> {
    let [lo, hi] = ends(step.throughput_ci_per_s);
    let mut figures = vec![
        step.users.to_string(),
        step.elapsed_s.to_string(),
        step.warmup_s.to_string(),
        step.completed.to_string(),
        step.throughput_per_s.to_string(),
        lo,
        hi,
    ];
    figures.extend(response_times(&step.response_time_us));
    figures.extend([
        step.received_bytes_per_s.to_string(),
        step.sent_bytes_per_s.to_string(),
        step.steady.to_string(),
        step.little_gap.to_string(),
        step.generator.useful_work.to_string(),
        step.generator.lag_us_p99.to_string(),
    ]);
    figures
}

fn response_times(time: &ResponseTime) -> [String; 8] {
    let [lo, hi] = ends(time.mean_ci);
    let [p50, p90, p99, p999, max] =
        [time.p50, time.p90, time.p99, time.p999, time.max].map(|figure| figure.to_string());
    [time.mean.to_string(), lo, hi, p50, p90, p99, p999, max]
}

fn ends(ci: Option<[f64; 2]>) -> [String; 2] {
    ci.map_or_else(Default::default, |ends| ends.map(|end| end.to_string()))
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
