//! A study on a terminal: for each work the order in words, then the table.

use analysis::run::Resource;
use analysis::study::{Entry, Published, Study, Work};

use super::style::{self, Style};
use super::table::{Align, Column, cut, row};
use super::{MARGIN, TerminalOptions, WIDTH_MAX, WIDTH_MIN, joined};
use crate::by_users::{Figures, by_users, laws, proofs};
use crate::number::{self, TimeUnit};
use crate::study::{axis, denied, is_count, listed, place, stopped_by};
use crate::words;

/// The study as text for a terminal, ending in a newline.
pub(crate) fn study(study: &Study, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = options.width.clamp(WIDTH_MIN, WIDTH_MAX) - MARGIN.len();
    let mut blocks = vec![vec![style.strong(&style.text(&study.title))]];
    for work in &study.works {
        blocks.push(order(work, style, width));
        blocks.push(table(study, work, style, width));
        blocks.push(steps(study, work, style, width));
        blocks.push(proven(work, style, width));
        let beside = study.published.iter().filter(|published| published.work.as_ref() == Some(&work.name));
        let beside = beside.filter(|published| !published.figures.is_empty());
        blocks.extend(beside.map(|published| figures(published, style, width)));
    }
    let alone = study.published.iter().filter(|published| published.work.is_none());
    blocks.extend(alone.map(|published| figures(published, style, width)));
    blocks.push(left_out(study, style, width));
    blocks.push(footer(study, options, style, width));
    joined(&blocks)
}

fn order(work: &Work, style: Style, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = style::wrap(&style.text(&work.name), width, |line| style.strong(line));
    let sentences = work.order.iter().map(|sentence| words::unbroken(sentence)).collect::<Vec<_>>().join(" ");
    lines.extend(style::wrap(&style.text(&sentences), width, str::to_owned));
    lines
}

fn table(study: &Study, work: &Work, style: Style, width: usize) -> Vec<String> {
    let entries = listed(study, work);
    let mut columns = columns(study, work, &entries, style);
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    let heading = style.dim(&cut(row(&columns, |column| &column.heading), width, style));
    let lines = entries.iter().enumerate().map(|(index, entry)| {
        let line = row(&columns, |column| column.cells.get(index).map_or("", String::as_str));
        let line = cut(line, width, style);
        if entry.place == Some([1, 1]) { style.accent(&line) } else { line }
    });
    let doubts = doubts(&entries);
    let doubts =
        doubts.iter().flat_map(|doubt| style::wrap(&style.text(doubt), width, |line| style.warn(line)));
    std::iter::once(heading).chain(lines).chain(doubts).collect()
}

/// Every variant by users, beside the published points, and what the laws say of both.
fn steps(study: &Study, work: &Work, style: Style, width: usize) -> Vec<String> {
    let laws = laws(study, work);
    let laws =
        laws.iter().flat_map(|law| style::wrap(&style.text(&words::unbroken(law)), width, str::to_owned));
    let Some(by_users) = by_users(study, work) else { return laws.collect() };
    let users = by_users.users.iter().map(|users| number::count((*users).into())).collect();
    let mut columns = vec![Column { heading: "users".into(), cells: users, align: Align::Right }];
    for column in &by_users.columns {
        let cells = |cell: &dyn Fn(&Figures) -> String| {
            column
                .figures
                .iter()
                .map(|figures| style.text(&figures.as_ref().map_or_else(String::new, cell)))
                .collect()
        };
        let (rates, times) = (cells(&|(rate, _)| number::plain(*rate)), cells(&|(_, us)| number::time(*us)));
        columns.push(Column { heading: style.text(column.name), cells: rates, align: Align::Right });
        columns.push(Column { heading: String::new(), cells: times, align: Align::Right });
    }
    let heading = style.dim(&cut(row(&columns, |column| &column.heading), width, style));
    let lines = (0..by_users.users.len()).map(|index| {
        cut(row(&columns, |column| column.cells.get(index).map_or("", String::as_str)), width, style)
    });
    std::iter::once(heading).chain(lines).chain(laws).collect()
}

/// What was proven of each variant.
fn proven(work: &Work, style: Style, width: usize) -> Vec<String> {
    let line = |(holds, text): (bool, String)| {
        style::wrap(&style.text(&words::unbroken(&text)), width, |line| {
            if holds { line.to_owned() } else { style.warn(line) }
        })
    };
    proofs(work).into_iter().flat_map(line).collect()
}

/// The first doubt in words, and who else is in doubt: the page has them all.
fn doubts(entries: &[&Entry]) -> Vec<String> {
    let mut doubtful = entries.iter().filter_map(|entry| Some((&entry.variant, entry.doubts.first()?)));
    let Some((variant, doubt)) = doubtful.next() else { return Vec::new() };
    let others: Vec<&str> = doubtful.map(|(variant, _)| variant.as_str()).collect();
    let first = format!("In doubt: {variant}: {}", words::unbroken(doubt));
    if others.is_empty() {
        return vec![first];
    }
    vec![first, format!("Also in doubt, as the report tells: {}.", others.join(", "))]
}

