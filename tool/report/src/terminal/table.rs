//! The table of steps.

use analysis::run::{ResourceKind, Run, Step};

use super::style::Style;
use crate::number::{self, TimeUnit};
use crate::summary;
use crate::words;

/// A column: its heading and cells, already fit for the terminal.
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) cells: Vec<String>,
    pub(super) align: Align,
}

#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Right,
}

/// The lines of the table; none without steps.
pub(super) fn lines(run: &Run, style: Style, width: usize) -> Vec<String> {
    if run.steps.is_empty() {
        return Vec::new();
    }
    let mut columns = columns(run, style);
    drop_spread(&mut columns, width);
    shorten_last(&mut columns, width, style);
    rows(&columns, run, style, width)
}

/// The lines of a second table, what was served and what failed, by kind, a second; none where nothing failed, or
/// where there is one step only, of which the warning tells all.
pub(super) fn failures(run: &Run, style: Style, width: usize) -> Vec<String> {
    let kinds = words::failing_kinds(run);
    if kinds.is_empty() || run.steps.len() < 2 {
        return Vec::new();
    }
    let column = |heading: &str, cell: &dyn Fn(&Step) -> String| Column {
        heading: style.text(heading),
        cells: run.steps.iter().map(|step| style.text(&cell(step))).collect(),
        align: Align::Right,
    };
    let mut columns = vec![
        column(summary::load_unit(run), &|step| number::count(step.users.into())),
        column("served/s", &|step| number::plain(step.throughput_per_s)),
    ];
    columns.extend(kinds.into_iter().map(|kind| {
        column(&format!("{}/s", words::error_kind(kind)), &|step| {
            number::plain(words::failures_per_s(step, kind))
        })
    }));
    rows(&columns, run, style, width)
}

/// The heading and one line per step, the one at N* set off.
fn rows(columns: &[Column], run: &Run, style: Style, width: usize) -> Vec<String> {
    let marked = summary::mark(run).map(|(users, _)| users);
    let heading = style.dim(&cut(row(columns, |column| &column.heading), width, style));
    let steps = run.steps.iter().enumerate().map(|(index, step)| {
        let line = row(columns, |column| column.cells.get(index).map_or("", String::as_str));
        let line = cut(line, width, style);
        if Some(step.users) == marked { style.accent(&line) } else { line }
    });
    std::iter::once(heading).chain(steps).collect()
}

fn columns(run: &Run, style: Style) -> Vec<Column> {
    let unit = TimeUnit::for_largest(run.steps.iter().map(|step| step.response_time_us.p99));
    let column = |heading: &str, align, cell: &dyn Fn(&Step) -> String| Column {
        heading: style.text(heading),
        cells: run.steps.iter().map(|step| style.text(&cell(step))).collect(),
        align,
    };
    let ci = |step: &Step| step.throughput_ci_per_s;
    let mut columns = vec![
        column(summary::load_unit(run), Align::Right, &|step| number::count(step.users.into())),
        column("req/s", Align::Right, &|step| number::estimate(step.throughput_per_s, ci(step))),
        column("", Align::Left, &|step| number::spread(step.throughput_per_s, ci(step))),
        column("", Align::Left, &|step| mark(run, step)),
        column(&format!("response {}", unit.name()), Align::Right, &|step| {
            number::plain(unit.of(step.response_time_us.mean))
        }),
        column("p99", Align::Right, &|step| number::plain(unit.of(step.response_time_us.p99))),
        column("errors", Align::Right, &|step| number::count(words::errors_total(&step.errors))),
        column("busiest", Align::Left, &busiest),
    ];
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    columns
}

fn mark(run: &Run, step: &Step) -> String {
    let mark = summary::mark(run).filter(|(users, _)| *users == step.users).map(|(_, mark)| mark);
    let unsteady = (!step.steady).then_some("not steady");
    mark.into_iter().chain(unsteady).collect::<Vec<_>>().join(" ")
}

fn busiest(step: &Step) -> String {
    step.resources.first().map_or_else(String::new, |resource| {
        let of = if resource.kind == ResourceKind::Lock { "locks of " } else { "" };
        format!("{of}{} {}", words::resource_name(resource), number::percent(resource.utilization))
    })
}

/// Leaves out the intervals where they would leave too little room for the last column.
fn drop_spread(columns: &mut Vec<Column>, width: usize) {
    const ROOM: usize = 18;
    let longest = columns.last().map_or(0, Column::width).min(ROOM);
    let rest: usize = columns.iter().rev().skip(1).map(|column| column.width() + GAP.len()).sum();
    if rest + longest > width {
        columns.retain(|column| !column.cells.iter().any(|cell| cell.starts_with(['±', '+'])));
    }
}

/// Cuts the cells of the last column so that no line is longer than `width`.
fn shorten_last(columns: &mut [Column], width: usize, style: Style) {
    let Some((last, rest)) = columns.split_last_mut() else { return };
    let room = width.saturating_sub(rest.iter().map(|column| column.width() + GAP.len()).sum()).max(8);
    for cell in &mut last.cells {
        let length = cell.chars().count();
        if length > room {
            // The share at the end says more than the middle of a name.
            let share = cell.rsplit(' ').next().unwrap_or_default().to_owned();
            let keep = room.saturating_sub(share.chars().count() + 2);
            let name: String = cell.chars().take(keep).collect();
            *cell = format!("{}{} {share}", name.trim_end(), style.pick('…', '~'));
        }
    }
}

/// Figures too long for any terminal lose their end, visibly.
pub(super) fn cut(line: String, width: usize, style: Style) -> String {
    if line.chars().count() <= width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}{}", style.pick('…', '~'))
}

const GAP: &str = "  ";

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.heading.chars().count()]).max().unwrap_or(0)
    }
}

pub(super) fn row<'a>(columns: &'a [Column], cell: impl Fn(&'a Column) -> &'a str) -> String {
    let cells = columns.iter().map(|column| {
        let (text, width) = (cell(column), column.width());
        match column.align {
            Align::Left => format!("{text:<width$}"),
            Align::Right => format!("{text:>width$}"),
        }
    });
    cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}
