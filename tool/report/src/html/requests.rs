//! The kinds of request, where there are several.

use std::borrow::Cow;

use analysis::run::{Identity, PERCENTILES, Percentile, Run};

use super::table::{Cell, Column, Row, Table};
use crate::metrics::percentile_name;
use crate::number;
use crate::sentences::holders;
use crate::summary::requests::{OfKind, at, requests, tiers};

/// The table, a row for each kind. `None` where there is only one.
pub(super) fn table(run: &Run) -> Option<Table> {
    let (step, kinds) = requests(run)?;
    let before = ["Asked", "Share", "Completed", "Requests/s", "Mean response time (95 % interval)"];
    let percentiles = PERCENTILES.iter().map(|percentile| percentile_name(percentile.share));
    let numeric = before.map(str::to_owned).into_iter().chain(percentiles).chain(["Longest".to_owned()]);
    let tiers = tiers(&kinds);
    let cpu = tiers.iter().map(|tier| format!("CPU time of {} (95 % interval)", holders::name(tier)));
    let numeric = numeric.chain(cpu);
    Some(Table {
        id: "requests-table".into(),
        caption: format!("Each kind of request{}", at(run, step)),
        columns: std::iter::once(Column::words("Request")).chain(numeric.map(Column::numeric)).collect(),
        rows: kinds.iter().map(|kind| row(kind, &tiers)).collect(),
    })
}

fn row(kind: &OfKind<'_>, tiers: &[&Identity]) -> Row {
    let of = kind.measured;
    let asked = kind.asked_share.map(|share| figure("asked_share", share, number::percent(share)));
    let mean = kind.mean_us().map(|us| {
        figure("response_time_us.mean", us, number::time_with_interval(us, of.response_time_us.mean_ci))
    });
    let longest = kind.longest_us().map(|us| figure("response_time_us.max", us, number::time(us)));
    let mut cells = vec![
        Cell::words(kind.name()),
        asked.unwrap_or_else(Cell::missing),
        figure("share", of.share, number::percent(of.share)),
        figure("completed", of.completed, number::count(of.completed)),
        figure("throughput_per_s", of.throughput_per_s, number::plain(of.throughput_per_s)),
        mean.unwrap_or_else(Cell::missing),
    ];
    cells.extend(PERCENTILES.iter().map(|percentile| percentile_cell(kind, percentile)));
    cells.push(longest.unwrap_or_else(Cell::missing));
    cells.extend(tiers.iter().map(|tier| cpu_cell(kind, tier)));
    Row { marked: false, cells }
}

fn percentile_cell(kind: &OfKind<'_>, percentile: &Percentile) -> Cell {
    let cell = |us| figure(&format!("response_time_us.{}", percentile.name), us, number::time(us));
    kind.percentile_us(percentile).map_or_else(Cell::missing, cell)
}

fn cpu_cell(kind: &OfKind<'_>, tier: &Identity) -> Cell {
    kind.cpu(tier).map_or_else(Cell::missing, |demand| {
        let text = number::time_with_interval(demand.demand_us, Some(demand.demand_ci_us));
        figure("demands.demand_us", demand.demand_us, text)
    })
}

/// A figure of one kind, as the run file names it within a step, or what it costs within the run.
fn figure(name: &str, value: impl ToString, text: String) -> Cell {
    Cell { name: Cow::Owned(format!("requests.{name}")), ..Cell::figure("", value, text) }
}
