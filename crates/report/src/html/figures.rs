//! The charts of the page, each with the table of what it shows.

use model::run::{Resource, ResourceKind, Run, Step};
use serde::Serialize;

use super::chart::{Chart, NARROW, Plot, Saturation, Series, WIDE};
use super::table::{Cell, Column, Row, Table};
use crate::axis::Axis;
use crate::number::{self, TimeUnit};
use crate::words;

/// Resources drawn; the table has them all.
const RESOURCES_MAX: usize = 6;
/// Points of a curve drawn through a formula.
const CURVE_POINTS: u32 = 64;

/// A chart on both papers and its table.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    id: &'static str,
    heading: &'static str,
    reading: String,
    charts: Vec<Chart>,
    table: Table,
}

impl Figure {
    fn new(plot: &Plot, heading: &'static str, reading: String, table: Table) -> Self {
        Self { id: plot.id, heading, reading, charts: vec![plot.draw(WIDE), plot.draw(NARROW)], table }
    }
}

/// The figures of a sweep; none for a single step, which the tables show as well.
pub(super) fn figures(run: &Run) -> Vec<Figure> {
    if run.steps.len() < 2 {
        return Vec::new();
    }
    [Some(throughput(run)), Some(response_time(run)), resources(run)].into_iter().flatten().collect()
}

fn throughput(run: &Run) -> Figure {
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
    });
    let plot = Plot {
        id: "throughput",
        title: "Throughput against users".into(),
        description: format!("{} Every value is in the table beside the chart.", words::headline(run)),
        y_name: "requests a second".into(),
        x,
        y,
        y_tick: number::tick,
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
        id: "throughput-table",
        caption: "Throughput at each number of users".into(),
        columns: ["Users", "Requests/s", "95 % interval"].map(Column::numeric).into(),
        rows: step_rows(run, row),
    }
}

/// The asymptotes (Denning and Buzen 1978): through the origin and the knee, and level from there.
fn bounds(run: &Run, x: Axis, y: Axis) -> Vec<Series> {
    let Some(bounds) = run.models.bounds.filter(|bounds| bounds.knee_users > 0.0) else { return Vec::new() };
    let slope = bounds.throughput_max_per_s / bounds.knee_users;
    let rising = (0..=CURVE_POINTS)
        .map(|index| x.value_at(f64::from(index) / f64::from(CURVE_POINTS)))
        .map(|users| (users, users * slope))
        .take_while(|(_, rate)| *rate <= y.hi());
    let level = [bounds.knee_users, x.hi()].map(|users| (users, bounds.throughput_max_per_s));
    let series =
        |name: &str, values| Series { class: "bound", name: name.into(), values, intervals: Vec::new() };
    let mut all = vec![series("", rising.collect())];
    if bounds.throughput_max_per_s <= y.hi() {
        all.push(series("upper bound", level.into()));
    }
    all
}

fn mva(run: &Run) -> Option<Series> {
    let predicted = run.models.mva.as_ref()?;
    let values = predicted.iter().map(|point| (f64::from(point.users), point.throughput_per_s)).collect();
    Some(Series { class: "model", name: "predicted (MVA)".into(), values, intervals: Vec::new() })
}

