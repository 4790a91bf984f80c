//! A comparison on a terminal: for each workload the order in words, then its table.

use analysis::comparison::{Claim, Comparison, Entry, Published, Workload};
use analysis::run::Resource;

use super::style::{self, Style};
use super::table::{Align, Column, GAP, fit, width_of};
use super::{MARGIN, TEXT_WIDTH_MAX, TerminalOptions, WIDTH_MIN, joined};
use crate::metrics::{Measurement, MetricUnit, Output, ShownIf, shown_in};
use crate::number::{self, TimeUnit};
use crate::sentences::published::claim_outcome;
use crate::sentences::{self, holders, left_out};
use crate::summary::comparison::{
    self as summary, beside, by_users, factor, failed, laws, listed, place, proofs, stopped_by,
};
use crate::words;

/// The width of what is written, without the margin: text keeps to a readable length, tables take all there is.
#[derive(Debug, Clone, Copy)]
struct Width {
    text: usize,
    table: usize,
}

/// The comparison as text for a terminal, ending in a newline.
pub(crate) fn text(comparison: &Comparison, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let table = options.width.max(WIDTH_MIN) - MARGIN.len();
    let width = Width { text: table.min(TEXT_WIDTH_MAX - MARGIN.len()), table };
    let mut blocks = vec![style::wrap(&style.text(&comparison.title), width.text, |line| style.strong(line))];
    blocks.push(interrupted(comparison, style, width.text));
    for work in &comparison.works {
        blocks.push(order(comparison, work, style, width.text));
        blocks.push(entries(comparison, work, style, width));
        blocks.extend(by_users_tables(comparison, work, style, width.table));
        blocks.push(wrapped(&summary::set_aside(work), style, width.text));
        blocks.push(wrapped(&summary::tested_in_short(work), style, width.text));
        blocks.push(wrapped(&summary::profiled(work), style, width.text));
        blocks.push(wrapped(&laws(comparison, work), style, width.text));
        blocks.push(proven(work, style, width.text));
        let drawn = beside(comparison, work).filter(|(_, published)| !published.figures.is_empty());
        blocks.extend(drawn.map(|(_, published)| figures(published, style, width.text)));
        blocks.extend(agreement(comparison, work, style, width.text));
    }
    let alone = summary::alone(comparison);
    blocks.extend(alone.map(|(_, published)| figures(published, style, width.text)));
    blocks.push(claims(comparison, style, width.text));
    blocks.push(all_left_out(comparison, style, width.text));
    blocks.push(footer(comparison, options, style, width.text));
    joined(&blocks)
}

/// What was published and what is claimed, held against what was measured: for a terminal that shows the runs already.
pub(crate) fn held_text(comparison: &Comparison, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let width = (options.width.max(WIDTH_MIN) - MARGIN.len()).min(TEXT_WIDTH_MAX - MARGIN.len());
    let works = comparison.works.iter();
    let mut blocks = vec![interrupted(comparison, style, width)];
    blocks.extend(works.flat_map(|work| agreement(comparison, work, style, width)));
    blocks.push(claims(comparison, style, width));
    blocks.push(style::wrap(&style.text(&options.files.join("  ")), width, |line| style.dim(line)));
    joined(&blocks)
}

fn interrupted(comparison: &Comparison, style: Style, width: usize) -> Vec<String> {
    let said = summary::interrupted(comparison).into_iter();
    said.flat_map(|said| style::wrap(said, width, |line| style.warn(line))).collect()
}

/// How far each publication agrees: a block for each.
fn agreement(comparison: &Comparison, work: &Workload, style: Style, width: usize) -> Vec<Vec<String>> {
    let block = |held: summary::Held| {
        let title = format!("Beside {} ({}): {}", held.title, held.hardware, held.summary);
        let sentences = wrapped(&held.sentences, style, width);
        style::wrap(&style.text(&title), width, |line| style.strong(line))
            .into_iter()
            .chain(sentences)
            .collect()
    };
    summary::held(comparison, work).into_iter().map(block).collect()
}

