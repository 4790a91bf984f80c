//! The page of a comparison.

use analysis::comparison::{Claim, Comparison, Entry, Published, PublishedFigure, Workload};
use analysis::run::Host;
use serde::Serialize;

use super::RenderError;
use super::bars::{self, Bars, Drawn};
use super::chart::Chart;
use super::facts::Fact;
use super::relative;
use super::table::{Cell, Column, Row, Table};
use crate::metrics::{Metric, Output, ShownIf, shown_in};
use crate::number;
use crate::sentences::{left_out, published};
use crate::summary::comparison::{
    self as summary, ByUsers, by_users, factor, failed, laws, listed, place, proofs, stopped_by,
};
use crate::words;

/// The comparison as a page that opens offline.
pub(crate) fn page(comparison: &Comparison) -> Result<String, RenderError> {
    super::render("comparison.html", Page::new(comparison))
}

#[derive(Debug, Serialize)]
struct Page {
    title: String,
    headline: String,
    hardware: String,
    interrupted: Option<&'static str>,
    left_out: Vec<String>,
    works: Vec<Section>,
    published: Vec<Beside>,
    claims_made: Vec<Claimed>,
    run: Vec<Fact>,
}

/// One workload.
#[derive(Debug, Serialize)]
struct Section {
    id: String,
    name: String,
    order: Vec<String>,
    here: Option<Drawn>,
    curves: Option<Chart>,
    beside: Vec<Beside>,
    agreement: Vec<Agreement>,
    table: Table,
    by_users: Option<Table>,
    tested: Vec<String>,
    profiled: Vec<String>,
    laws: Vec<String>,
    proofs: Vec<String>,
    commands: Vec<String>,
    doubts: Vec<String>,
}

/// Figures that others published.
#[derive(Debug, Serialize)]
struct Beside {
    title: String,
    hardware: String,
    reading: String,
    drawn: Drawn,
}

/// How far a publication agrees with what was measured.
#[derive(Debug, Serialize)]
pub(super) struct Agreement {
    title: String,
    hardware: String,
    summary: String,
    sentences: Vec<String>,
}

/// A claim, and whether it is met.
#[derive(Debug, Serialize)]
pub(super) struct Claimed {
    text: String,
    standing: &'static str,
    /// Class of the style sheet.
    class: &'static str,
    evidence: String,
}

impl Page {
    fn new(comparison: &Comparison) -> Self {
        let works: Vec<Section> = comparison
            .works
            .iter()
            .enumerate()
            .map(|(index, work)| section(comparison, work, index))
            .collect();
        let alone = summary::alone(comparison);
        Self {
            title: format!("{} – nstar", comparison.title),
            headline: comparison.title.clone(),
            hardware: hardware(&comparison.host),
            interrupted: summary::interrupted(comparison),
            left_out: comparison.left_out.iter().map(left_out::sentence).collect(),
            published: alone.map(|(index, published)| beside(published, index)).collect(),
            claims_made: claims(comparison),
            run: run(comparison),
            works,
        }
    }
}

fn section(comparison: &Comparison, work: &Workload, index: usize) -> Section {
    let entries = listed(comparison, work);
    let order = summary::order(comparison, work);
    let varied = summary::is_varied(comparison);
    let others = summary::beside(comparison, work).filter(|(_, published)| !published.figures.is_empty());
    // What has figures for each variant is drawn on its own.
    let curve = comparison.published_of(work).find(|published| published.figures.is_empty());
    let is_drawn = curve.is_some() || comparison.published_of(work).next().is_none();
    let doubts = entries.iter().flat_map(|entry| {
        summary::doubts(entry).into_iter().map(|doubt| format!("{}: {doubt}", entry.variant))
    });
    Section {
        id: format!("work-{index}"),
        name: work.name.clone(),
        here: varied.then(|| here(work, &entries, index, order.join(" "))),
        curves: relative::curves(work, curve, &index.to_string()).filter(|_| is_drawn),
        order,
        agreement: agreement(comparison, work),
        beside: others.map(|(index, published)| beside(published, index)).collect(),
        table: table(comparison, work, &entries, index),
        by_users: by_users(comparison, work).map(|table| users_table(&table, index)),
        tested: summary::tested(work),
        profiled: summary::profiled(work),
        laws: summary::set_aside(work).into_iter().chain(laws(comparison, work)).collect(),
        proofs: proofs(work).iter().map(|(_, text)| words::unbroken(text)).collect(),
        commands: summary::commands(work),
        doubts: doubts.collect(),
    }
}

/// How far publications agree with a workload.
pub(super) fn agreement(comparison: &Comparison, work: &Workload) -> Vec<Agreement> {
    let of = |held: summary::Held| {
        let summary::Held { title, hardware, summary, sentences } = held;
        Agreement { title, hardware, summary, sentences }
    };
    summary::held(comparison, work).into_iter().map(of).collect()
}

/// Every claim, and whether it is met.
pub(super) fn claims(comparison: &Comparison) -> Vec<Claimed> {
    let of = |claim: &Claim| Claimed {
        text: claim.text.clone(),
        standing: published::claim_standing(claim),
        class: match claim.met {
            Some(true) => "met",
            Some(false) => "unmet",
            None => "open",
        },
        evidence: words::capitalised(&published::claim_evidence(claim)),
    };
    comparison.claims.iter().map(of).collect()
}

