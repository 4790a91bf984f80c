//! Requests served, and failed by kind, against users.

use analysis::run::{Run, Step};
use analysis::ticks::ErrorKind;

use super::{Figure, notes, over_users, saturation, step_rows, users_axis, users_cell};
use crate::axis::Axis;
use crate::html::chart::{Plot, Series};
use crate::html::table::{Cell, Column, Table};
use crate::number;
use crate::words::{capitalised, error_kind, failing_kinds, failures_per_s};

/// The most kinds that are drawn; the table has them all.
const KINDS_MAX: usize = 5;

/// Draws the figure; `None` if nothing failed.
pub(super) fn failures(run: &Run) -> Option<Figure> {
    const CLASSES: [&str; KINDS_MAX] = ["line-2", "line-3", "line-4", "line-5", "line-6"];
    let kinds = failing_kinds(run);
    let failed = kinds.iter().zip(CLASSES).map(|(kind, class)| {
        series(class, error_kind(*kind), over_users(run, |step| failures_per_s(step, *kind)))
    });
    let served = series("main", "served", over_users(run, |step| step.throughput_per_s));
    let series: Vec<_> = failed.chain([served]).collect();
    let rates = series.iter().flat_map(|series| &series.values).map(|(_, rate)| *rate);
    let plot = Plot {
        id: "failures".into(),
        title: "Served and failed requests against users".into(),
        description:
            "Requests a second that were served, and that failed, by kind. Every value is in the table \
                      beside the chart."
                .into(),
        y_name: "requests a second".into(),
        x_name: "users",
        x: users_axis(run),
        y: Axis::from_zero(rates),
        y_tick: number::axis_label,
        series,
        saturation: saturation(run),
        notes: notes(run, |step| note(step, &kinds)),
    };
    let reading = "Requests a second that were served, and that failed, by kind.".into();
    (!kinds.is_empty()).then(|| Figure::new(&plot, "Served and failed", reading, table(run, &kinds)))
}

fn series(class: &'static str, name: &str, values: Vec<(f64, f64)>) -> Series {
    Series { class, name: name.into(), values, ..Series::default() }
}

fn note(step: &Step, kinds: &[ErrorKind]) -> String {
    let served = format!("served {}", number::plain(step.throughput_per_s));
    let failed = kinds.iter().filter(|kind| failures_per_s(step, **kind) > 0.0);
    let failed =
        failed.map(|kind| format!("{} {}", error_kind(*kind), number::plain(failures_per_s(step, *kind))));
    std::iter::once(served).chain(failed).collect::<Vec<_>>().join(", ")
}

fn table(run: &Run, kinds: &[ErrorKind]) -> Table {
    let rate = |name, value| Cell::figure(name, value, number::plain(value));
    let row = |step: &Step| {
        let failed = kinds.iter().map(|kind| rate("errors_per_s.kind", failures_per_s(step, *kind)));
        let first = [users_cell(step), rate("throughput_per_s", step.throughput_per_s)];
        first.into_iter().chain(failed).collect()
    };
    let headings = kinds.iter().map(|kind| format!("{}/s", capitalised(error_kind(*kind))));
    Table {
        id: "failures-table".into(),
        caption: "Requests served and failed, a second, at each number of users".into(),
        columns: ["Users".to_owned(), "Served/s".to_owned()]
            .into_iter()
            .chain(headings)
            .map(Column::numeric)
            .collect(),
        rows: step_rows(run, row),
    }
}
