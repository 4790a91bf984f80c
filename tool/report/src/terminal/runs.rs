//! Runs in short, one in a line: of a side, of repeats, of a history.

use analysis::contrast::Point;

use super::style::Style;
use super::table::{Align, Column, fit};
use crate::number::{self, TimeUnit};
use crate::sentences::contrasts::{all_stopped_by, stopped_by, throughput_of};

/// The table of runs, each with whether it is marked and a remark.
pub(super) fn lines(runs: &[(&Point, bool, String)], style: Style, width: usize) -> Vec<String> {
    let longest = |run: &Point| run.p99_us.unwrap_or(run.response_time_us);
    let times = TimeUnit::for_largest(runs.iter().map(|&(run, _, _)| longest(run)));
    // What is the same in every row is said once.
    let same = all_stopped_by(runs.iter().map(|(run, _, _)| *run));
    let column = |heading: &str, align, cell: &dyn Fn(&Point) -> String| {
        Column::new(style, heading, align, runs, |(run, _, _)| cell(run))
    };
    let time = |us: Option<f64>| us.map_or_else(String::new, |us| number::plain(times.of(us)));
    let mut columns = vec![
        column("run", Align::Left, &|run| run.file.clone()),
        column("began", Align::Left, &|run| run.started.clone()),
        column("N*", Align::Right, &|run| {
            run.users.map_or_else(String::new, |users| number::count(users.into()))
        }),
        column("req/s", Align::Right, &throughput_of),
        column("", Align::Left, &|run| match run.lower_bound {
            true => String::new(),
            false => number::spread(run.throughput_per_s, Some(run.throughput_ci_per_s)),
        }),
        column(&format!("response {}", times.name()), Align::Right, &|run| time(Some(run.response_time_us))),
        column("p99", Align::Right, &|run| time(run.p99_us)),
        column("CPU each", Align::Right, &|run| {
            run.cpu_us_per_request.map_or_else(String::new, number::time)
        }),
        column("stopped by", Align::Left, &|run| {
            if same.is_some() { String::new() } else { stopped_by(run) }
        }),
        Column::new(style, "", Align::Left, runs, |(_, _, remark)| remark.clone()),
    ];
    columns.retain(|column| !column.is_empty());
    let table = fit(&columns, width);
    let rows = table.rows.into_iter().zip(runs).flat_map(|(lines, (_, marked, _))| {
        let marked = *marked;
        lines.into_iter().map(move |line| if marked { style.accent(&line) } else { line })
    });
    let same = same.map(|by| style.dim(&style.text(&format!("all stopped by {by}"))));
    std::iter::once(style.dim(&table.headings)).chain(rows).chain(same).collect()
}
