//! The table of the kinds of request, where there are several.

use analysis::run::{Identity, Percentile, Run};

use super::style::Style;
use super::table::{Align, Column, fit};
use crate::metrics::{percentile_name, percentiles_to_tail};
use crate::number::{self, TimeUnit};
use crate::sentences::holders;
use crate::summary::requests::{OfKind, at, requests, tiers};

/// The lines of the table, a row for each kind; none where there is only one.
pub(super) fn lines(run: &Run, style: Style, width: usize) -> Vec<String> {
    let Some((step, kinds)) = requests(run) else { return Vec::new() };
    let percentiles: Vec<Percentile> = percentiles_to_tail().collect();
    let of_kind = |kind: &OfKind<'_>| -> Vec<f64> {
        let tails = percentiles.iter().filter_map(|percentile| kind.percentile_us(percentile));
        kind.mean_us().into_iter().chain(tails).collect()
    };
    let times = TimeUnit::for_largest(kinds.iter().flat_map(of_kind));
    let time = |us: Option<f64>| us.map_or_else(String::new, |us| number::plain(times.of(us)));
    let column = |heading: &str, align, cell: &dyn Fn(&OfKind<'_>) -> String| {
        Column::new(style, heading, align, &kinds, cell)
    };
    let mut columns = vec![
        column(&format!("request{}", at(run, step)), Align::Left, &|kind| kind.name().to_owned()),
        column("asked", Align::Right, &|kind| kind.asked_share.map_or_else(String::new, number::percent)),
        column("share", Align::Right, &|kind| number::percent(kind.measured.share)),
        column("req/s", Align::Right, &|kind| number::plain(kind.measured.throughput_per_s)),
        column(&format!("mean {}", times.name()), Align::Right, &|kind| time(kind.mean_us())),
    ];
    columns.extend(percentiles.iter().map(|percentile| {
        let name = percentile_name(percentile.share);
        column(&name, Align::Right, &|kind| time(kind.percentile_us(percentile)))
    }));
    columns.extend(tiers(&kinds).into_iter().map(|tier| cpu(tier, &kinds, style)));
    columns.retain(|column| !column.is_empty());
    let table = fit(&columns, width);
    let headings = Some(style.dim(&table.headings)).filter(|line| !line.is_empty());
    headings.into_iter().chain(table.rows.into_iter().flatten()).collect()
}

/// What each kind costs the processors of a tier.
fn cpu(tier: &Identity, kinds: &[OfKind<'_>], style: Style) -> Column {
    let all = kinds.iter().filter_map(|kind| Some(kind.cpu(tier)?.demand_us));
    let unit = TimeUnit::for_largest(all);
    let heading = format!("CPU {} {}", holders::short_name(tier), unit.name());
    let cell = |kind: &OfKind<'_>| {
        kind.cpu(tier).map_or_else(String::new, |demand| {
            number::estimate(unit.of(demand.demand_us), Some(demand.demand_ci_us.map(|end| unit.of(end))))
        })
    };
    Column::new(style, &heading, Align::Right, kinds, cell)
}
