//! Throughput against users, with the bounds and the model's prediction.

use analysis::run::{Run, Step};

use super::{Figure, intervals, notes, over_users, saturation, step_rows, users_axis, users_cell};
use crate::axis::Axis;
use crate::html::chart::{Plot, Series};
use crate::html::table::{Cell, Column, Table};
use crate::number;
use crate::summary;

/// Points of a curve that is drawn from a formula.
const CURVE_POINTS: u32 = 64;

pub(super) fn throughput(run: &Run) -> Figure {
    described(run, &summary::headline(run))
}

/// The same, described in these words.
pub(super) fn described(run: &Run, description: &str) -> Figure {
    let rates = run
        .steps
        .iter()
        .flat_map(|step| [step.throughput_per_s, step.throughput_ci_per_s.map_or(0.0, |ci| ci[1])]);
    let x = users_axis(run);
    let y = Axis::from_zero(rates);
    let mut series = bounds(run, x, y);
    series.extend(mva(run));
    series.push(Series {
        class: "main",
        name: "measured".into(),
        values: over_users(run, |step| step.throughput_per_s),
        intervals: intervals(run, |step| step.throughput_ci_per_s),
        ..Series::default()
    });
    let plot = Plot {
        id: "throughput".into(),
        title: "Throughput against users".into(),
        description: format!("{description} The table beside the chart has every value."),
        y_name: "requests a second".into(),
        x_name: "users",
        x,
        y,
        y_tick: number::axis_label,
        series,
        saturation: saturation(run),
        notes: notes(run, |step| number::rate(step.throughput_per_s, step.throughput_ci_per_s)),
    };
    let reading = "Completed requests a second, with 95 % intervals.".into();
    Figure::new(&plot, "Throughput", reading, throughput_table(run))
}

fn throughput_table(run: &Run) -> Table {
    let row = |step: &Step| {
        let (rate, ci) = (step.throughput_per_s, step.throughput_ci_per_s);
        let interval = ci.map_or_else(|| number::MISSING.into(), |ci| number::interval(rate, ci));
        vec![
            users_cell(step),
            Cell::figure("throughput_per_s", rate, number::estimate(rate, ci)),
            Cell::figure(
                "throughput_ci_per_s",
                ci.map_or_else(String::new, |[lo, hi]| format!("{lo} {hi}")),
                interval,
            ),
        ]
    };
    Table {
        id: "throughput-table".into(),
        caption: "Throughput at each number of users".into(),
        columns: ["Users", "Requests/s", "95 % interval"].map(Column::numeric).into(),
        rows: step_rows(run, row),
    }
}

/// The asymptotes (Denning and Buzen 1978): a line through the origin and the knee, and a level line from there.
fn bounds(run: &Run, x: Axis, y: Axis) -> Vec<Series> {
    let Some(bounds) = run.models.bounds.filter(|bounds| bounds.knee_users > 0.0) else { return Vec::new() };
    let slope = bounds.throughput_max_per_s / bounds.knee_users;
    let rising = (0..=CURVE_POINTS)
        .map(|index| x.value_at(f64::from(index) / f64::from(CURVE_POINTS)))
        .map(|users| (users, users * slope))
        .take_while(|(_, rate)| *rate <= y.hi());
    let level = [bounds.knee_users, x.hi()].map(|users| (users, bounds.throughput_max_per_s));
    let series =
        |name: &str, values| Series { class: "bound", name: name.into(), values, ..Series::default() };
    let mut all = vec![series("", rising.collect())];
    if bounds.throughput_max_per_s <= y.hi() {
        all.push(series("upper bound", level.into()));
    }
    all
}

fn mva(run: &Run) -> Option<Series> {
    let predicted = run.models.mva.as_ref()?;
    let values = predicted.iter().map(|point| (f64::from(point.users), point.throughput_per_s)).collect();
    let (name, short_name) = ("predicted (MVA)".into(), "predicted".into());
    Some(Series { class: "model", name, short_name, values, ..Series::default() })
}
