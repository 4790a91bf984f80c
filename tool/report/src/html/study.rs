//! What the page of a study shows, in its order.

use analysis::run::Host;
use analysis::study::{Entry, Published, Study, Work};
use serde::Serialize;

use super::RenderError;
use super::bars::{self, Bars, Drawn};
use super::facts::Fact;
use super::table::{Cell, Column, Row, Table};
use crate::by_users::{ByUsers, by_users, laws, proofs};
use crate::number;
use crate::study::{axis, denied, is_count, listed, place, stopped_by};
use crate::words;

/// The study as a page that opens offline.
pub(crate) fn page(study: &Study) -> Result<String, RenderError> {
    super::render("study.html", Page::new(study))
}

#[derive(Debug, Serialize)]
struct Page {
    title: String,
    headline: String,
    hardware: String,
    left_out: Vec<String>,
    works: Vec<Section>,
    published: Vec<Beside>,
    run: Vec<Fact>,
}

/// One work.
#[derive(Debug, Serialize)]
struct Section {
    id: String,
    name: String,
    order: Vec<String>,
    here: Drawn,
    beside: Vec<Beside>,
    table: Table,
    by_users: Option<Table>,
    laws: Vec<String>,
    proofs: Vec<String>,
    doubts: Vec<String>,
}

/// Figures of others.
#[derive(Debug, Serialize)]
struct Beside {
    title: String,
    hardware: String,
    reading: String,
    drawn: Drawn,
}

impl Page {
    fn new(study: &Study) -> Self {
        let works: Vec<Section> =
            study.works.iter().enumerate().map(|(index, work)| section(study, work, index)).collect();
        let alone = study.published.iter().enumerate().filter(|(_, published)| published.work.is_none());
        Self {
            title: format!("{} – nstar", study.title),
            headline: study.title.clone(),
            hardware: hardware(&study.host),
            left_out: study.left_out.iter().map(|left| format!("{}: {}", left.what, left.why)).collect(),
            published: alone.map(|(index, published)| beside(published, index)).collect(),
            run: run(study),
            works,
        }
    }
}

fn section(study: &Study, work: &Work, index: usize) -> Section {
    let entries = listed(study, work);
    let order: Vec<String> = work.order.iter().map(|sentence| words::unbroken(sentence)).collect();
    let of_this = |(_, published): &(usize, &Published)| {
        published.work.as_ref() == Some(&work.name) && !published.figures.is_empty()
    };
    let others = study.published.iter().enumerate().filter(of_this);
    let doubts = entries.iter().flat_map(|entry| {
        entry.doubts.iter().map(|doubt| format!("{}: {}", entry.variant, words::unbroken(doubt)))
    });
    Section {
        id: format!("work-{index}"),
        name: work.name.clone(),
        here: here(work, &entries, index, order.join(" ")),
        order,
        beside: others.map(|(index, published)| beside(published, index)).collect(),
        table: table(study, work, &entries, index),
        by_users: by_users(study, work).map(|table| users_table(&table, index)),
        laws: laws(study, work).iter().map(|law| words::unbroken(law)).collect(),
        proofs: proofs(work).iter().map(|(_, text)| words::unbroken(text)).collect(),
        doubts: doubts.collect(),
    }
}