fn response_time(run: &Run) -> Figure {
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
        id: "response-time-table",
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

fn resources(run: &Run) -> Option<Figure> {
    const CLASSES: [&str; RESOURCES_MAX] = ["main", "line-2", "line-3", "line-4", "line-5", "line-6"];
    let all = distinct_resources(run);
    let series = all.iter().zip(CLASSES).map(|(key, class)| Series {
        class,
        name: key.name(),
        values: run
            .steps
            .iter()
            .filter_map(|step| Some((f64::from(step.users), key.of(step)?.utilization)))
            .collect(),
        intervals: Vec::new(),
    });
    let plot = Plot {
        id: "resources",
        title: "Utilisation of resources against users".into(),
        description: "Busy share of each resource. Every value is in the table beside the chart.".into(),
        y_name: "utilisation".into(),
        x: users_axis(run),
        y: Axis::from_zero([1.0]),
        y_tick: number::percent,
        series: series.collect(),
        saturation: saturation(run),
        notes: notes(run, busiest_note),
    };
    let rest = match all.len().saturating_sub(RESOURCES_MAX) {
        0 => "",
        1 => " One more is in the table.",
        _ => " The others are in the table.",
    };
    let reading = format!("Busy share of what each could use.{rest}");
    (!all.is_empty()).then(|| Figure::new(&plot, "Resources", reading, resources_table(run, &all)))
}

fn busiest_note(step: &Step) -> String {
    let busiest = step.resources.iter().take(3);
    let shares = busiest.map(|r| format!("{} {}", words::resource_name(r), number::percent(r.utilization)));
    shares.collect::<Vec<_>>().join(", ")
}

fn resources_table(run: &Run, all: &[Key]) -> Table {
    let at = words::verdict_step(run);
    let rows = all.iter().map(|key| {
        let resource = at.and_then(|step| key.of(step));
        let share = resource.map_or_else(Cell::missing, |resource| {
            Cell::figure("utilization", resource.utilization, number::percent(resource.utilization))
        });
        let used = resource.map_or_else(|| number::MISSING.into(), used);
        let bottleneck = &run.verdict.bottleneck;
        Row {
            marked: key.kind == bottleneck.kind && key.holder == bottleneck.holder,
            cells: vec![key.cell(), share, Cell::words(used)],
        }
    });
    let users = at.map_or_else(String::new, |step| words::users(step.users));
    Table {
        id: "resources-table",
        caption: format!("Resources at {users}"),
        columns: vec![Column::words("Resource"), Column::numeric("Utilisation"), Column::numeric("In use")],
        rows: rows.collect(),
    }
}

fn used(resource: &Resource) -> String {
    let Resource { used, capacity, unit, .. } = resource;
    if unit == "bits/s" {
        return format!("{} of {}", number::prefixed(*used, "bit/s"), number::prefixed(*capacity, "bit/s"));
    }
    let unit = if *capacity == 1.0 { unit.trim_end_matches('s') } else { unit };
    format!("{} of {} {unit}", number::plain(*used), number::tick(*capacity)).trim_end().to_owned()
}

/// Utilisation of every resource at every step.
pub(super) fn utilization_table(run: &Run) -> Option<Table> {
    let all = distinct_resources(run);
    let row = |step: &Step| {
        let shares = all.iter().map(|key| {
            key.of(step).map_or_else(Cell::missing, |r| {
                Cell::figure("utilization", r.utilization, number::percent(r.utilization))
            })
        });
        std::iter::once(users_cell(step)).chain(shares).collect()
    };
    (!all.is_empty()).then(|| Table {
        id: "utilization-table",
        caption: "Utilisation of every resource at each number of users".into(),
        columns: std::iter::once("Users".to_owned())
            .chain(all.iter().map(Key::name))
            .map(Column::numeric)
            .collect(),
        rows: step_rows(run, row),
    })
}

/// What tells one resource from another.
#[derive(Debug, PartialEq)]
struct Key {
    kind: ResourceKind,
    holder: String,
}

impl Key {
    fn of<'a>(&self, step: &'a Step) -> Option<&'a Resource> {
        step.resources.iter().find(|r| r.kind == self.kind && r.holder == self.holder)
    }

    fn cell(&self) -> Cell {
        let kind = words::kind(self.kind);
        Cell::words(self.name()).with_note(if self.holder.is_empty() { "" } else { kind })
    }

    fn name(&self) -> String {
        if self.holder.is_empty() { words::kind(self.kind).into() } else { self.holder.clone() }
    }
}

/// The run's resources: as the verdict's step orders them, then those of other steps.
fn distinct_resources(run: &Run) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for resource in words::verdict_step(run).into_iter().chain(&run.steps).flat_map(|step| &step.resources) {
        let key = Key { kind: resource.kind, holder: resource.holder.clone() };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The cell that names a step.
pub(super) fn users_cell(step: &Step) -> Cell {
    Cell::figure("users", step.users, number::count(step.users.into()))
}

/// One row per step, the one at N* marked.
pub(super) fn step_rows(run: &Run, cells: impl Fn(&Step) -> Vec<Cell>) -> Vec<Row> {
    let at = words::mark(run).map(|(users, _)| users);
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
    let (users, word) = words::mark(run)?;
    Some(Saturation {
        users: users.into(),
        ci: run.verdict.users_at_saturation_ci.map(|ci| ci.map(f64::from)),
        label: format!("{word} {}", number::count(users.into())),
    })
}

fn notes(run: &Run, note: impl Fn(&Step) -> String) -> Vec<(f64, String)> {
    let steps = run.steps.iter();
    steps
        .map(|step| (f64::from(step.users), format!("{}: {}", words::users(step.users), note(step))))
        .collect()
}

impl Cell {
    fn missing() -> Self {
        Self::words(number::MISSING)
    }
}