fn here(work: &Workload, entries: &[&Entry], index: usize, description: String) -> Drawn {
    let row = |entry: &&Entry| bars::Row {
        name: entry.variant.clone(),
        value: entry.throughput_per_s,
        ci: Some(entry.throughput_ci_per_s),
        beside: None,
    };
    let bars = Bars {
        id: format!("here-{index}"),
        title: format!("Here: {}", work.name),
        description: format!("{description} Every value is in the table below the chart."),
        unit: "requests a second, with 95 % intervals".into(),
        class: "main",
        rows: entries.iter().map(row).collect(),
    };
    bars.draw()
}

fn beside(published: &Published, index: usize) -> Beside {
    let row = |figure: &PublishedFigure| bars::Row {
        name: figure.variant.clone(),
        value: figure.value,
        ci: None,
        beside: None,
    };
    let better = if published.smaller_is_better { "Smaller is better." } else { "Larger is better." };
    let bars = Bars {
        id: format!("published-{index}"),
        title: format!("Published: {}", published.title),
        description: format!("{} on {}. {better}", published.unit, summary::hardware(published)),
        unit: published.unit.clone(),
        class: "other",
        rows: published.figures.iter().map(row).collect(),
    };
    Beside {
        title: published.title.clone(),
        hardware: summary::hardware(published),
        reading: format!(
            "{better} Measured on another machine at another time: compare order and shape, not figures."
        ),
        drawn: bars.draw(),
    }
}

fn table(comparison: &Comparison, work: &Workload, entries: &[&Entry], index: usize) -> Table {
    let name = words::capitalised(&factor(&comparison.factor));
    let names = match (summary::is_varied(comparison), comparison.is_over_counts()) {
        (false, _) => vec![Column::words("N*")],
        (true, true) => vec![Column::numeric(name), Column::words("Place")],
        (true, false) => vec![Column::words(name), Column::words("Place")],
    };
    let failed = if work.overload { "Denied, by kind" } else { "Errors" };
    let metrics = metrics(work).map(Column::metric);
    let columns = names.into_iter().chain(metrics);
    Table {
        id: format!("table-{index}"),
        caption: format!("{}: throughput, response time and cost", work.name),
        columns: columns.chain([failed, "Stopped by"].map(Column::words)).collect(),
        rows: entries
            .iter()
            .map(|entry| Row {
                marked: entry.place == Some([1, 1]) && summary::is_varied(comparison),
                cells: cells(comparison, work, entry),
            })
            .collect(),
    }
}

/// The metrics of a workload's entries.
fn metrics(work: &Workload) -> impl Iterator<Item = &'static Metric> {
    let compares = work.baseline.is_some();
    shown_in(Output::EntriesPage).filter(move |metric| compares || metric.shown_if() != ShownIf::Baseline)
}

fn cells(comparison: &Comparison, work: &Workload, entry: &Entry) -> Vec<Cell> {
    let measured = entry.into();
    let metrics = metrics(work)
        .map(|metric| Cell::metric(metric, &measured, |unit, quantity| unit.cell_with_interval(quantity)));
    let users =
        || entry.users.map_or_else(|| number::MISSING.to_owned(), |users| number::count(users.into()));
    let names = match summary::is_varied(comparison) {
        true => vec![entry.variant.clone(), place(entry)],
        false => vec![users()],
    };
    let names = names.into_iter().map(Cell::words);
    names.into_iter().chain(metrics).chain([failed(entry), stopped_by(entry)].map(Cell::words)).collect()
}

/// Throughput and mean response time by users, ours and those that others published.
fn users_table(by_users: &ByUsers<'_>, index: usize) -> Table {
    let headings = by_users.columns.iter().flat_map(|column| {
        let heading = |what: &str| Column::numeric(format!("{} {what}", words::capitalised(column.name)));
        [heading("requests/s"), heading("mean response")]
    });
    let row = |(index, users): (usize, &u32)| {
        let figures = by_users.columns.iter().map(|column| column.figures.get(index).copied().flatten());
        let cells = figures.flat_map(|figures| match figures {
            Some((rate, us)) => [
                Cell::figure("throughput_per_s", rate, number::plain(rate)),
                Cell::figure("response_time_us", us, number::time(us)),
            ],
            None => [Cell::missing(), Cell::missing()],
        });
        let users = Cell::figure("users", users, number::count((*users).into()));
        Row { marked: false, cells: std::iter::once(users).chain(cells).collect() }
    };
    Table {
        id: format!("users-{index}"),
        caption: "By users, beside what others measured on another machine".into(),
        columns: std::iter::once(Column::numeric("Users")).chain(headings).collect(),
        rows: by_users.users.iter().enumerate().map(row).collect(),
    }
}

/// `2 processors, AMD EPYC, Linux 6.1`.
pub(super) fn hardware(host: &Host) -> String {
    format!("{} processors, {}, Linux {}", host.cores, host.processor, host.kernel)
}

fn run(comparison: &Comparison) -> Vec<Fact> {
    vec![
        Fact::new("Host", hardware(&comparison.host), ""),
        Fact::new("Started", comparison.started.clone(), ""),
        Fact::new("Took", number::elapsed(comparison.elapsed_s), ""),
        Fact::new("Seed", comparison.seed.to_string(), ""),
        Fact::new("nstar", comparison.version.clone(), ""),
    ]
}
