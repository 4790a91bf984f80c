//! Response time against users.

use analysis::run::{Run, Step};

use super::{Figure, intervals, notes, over_users, saturation, step_rows, users_axis, users_cell};
use crate::axis::Axis;
use crate::html::chart::{Plot, Series};
use crate::html::table::{Cell, Column, Table};
use crate::number::{self, TimeUnit};

pub(super) fn response_time(run: &Run) -> Figure {
    let times = run.steps.iter().flat_map(|step| [step.response_time_us.mean, step.response_time_us.p99]);
    let unit = TimeUnit::for_largest(times.clone());
    let scaled = |pick: fn(&Step) -> f64| over_users(run, |step| unit.of(pick(step)));
    let mean = Series {
        class: "main",
        name: "mean".into(),
        values: scaled(|step| step.response_time_us.mean),
        intervals: intervals(run, |step| step.response_time_us.mean_ci.map(|ci| ci.map(|end| unit.of(end)))),
    };
    let p99 = Series {
        class: "second",
        name: "p99".into(),
        values: scaled(|step| step.response_time_us.p99),
        intervals: Vec::new(),
    };
    let y = Axis::fitting(times.map(|time| unit.of(time)));
    let scale = if y.is_log() { ", logarithmic scale" } else { "" };
    let plot = Plot {
        id: "response-time",
        title: "Response time against users".into(),
        description:
            "Mean and 99th percentile of the response time. Every value is in the table beside the chart."
                .into(),
        y_name: format!("{}{scale}", unit.name()),
        x: users_axis(run),
        y,
        y_tick: number::tick,
        series: vec![p99, mean],
        saturation: saturation(run),
        notes: notes(run, |step| {
            let time = &step.response_time_us;
            format!(
                "mean {}, p99 {}",
                number::time_with_interval(time.mean, time.mean_ci),
                number::time(time.p99)
            )
        }),
    };
    Figure::new(&plot, "Response time", response_reading(run), response_table(run))
}

fn response_reading(run: &Run) -> String {
    match run.load.loop_kind.as_str() {
        "open" => "Mean with its 95 % interval, and the 99th percentile. Counted from each request’s intended start.",
        _ => "Mean with its 95 % interval, and the 99th percentile. Closed loop: a user waits for its answer before asking again.",
    }
    .into()
}

fn response_table(run: &Run) -> Table {
    let largest = run.steps.iter().map(|step| step.response_time_us.max);
    let p999 = run.steps.iter().map(|step| step.response_time_us.p999);
    let unit = TimeUnit::for_largest(p999);
    let max_unit = TimeUnit::for_largest(largest);
    let row = |step: &Step| {
        let t = &step.response_time_us;
        let figures = [
            ("response_time_us.mean", t.mean, unit),
            ("response_time_us.p50", t.p50, unit),
            ("response_time_us.p90", t.p90, unit),
            ("response_time_us.p99", t.p99, unit),
            ("response_time_us.p999", t.p999, unit),
            ("response_time_us.max", t.max, max_unit),
        ];
        let cells = figures.map(|(name, us, unit)| Cell::figure(name, us, number::plain(unit.of(us))));
        std::iter::once(users_cell(step)).chain(cells).collect()
    };
    let heading = |name: &str| Column::numeric(format!("{name}, {}", unit.name()));
    Table {
        id: "response-time-table".into(),
        caption: "Response time at each number of users".into(),
        columns: vec![
            Column::numeric("Users"),
            heading("Mean"),
            heading("p50"),
            heading("p90"),
            heading("p99"),
            heading("p99.9"),
            Column::numeric(format!("Max, {}", max_unit.name())),
        ],
        rows: step_rows(run, row),
    }
}
