//! Response time against users.

use analysis::run::{LoopKind, Run, Step};

use super::{Figure, intervals, notes, over_users, saturation, step_rows, users_axis};
use crate::axis::Axis;
use crate::html::chart::{Plot, Series};
use crate::html::table::{Cell, Column, Table};
use crate::metrics::{Measurement, Metric, MetricUnit, Output, Quantity, shown_in, tail_us};
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
        ..Series::default()
    };
    let p99 = Series {
        class: "second",
        name: "p99".into(),
        values: run.steps.iter().filter_map(tail).map(|(users, us)| (users, unit.of(us))).collect(),
        ..Series::default()
    };
    let y = Axis::fitting(times.map(|time| unit.of(time)));
    let scale = if y.is_log() { ", logarithmic scale" } else { "" };
    let plot = Plot {
        id: "response-time".into(),
        title: "Response time against users".into(),
        description:
            "Mean and 99th percentile of the response time. The table beside the chart has every value."
                .into(),
        y_name: format!("{}{scale}", unit.name()),
        x_name: "users",
        x: users_axis(run),
        y,
        y_tick: number::tick,
        series: vec![p99, mean],
        saturation: saturation(run),
        notes: notes(run, |step| {
            let time = &step.response_time_us;
            let p99 = tail_us(time).map_or_else(|| number::MISSING.to_owned(), number::time);
            format!("mean {}, p99 {p99}", number::time_with_interval(time.mean, time.mean_ci))
        }),
    };
    Figure::new(&plot, "Response time", response_reading(run), response_table(run))
}

/// The 99th percentile over users, where the sample is large enough for it.
fn tail(step: &Step) -> Option<(f64, f64)> {
    Some((f64::from(step.users), tail_us(&step.response_time_us)?))
}

fn response_reading(run: &Run) -> String {
    match run.load.loop_kind {
        LoopKind::Open => "Mean with its 95 % interval, and the 99th percentile. Counted from each request’s intended start.",
        LoopKind::Closed => "Mean with its 95 % interval, and the 99th percentile. Closed loop: a user waits for each response before the next request.",
    }
    .into()
}

/// The table beside the chart. The longest times have a unit of their own: one slow response in a million must not push
/// the other columns to zero.
fn response_table(run: &Run) -> Table {
    let measured: Vec<Measurement<'_>> = run.steps.iter().map(Measurement::from).collect();
    let unit_of = |unit: MetricUnit| {
        let metrics = shown_in(Output::ResponsePage).filter(move |metric| metric.unit() == unit);
        let times = metrics.flat_map(|metric| measured.iter().filter_map(|of| metric.read(of)));
        TimeUnit::for_largest(times.map(|time| time.number()))
    };
    let (times, longest) = (unit_of(MetricUnit::Time), unit_of(MetricUnit::LongestTime));
    let in_unit = |unit: MetricUnit| if unit == MetricUnit::LongestTime { longest } else { times };
    let column = |metric: &Metric| match metric.unit() {
        unit @ (MetricUnit::Time | MetricUnit::LongestTime) => {
            Column::numeric(format!("{}, {}", metric.heading(), in_unit(unit).name()))
        }
        _ => Column::metric(metric),
    };
    let cells = |step: &Step| {
        let measured = step.into();
        let metrics = shown_in(Output::ResponsePage);
        let text = |unit: MetricUnit, quantity: &Quantity| unit.cell_in(quantity, in_unit(unit));
        metrics.map(|metric| Cell::metric(metric, &measured, text)).collect()
    };
    Table {
        id: "response-time-table".into(),
        caption: "Response time at each number of users".into(),
        columns: shown_in(Output::ResponsePage).map(column).collect(),
        rows: step_rows(run, cells),
    }
}