fn here(work: &Work, entries: &[&Entry], index: usize, description: String) -> Drawn {
    let row = |entry: &&Entry| bars::Row {
        name: entry.variant.clone(),
        value: entry.throughput_per_s,
        ci: Some(entry.throughput_ci_per_s),
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
    let row = |figure: &analysis::study::Figure| bars::Row {
        name: figure.variant.clone(),
        value: figure.value,
        ci: None,
    };
    let better = if published.smaller_is_better { "Smaller is better." } else { "Larger is better." };
    let bars = Bars {
        id: format!("published-{index}"),
        title: format!("Published: {}", published.title),
        description: format!("{} on {}. {better}", published.unit, published.hardware),
        unit: published.unit.clone(),
        class: "other",
        rows: published.figures.iter().map(row).collect(),
    };
    Beside {
        title: published.title.clone(),
        hardware: published.hardware.clone(),
        reading: format!(
            "{better} Another machine, another time: compare the order and the shape, not the figures."
        ),
        drawn: bars.draw(),
    }
}

fn table(study: &Study, work: &Work, entries: &[&Entry], index: usize) -> Table {
    let name = words::capitalised(axis(study));
    let numeric = is_count(study);
    let names = if numeric { Column::numeric(name) } else { Column::words(name) };
    let failed = if work.overload { "Denied, by kind" } else { "Errors" };
    Table {
        id: format!("table-{index}"),
        caption: format!("{}: throughput, response time and what it took", work.name),
        columns: vec![
            names,
            Column::words("Place"),
            Column::numeric("Requests/s (95 % interval)"),
            Column::numeric("Of the fastest"),
            Column::numeric("Users"),
            Column::numeric("Mean response"),
            Column::numeric("p99"),
            Column::numeric("CPU per request"),
            Column::numeric("Received"),
            Column::numeric("Completed"),
            Column::words(failed),
            Column::words("Stopped by"),
        ],
        rows: entries
            .iter()
            .map(|entry| Row { marked: entry.place == Some([1, 1]), cells: cells(entry) })
            .collect(),
    }
}

/// Throughput and mean response time by users, ours and others'.
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
        caption: "By users, beside what others published on another machine".into(),
        columns: std::iter::once(Column::numeric("Users")).chain(headings).collect(),
        rows: by_users.users.iter().enumerate().map(row).collect(),
    }
}

fn cells(entry: &Entry) -> Vec<Cell> {
    let (rate, ci) = (entry.throughput_per_s, entry.throughput_ci_per_s);
    let time = &entry.response_time_us;
    let share = entry.of_fastest.map_or_else(Cell::missing, |share| {
        let [lo, hi] = share.ci.map(number::percent);
        let text = if share.ratio == 1.0 {
            number::percent(1.0)
        } else {
            format!("{} ({lo} to {hi})", number::percent(share.ratio))
        };
        Cell::figure("of_fastest.ratio", share.ratio, text)
    });
    vec![
        Cell::words(entry.variant.clone()),
        Cell::words(place(entry)),
        Cell::figure(
            "throughput_per_s",
            rate,
            format!("{} ({})", number::estimate(rate, Some(ci)), number::interval(rate, ci)),
        ),
        share,
        entry
            .users
            .map_or_else(Cell::missing, |users| Cell::figure("users", users, number::count(users.into()))),
        Cell::figure("response_time_us.mean", time.mean, number::time_with_interval(time.mean, time.mean_ci)),
        Cell::figure("response_time_us.p99", time.p99, number::time(time.p99)),
        entry
            .cpu_us_per_request
            .map_or_else(Cell::missing, |us| Cell::figure("cpu_us_per_request", us, number::time(us))),
        Cell::figure(
            "received_bytes_per_s",
            entry.received_bytes_per_s,
            number::prefixed(entry.received_bytes_per_s, "B/s"),
        ),
        Cell::figure("completed", entry.completed, number::count(entry.completed)),
        Cell::words(denied(entry)),
        Cell::words(stopped_by(entry)),
    ]
}

/// `2 processors, AMD EPYC, Linux 6.1`.
fn hardware(host: &Host) -> String {
    format!("{} processors, {}, Linux {}", host.cores, host.processor, host.kernel)
}

fn run(study: &Study) -> Vec<Fact> {
    vec![
        Fact::new("Host", hardware(&study.host), ""),
        Fact::new("Began", study.started.clone(), ""),
        Fact::new("Took", number::elapsed(study.elapsed_s), ""),
        Fact::new("Seed", study.seed.to_string(), ""),
        Fact::new("nstar", study.version.clone(), ""),
    ]
}