fn columns(study: &Study, work: &Work, entries: &[&Entry], style: Style) -> Vec<Column> {
    let unit = TimeUnit::for_largest(entries.iter().map(|entry| entry.response_time_us.p99));
    let column = |heading: &str, align, cell: &dyn Fn(&Entry) -> String| Column {
        heading: style.text(heading),
        cells: entries.iter().map(|entry| style.text(&cell(entry))).collect(),
        align,
    };
    let ci = |entry: &Entry| Some(entry.throughput_ci_per_s);
    let swept = entries.iter().any(|entry| !entry.steps.is_empty());
    let mut columns = vec![
        column("place", Align::Left, &place),
        column(axis(study), if is_count(study) { Align::Right } else { Align::Left }, &|entry| {
            entry.variant.clone()
        }),
        column("req/s", Align::Right, &|entry| number::estimate(entry.throughput_per_s, ci(entry))),
        column("", Align::Left, &|entry| number::spread(entry.throughput_per_s, ci(entry))),
        column("of first", Align::Left, &of_fastest),
        column(if swept { "N*" } else { "users" }, Align::Right, &|entry| {
            let users = entry.users.filter(|_| !all_alike(entries));
            users.map_or_else(String::new, |users| number::count(users.into()))
        }),
        column(&format!("response {}", unit.name()), Align::Right, &|entry| {
            number::plain(unit.of(entry.response_time_us.mean))
        }),
    ];
    // An overload has other columns to show.
    if !work.overload {
        columns.push(column("", Align::Left, &|entry| {
            number::spread(entry.response_time_us.mean, entry.response_time_us.mean_ci)
        }));
    }
    columns.push(column("p99", Align::Right, &|entry| number::plain(unit.of(entry.response_time_us.p99))));
    columns.push(column("CPU each", Align::Right, &|entry| {
        entry.cpu_us_per_request.map_or_else(String::new, number::time)
    }));
    if work.overload {
        columns.push(column("served", Align::Right, &|entry| number::count(entry.completed)));
    }
    columns.push(column(if work.overload { "denied" } else { "errors" }, Align::Left, &denied));
    if entries.iter().any(|entry| entry.received_bytes_per_s >= LARGE * entry.throughput_per_s.max(1.0)) {
        columns.push(column("received", Align::Right, &|entry| {
            number::prefixed(entry.received_bytes_per_s, "B/s")
        }));
    }
    columns.push(column("stopped by", Align::Left, &stopped_by_or_busiest));
    columns
}

/// Where answers are as long as this, bytes, how many bytes came in all is worth a column.
const LARGE: f64 = 64e3;

/// Whether all had the same number of users, as in a load, whose name says how many.
fn all_alike(entries: &[&Entry]) -> bool {
    entries.iter().all(|entry| Some(entry.users) == entries.first().map(|first| first.users))
}

/// `82 % (80–84)`.
fn of_fastest(entry: &Entry) -> String {
    let Some(share) = entry.of_fastest else { return String::new() };
    if share.ratio == 1.0 {
        return String::new();
    }
    let [lo, hi] = share.ci.map(|end| (end * 100.0).round());
    format!("{} ({lo:.0}–{hi:.0})", number::percent(share.ratio))
}

fn stopped_by_or_busiest(entry: &Entry) -> String {
    let stopped = stopped_by(entry);
    if !stopped.is_empty() {
        return stopped;
    }
    let busiest = |resource: &Resource| {
        format!("busiest {} {}", words::resource_name(resource), number::percent(resource.utilization))
    };
    entry.busiest.as_ref().map_or_else(String::new, busiest)
}

/// Published figures in a line: their own scale, on their own hardware.
fn figures(published: &Published, style: Style, width: usize) -> Vec<String> {
    let values: Vec<String> = published
        .figures
        .iter()
        .map(|figure| format!("{}:\u{a0}{}", figure.variant, number::estimate(figure.value, None)))
        .collect();
    let text = format!(
        "Published ({}; {}): {}, {}.",
        published.title,
        published.hardware,
        published.unit,
        values.join(", ")
    );
    style::wrap(&style.text(&text), width, |line| style.dim(line))
}

fn left_out(study: &Study, style: Style, width: usize) -> Vec<String> {
    let texts = study.left_out.iter().map(|left| format!("Left out: {}: {}", left.what, left.why));
    texts.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.warn(line))).collect()
}

fn footer(study: &Study, options: &TerminalOptions, style: Style, width: usize) -> Vec<String> {
    let runs: usize = study.works.iter().flat_map(|work| &work.entries).map(|entry| entry.runs.len()).sum();
    let text = format!("{}  {runs} runs, {}", options.files.join("  "), number::elapsed(study.elapsed_s));
    style::wrap(&style.text(text.trim()), width, |line| style.dim(line))
}
