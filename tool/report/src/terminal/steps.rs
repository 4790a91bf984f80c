//! The tables of steps: what was measured, and what failed.

use analysis::run::{ResourceKind, Run, Step};

use super::style::Style;
use super::table::{Align, Column, GAP, cut, headings, row, width_of};
use crate::metrics::{Measurement, MetricUnit, Output, ShownIf, shown_in};
use crate::number::{self, TimeUnit};
use crate::sentences::holders;
use crate::{summary, words};

/// Intervals are left out where they would leave less room than this for the busiest resource.
const BUSIEST_MIN: usize = 18;

/// A smaller share from a disk is not worth a column.
const FROM_DISK: f64 = 0.01;

/// The share of the response times that connecting takes in some step is worth a column from here on.
const CONNECTING: f64 = 0.05;

/// The lines of the table; none without steps.
pub(super) fn lines(run: &Run, style: Style, width: usize) -> Vec<String> {
    if run.steps.is_empty() {
        return Vec::new();
    }
    let mut columns = columns(run, style);
    let busiest: Vec<_> = run.steps.iter().map(|step| Busiest::of(step, style)).collect();
    let wanted = busiest.iter().flatten().map(Busiest::width).max().unwrap_or(0).min(BUSIEST_MIN);
    if width_of(&columns) + GAP.len() + wanted > width {
        columns.retain(|column| !column.is_interval);
    }
    let room = width.saturating_sub(width_of(&columns) + GAP.len()).max(8);
    let cell = |busiest: &Option<Busiest>| {
        busiest.as_ref().map_or_else(String::new, |busiest| busiest.within(room, style))
    };
    columns.push(Column::new(style, "busiest", Align::Left, &busiest, cell));
    columns.retain(|column| !column.is_empty());
    rows(&columns, run, style, width)
}

/// The lines of a second table: requests served and failed a second, by kind. None where nothing failed, or where there
/// is only one step, whose warning says it all.
pub(super) fn failures(run: &Run, style: Style, width: usize) -> Vec<String> {
    let kinds = words::failing_kinds(run);
    if kinds.is_empty() || run.steps.len() < 2 {
        return Vec::new();
    }
    let rate = |heading: &str, rate: &dyn Fn(&Step) -> f64| {
        Column::new(style, heading, Align::Right, &run.steps, |step| number::plain(rate(step)))
    };
    let mut columns = vec![users(run, style), rate("served/s", &|step| step.throughput_per_s)];
    columns.extend(kinds.into_iter().map(|kind| {
        rate(&format!("{}/s", words::error_kind(kind)), &|step| words::failures_per_s(step, kind))
    }));
    rows(&columns, run, style, width)
}

fn users(run: &Run, style: Style) -> Column {
    let users = |step: &Step| number::count(step.users.into());
    Column::new(style, summary::load_unit(run), Align::Right, &run.steps, users)
}

/// The headings and one line per step, the one at N* set off.
fn rows(columns: &[Column], run: &Run, style: Style, width: usize) -> Vec<String> {
    let marked = summary::mark(run).map(|(users, _)| users);
    let headings = style.dim(&cut(headings(columns), width, style));
    let steps = run.steps.iter().enumerate().map(|(index, step)| {
        let line = cut(row(columns, index), width, style);
        if Some(step.users) == marked { style.accent(&line) } else { line }
    });
    std::iter::once(headings).chain(steps).collect()
}

fn columns(run: &Run, style: Style) -> Vec<Column> {
    let times = TimeUnit::for_largest(run.steps.iter().map(|step| step.response_time_us.p99));
    let measured: Vec<Measurement<'_>> = run.steps.iter().map(Measurement::from).collect();
    let mut columns = vec![users(run, style)];
    for metric in shown_in(Output::StepsText).filter(|metric| says_something(metric.shown_if(), run)) {
        // The first column of times says their unit.
        let first_time = metric.unit() == MetricUnit::Time && metric.has_interval();
        let unit = if first_time { format!(" {}", times.name()) } else { String::new() };
        let heading = format!("{}{unit}", metric.text_label());
        columns.push(Column::metric(style, metric, &heading, &measured, times));
        if metric.unit() == MetricUnit::PerSecond {
            columns.push(Column::spread(style, metric, &measured));
            columns.push(Column::new(style, "", Align::Left, &run.steps, |step| mark(run, step)));
        }
    }
    columns.retain(|column| !column.is_empty());
    columns
}

/// Whether the metric is worth its room.
fn says_something(shown_if: ShownIf, run: &Run) -> bool {
    match shown_if {
        ShownIf::Connecting => {
            run.steps.iter().any(|step| step.connecting.is_some_and(|took| took.share >= CONNECTING))
        }
        ShownIf::FromDisk => run.steps.iter().any(|step| step.from_disk_share >= Some(FROM_DISK)),
        _ => true,
    }
}

fn mark(run: &Run, step: &Step) -> String {
    let mark = summary::mark(run).filter(|(users, _)| *users == step.users).map(|(_, mark)| mark);
    let unsteady = (!step.steady).then_some("not steady");
    mark.into_iter().chain(unsteady).collect::<Vec<_>>().join(" ")
}

/// The busiest resource of a step: its name, and how busy it is.
struct Busiest {
    name: String,
    share: String,
}

impl Busiest {
    fn of(step: &Step, style: Style) -> Option<Self> {
        let resource = step.resources.first()?;
        let of = if resource.kind == ResourceKind::Lock { "locks of " } else { "" };
        Some(Self {
            name: style.text(&format!("{of}{}", holders::resource_name(resource))),
            share: style.text(&number::percent(resource.utilization)),
        })
    }

    fn width(&self) -> usize {
        self.name.chars().count() + 1 + self.share.chars().count()
    }

    /// Both in at most `room` characters. The share at the end says more than the middle of a name.
    fn within(&self, room: usize, style: Style) -> String {
        if self.width() <= room {
            return format!("{} {}", self.name, self.share);
        }
        let keep = room.saturating_sub(self.share.chars().count() + 2);
        let name: String = self.name.chars().take(keep).collect();
        format!("{}{} {}", name.trim_end(), style.pick('…', '~'), self.share)
    }
}
