//! Charts of what was measured beside what was published, each scaled to its own maximum.

use analysis::comparison::{Beside, Published, Workload, beside};

use super::bars::{Bars, Drawn, Row};
use super::chart::{Chart, Plot, SMALL, Series};
use crate::axis::Axis;
use crate::number;

/// How our curves are told apart, in order.
const CLASSES: [&str; 5] = ["main", "main second", "main line-4", "main line-5", "main line-6"];

/// Throughput by users, ours and the published one. `None` where there is only one number of users.
pub(super) fn curves(work: &Workload, published: Option<&Published>, id: &str) -> Option<Chart> {
    let Beside::Curves { measured, published } = beside(work, published)? else { return None };
    let users = |points: &[(f64, f64)]| points.iter().map(|(users, _)| *users as u32).collect::<Vec<_>>();
    let all = measured.iter().flat_map(|(_, points)| users(points)).chain(users(&published));
    let all: Vec<u32> = all.collect();
    let mut series = Vec::new();
    if !published.is_empty() {
        let values = published;
        series.push(Series { class: "published", name: "published".into(), values, ..Series::default() });
    }
    for ((name, values), class) in measured.into_iter().zip(CLASSES.into_iter().cycle()) {
        let name = if name.is_empty() { "here".to_owned() } else { name };
        series.push(Series { class, name, values, ..Series::default() });
    }
    let plot = Plot {
        id: format!("curves-{id}"),
        title: format!("Throughput against users: {}", work.name),
        description: "Throughput as a share of each curve's own maximum, measured here and published.".into(),
        y_name: "share of its own maximum".into(),
        x_name: "users",
        x: Axis::users(all),
        y: Axis::from_zero([1.0]),
        y_tick: number::percent,
        series,
        saturation: None,
        notes: Vec::new(),
    };
    Some(plot.draw(SMALL))
}

/// A bar for each variant with the published one below. `None` where there are curves, or nothing.
pub(super) fn paired(work: &Workload, published: Option<&Published>, id: &str) -> Option<Drawn> {
    let Beside::Bars(rows) = beside(work, published)? else { return None };
    let percent = |share: f64| share * 100.0;
    let row = |(name, here, published): (String, f64, Option<f64>)| Row {
        name,
        value: percent(here),
        ci: None,
        beside: published.map(percent),
    };
    let bars = Bars {
        id: format!("bars-{id}"),
        title: format!("Variants: {}", work.name),
        description: "Each variant as a share of the best, measured here and published.".into(),
        unit: "% of the best".into(),
        class: "main",
        rows: rows.into_iter().map(row).collect(),
    };
    Some(bars.draw())
}