/// Every claim, and whether it is met.
fn claims(comparison: &Comparison, style: Style, width: usize) -> Vec<String> {
    let lines = |claim: &Claim| {
        let said = format!("Claim: {} {}", claim.text, claim_outcome(claim));
        let paint = |line: &str| if claim.met == Some(false) { style.warn(line) } else { line.to_owned() };
        style::wrap(&style.text(&said), width, paint)
    };
    comparison.claims.iter().flat_map(lines).collect()
}

fn wrapped(sentences: &[String], style: Style, width: usize) -> Vec<String> {
    let sentences = sentences.iter().map(|sentence| style.text(sentence));
    sentences.flat_map(|sentence| style::wrap(&sentence, width, str::to_owned)).collect()
}

fn order(comparison: &Comparison, work: &Workload, style: Style, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = style::wrap(&style.text(&work.name), width, |line| style.strong(line));
    lines.extend(wrapped(&[summary::order(comparison, work).join(" ")], style, width));
    lines
}

fn entries(comparison: &Comparison, work: &Workload, style: Style, width: Width) -> Vec<String> {
    let entries = listed(comparison, work);
    let mut columns = columns(comparison, work, &entries, style);
    columns.retain(|column| !column.is_empty());
    let table = fit(&columns, width.table);
    let rows = table.rows.into_iter().zip(&entries).flat_map(|(lines, entry)| {
        let first = entry.place == Some([1, 1]);
        lines.into_iter().map(move |line| if first { style.accent(&line) } else { line })
    });
    let doubts = doubts(&entries);
    let doubts =
        doubts.iter().flat_map(|doubt| style::wrap(&style.text(doubt), width.text, |line| style.warn(line)));
    std::iter::once(style.dim(&table.headings)).chain(rows).chain(doubts).collect()
}

fn columns(comparison: &Comparison, work: &Workload, entries: &[&Entry], style: Style) -> Vec<Column> {
    let times = TimeUnit::for_largest(entries.iter().map(|entry| entry.response_time_us.p99));
    let measured: Vec<Measurement<'_>> = entries.iter().map(|entry| Measurement::from(*entry)).collect();
    let words = |heading: &str, align, cell: &dyn Fn(&Entry) -> String| {
        Column::new(style, heading, align, entries, |entry| cell(entry))
    };
    let names = if comparison.is_over_counts() { Align::Right } else { Align::Left };
    let mut columns = vec![
        words("place", Align::Left, &place),
        words(&factor(&comparison.factor), names, &|entry| entry.variant.clone()),
        users(entries, style),
    ];
    for metric in
        shown_in(Output::EntriesText).filter(|metric| says_something(metric.shown_if(), work, entries))
    {
        let is_time = metric.unit() == MetricUnit::Time;
        // The first column of times says their unit.
        let first_time = is_time && metric.has_interval();
        let unit = if first_time { format!(" {}", times.name()) } else { String::new() };
        let heading = format!("{}{unit}", metric.text_label());
        columns.push(Column::metric(style, metric, &heading, &measured, times));
        // Where more is asked than can be served, how many were turned away matters more than how sure a mean is.
        if metric.has_interval() && metric.unit() != MetricUnit::OfBest && !(is_time && work.overload) {
            columns.push(Column::spread(style, metric, &measured));
        }
    }
    columns.push(words(if work.overload { "denied" } else { "errors" }, Align::Left, &failed));
    columns.push(words("stopped by", Align::Left, &stopped_by_or_busiest));
    columns
}

/// N* of a sweep; nothing where all variants had the same users, which the name of the workload says.
fn users(entries: &[&Entry], style: Style) -> Column {
    let swept = entries.iter().any(|entry| !entry.steps.is_empty());
    let alike = entries.iter().all(|entry| Some(entry.users) == entries.first().map(|first| first.users));
    Column::new(style, if swept { "N*" } else { "users" }, Align::Right, entries, |entry| {
        let users = entry.users.filter(|_| !alike);
        users.map_or_else(String::new, |users| number::count(users.into()))
    })
}

/// Bodies as long as this, bytes, make the bytes received worth a column.
const LARGE: f64 = 64e3;

