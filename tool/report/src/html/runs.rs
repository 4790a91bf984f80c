//! The table of runs in short: of a side, of a history.

use analysis::contrast::Point;

use super::table::{Cell, Column, Row, Table};
use crate::number;
use crate::sentences::contrasts::{stopped_by, throughput_of};

/// The runs, each with whether it is marked and a remark.
pub(super) fn table(id: String, caption: String, runs: &[(&Point, bool, String)]) -> Table {
    let numeric = ["N*", "Requests/s", "Mean response", "p99", "CPU per request"].map(Column::numeric);
    let mut columns = vec![Column::words("Run"), Column::words("Began")];
    columns.extend(numeric);
    columns.push(Column::words("Stopped by"));
    let remarked = runs.iter().any(|(_, _, remark)| !remark.is_empty());
    columns.extend(remarked.then(|| Column::words("Remark")));
    let row = |(run, marked, remark): &(&Point, bool, String)| {
        let mut cells = cells(run);
        cells.extend(remarked.then(|| Cell::words(remark.clone())));
        Row { marked: *marked, cells }
    };
    Table { id, caption, columns, rows: runs.iter().map(row).collect() }
}

fn cells(run: &Point) -> Vec<Cell> {
    let time =
        |name, us: Option<f64>| us.map_or_else(Cell::missing, |us| Cell::figure(name, us, number::time(us)));
    let (rate, ci) = (run.throughput_per_s, run.throughput_ci_per_s);
    let rate_text = format!("{} ({})", throughput_of(run), number::interval(rate, ci));
    vec![
        Cell::words(run.file.clone()),
        Cell::words(run.started.clone()),
        run.users
            .map_or_else(Cell::missing, |users| Cell::figure("users", users, number::count(users.into()))),
        Cell::figure("throughput_per_s", rate, rate_text),
        time("response_time_us", Some(run.response_time_us)),
        time("p99_us", run.p99_us),
        time("cpu_us_per_request", run.cpu_us_per_request),
        Cell::words(stopped_by(run)),
    ]
}
