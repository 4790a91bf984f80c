//! The charts of the page, each with a table of the figures in it.

mod failures;
mod resources;
mod response_time;
mod throughput;

use analysis::run::{Run, Step};
use serde::Serialize;

pub(super) use self::resources::utilization_table;
use super::chart::{Chart, NARROW, Plot, Saturation, WIDE};
use super::table::{Cell, Row, Table};
use crate::axis::Axis;
use crate::number;
use crate::{summary, words};

/// A chart for wide and narrow screens, and its table.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    id: String,
    heading: &'static str,
    reading: String,
    charts: Vec<Chart>,
    table: Table,
}

impl Figure {
    fn new(plot: &Plot, heading: &'static str, reading: String, table: Table) -> Self {
        Self {
            id: plot.id.clone(),
            heading,
            reading,
            charts: vec![plot.draw(WIDE), plot.draw(NARROW)],
            table,
        }
    }
}

/// The figures of a sweep. A single step has none: tables show it as well.
pub(super) fn figures(run: &Run) -> Vec<Figure> {
    if run.steps.len() < 2 {
        return Vec::new();
    }
    let figures = [
        Some(throughput::throughput(run)),
        failures::failures(run),
        Some(response_time::response_time(run)),
        resources::resources(run),
    ];
    figures.into_iter().flatten().collect()
}

/// The figures of a sweep that goes on, from its first step: what was found is in a sentence.
pub(super) fn so_far(run: &Run, found: &str) -> Vec<Figure> {
    if run.steps.is_empty() {
        return Vec::new();
    }
    vec![throughput::described(run, found), response_time::response_time(run)]
}

/// The cell that names a step.
pub(super) fn users_cell(step: &Step) -> Cell {
    Cell::figure("users", step.users, number::count(step.users.into()))
}

/// One row per step, the one at N* marked.
pub(super) fn step_rows(run: &Run, cells: impl Fn(&Step) -> Vec<Cell>) -> Vec<Row> {
    let at = summary::mark(run).map(|(users, _)| users);
    run.steps.iter().map(|step| Row { marked: at == Some(step.users), cells: cells(step) }).collect()
}

fn users_axis(run: &Run) -> Axis {
    Axis::users(run.steps.iter().map(|step| step.users))
}

fn over_users(run: &Run, value: impl Fn(&Step) -> f64) -> Vec<(f64, f64)> {
    run.steps.iter().map(|step| (f64::from(step.users), value(step))).collect()
}

fn intervals(run: &Run, ci: impl Fn(&Step) -> Option<[f64; 2]>) -> Vec<(f64, f64, f64)> {
    run.steps.iter().filter_map(|step| ci(step).map(|[lo, hi]| (f64::from(step.users), lo, hi))).collect()
}

fn saturation(run: &Run) -> Option<Saturation> {
    let (users, word) = summary::mark(run)?;
    Some(Saturation {
        users: users.into(),
        ci: run.verdict.users_at_saturation_ci.map(|ci| ci.map(f64::from)),
        label: format!("{word} {}{}", number::count(users.into()), summary::users_interval(run)),
    })
}

fn notes(run: &Run, note: impl Fn(&Step) -> String) -> Vec<(f64, String)> {
    let steps = run.steps.iter();
    steps
        .map(|step| (f64::from(step.users), format!("{}: {}", words::users(step.users), note(step))))
        .collect()
}