/// Whether a metric says something about this workload that a terminal has room for.
fn says_something(shown_if: ShownIf, work: &Workload, entries: &[&Entry]) -> bool {
    let large = |entry: &&Entry| entry.received_bytes_per_s >= LARGE * entry.throughput_per_s.max(1.0);
    match shown_if {
        ShownIf::Always => true,
        ShownIf::Baseline => work.baseline.is_some(),
        ShownIf::Overload => work.overload,
        ShownIf::LargeBodies => entries.iter().any(large),
        // A figure of steps.
        ShownIf::FromDisk | ShownIf::Connecting => false,
    }
}

fn stopped_by_or_busiest(entry: &Entry) -> String {
    let stopped = stopped_by(entry);
    if !stopped.is_empty() {
        return stopped;
    }
    let busiest = |resource: &Resource| {
        format!("busiest {} {}", holders::resource_name(resource), number::percent(resource.utilization))
    };
    entry.busiest.as_ref().map_or_else(String::new, busiest)
}

/// The first doubt in words, and the names of the other variants in doubt: the page has every doubt.
fn doubts(entries: &[&Entry]) -> Vec<String> {
    let mut doubtful = entries.iter().filter_map(|entry| Some((&entry.variant, entry.doubts.first()?)));
    let Some((variant, doubt)) = doubtful.next() else { return Vec::new() };
    let others: Vec<&str> = doubtful.map(|(variant, _)| variant.as_str()).collect();
    let first = format!("In doubt: {variant}: {}", sentences::doubt(doubt));
    if others.is_empty() {
        return vec![first];
    }
    vec![first, format!("Also in doubt: {}. The report says why.", others.join(", "))]
}

/// Every variant by users, beside the published points: as many variants to a table as the width has room for.
fn by_users_tables(comparison: &Comparison, work: &Workload, style: Style, width: usize) -> Vec<Vec<String>> {
    let Some(by_users) = by_users(comparison, work) else { return Vec::new() };
    let users =
        || Column::new(style, "users", Align::Right, &by_users.users, |users| number::count((*users).into()));
    let (mut tables, mut columns) = (Vec::new(), vec![users()]);
    for column in &by_users.columns {
        let text = |cell: fn(&(f64, f64)) -> String, heading: &str| {
            Column::new(style, heading, Align::Right, &column.figures, |figures| {
                figures.as_ref().map_or_else(String::new, cell)
            })
        };
        let pair =
            [text(|(rate, _)| number::plain(*rate), column.name), text(|(_, us)| number::time(*us), "")];
        let full = columns.len() > 1 && width_of(&columns) + GAP.len() + width_of(&pair) > width;
        if full {
            tables.push(std::mem::replace(&mut columns, vec![users()]));
        }
        columns.extend(pair);
    }
    tables.push(columns);
    tables.iter().map(|columns| lines(&fit(columns, width), style)).collect()
}

fn lines(table: &super::table::Fitted, style: Style) -> Vec<String> {
    std::iter::once(style.dim(&table.headings)).chain(table.rows.iter().flatten().cloned()).collect()
}

/// The proofs of each variant.
fn proven(work: &Workload, style: Style, width: usize) -> Vec<String> {
    let lines = |(holds, text): (bool, String)| {
        style::wrap(&style.text(&words::unbroken(&text)), width, |line| {
            if holds { line.to_owned() } else { style.warn(line) }
        })
    };
    proofs(work).into_iter().flat_map(lines).collect()
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
        summary::hardware(published),
        published.unit,
        values.join(", ")
    );
    style::wrap(&style.text(&text), width, |line| style.dim(line))
}

fn all_left_out(comparison: &Comparison, style: Style, width: usize) -> Vec<String> {
    let texts = comparison.left_out.iter().map(|left| format!("Left out: {}", left_out::sentence(left)));
    texts.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.warn(line))).collect()
}

fn footer(comparison: &Comparison, options: &TerminalOptions, style: Style, width: usize) -> Vec<String> {
    let runs: usize =
        comparison.works.iter().flat_map(|work| &work.entries).map(|entry| entry.runs.len()).sum();
    let text =
        format!("{}  {runs} runs, {}", options.files.join("  "), number::elapsed(comparison.elapsed_s));
    style::wrap(&style.text(text.trim()), width, |line| style.dim(line))
}
