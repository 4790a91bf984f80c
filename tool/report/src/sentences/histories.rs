//! Words for the course of figures over many runs.

use analysis::contrast::Point;
use analysis::history::{ChangePoint, Course, Followed, RUNS_MIN, RunDifferences};

use super::contrasts;
use crate::number;
use crate::words;

/// A figure that is followed, as a heading.
pub(crate) fn figure(of: Followed) -> &'static str {
    match of {
        Followed::Throughput => "Throughput",
        Followed::Users => "N*",
        Followed::CpuPerRequest => "CPU per request",
    }
}

/// A value of it.
pub(crate) fn value(of: Followed, value: f64) -> String {
    match of {
        Followed::Throughput => format!("{} req/s", level(value)),
        Followed::Users => number::tenths(value),
        Followed::CpuPerRequest => number::time(value),
    }
}

/// A level of throughput: of two that differ by a few per cent, three digits would hide it.
fn level(value: f64) -> String {
    number::estimate(value, Some([0.985, 1.015].map(|end| end * value)))
}

/// What the runs of a course measured: `http://localhost/, one load of 10 users (Think time: 100 ms)`.
pub(crate) fn title(of: &Course) -> String {
    let title = match of.load {
        None => of.target.clone(),
        Some(load) => match load.rate_per_s {
            Some(rate) => format!("{}, {} offered", of.target, number::rate(rate, None)),
            None => format!("{}, one load of {}", of.target, words::users(load.users)),
        },
    };
    let apart = of.told_apart_by.iter().map(|of| contrasts::named_setting(&of.aspect, &of.setting));
    let apart: Vec<String> = apart.collect();
    if apart.is_empty() { title } else { format!("{title} ({})", apart.join("; ")) }
}

/// A change in a sentence.
pub(crate) fn change(of: &ChangePoint) -> String {
    let verb = if of.ratio > 1.0 { "rose" } else { "fell" };
    format!(
        "{} {verb} with {}: {} after {} ({}). By chance so much would be seen in {} of series without a change.",
        figure(of.figure),
        of.file,
        value(of.figure, of.after),
        value(of.figure, of.before),
        number::change(of.ratio, None),
        number::percent(of.chance)
    )
}

/// What was found in the course, one sentence each.
pub(crate) fn found(of: &Course) -> Vec<String> {
    let unjudged = unjudged(of);
    if of.changes.is_empty() {
        let none = || format!("No change is shown in {} runs.", number::count(of.runs.len() as u64));
        return vec![unjudged.unwrap_or_else(none)];
    }
    let changes = changes(of, &of.changes.iter().collect::<Vec<_>>());
    let changes = changes.into_iter().flat_map(|(change, beside)| std::iter::once(change).chain(beside));
    unjudged.into_iter().chain(changes).collect()
}

/// Why no change of throughput can be found in the course, where none can.
pub(crate) fn unjudged(of: &Course) -> Option<String> {
    let known = Followed::Throughput.known_in(&of.runs);
    let [known_runs, runs, least] = [known, of.runs.len(), RUNS_MIN].map(|of| number::count(of as u64));
    if known >= RUNS_MIN {
        return None;
    }
    if of.runs.len() < RUNS_MIN {
        let are = if of.runs.len() == 1 { "is" } else { "are" };
        return Some(format!("To find a change takes {least} runs; there {are} {runs}."));
    }
    Some(format!(
        "Only {known_runs} of {runs} runs drove the server to its limit; to find a change of throughput takes {least}."
    ))
}

/// Changes in a sentence each, and after the last of those that came with one run what else changed with it.
pub(crate) fn changes(course: &Course, all: &[&ChangePoint]) -> Vec<(String, Option<String>)> {
    let beside = |place: usize, found: &ChangePoint| {
        let is_last = all.iter().skip(place + 1).all(|later| later.first_run != found.first_run);
        came_with(course, found).filter(|_| is_last)
    };
    all.iter().enumerate().map(|(place, &found)| (change(found), beside(place, found))).collect()
}

/// What else changed with the run that a change came with.
fn came_with(course: &Course, change: &ChangePoint) -> Option<String> {
    let beside = course.differences.iter().find(|of| of.run == change.first_run)?;
    let all: Vec<String> = beside.differences.iter().map(contrasts::difference).collect();
    Some(format!("With {} something else changed too. {}", change.file, all.join(" ")))
}

/// The runs of a course, each with whether a figure changed with it, and a remark: what changed, and why to distrust it.
pub(crate) fn rows(course: &Course) -> Vec<(&Point, bool, String)> {
    let runs = course.runs.iter().enumerate();
    runs.map(|(index, run)| (run, changes_at(course, index).next().is_some(), remark(course, index, run)))
        .collect()
}

fn remark(course: &Course, index: usize, run: &Point) -> String {
    let changes = changes_at(course, index)
        .map(|change| format!("{} {}", figure(change.figure), number::change(change.ratio, None)));
    let differences = course.differences.iter().filter(|of| of.run as usize == index).map(new_aspects);
    changes.chain(differences).chain(distrust(run)).collect::<Vec<_>>().join(", ")
}

fn changes_at(course: &Course, index: usize) -> impl Iterator<Item = &ChangePoint> {
    course.changes.iter().filter(move |change| change.first_run as usize == index)
}

/// `new kernel, memory`.
fn new_aspects(of: &RunDifferences) -> String {
    let names = of.differences.iter().map(|difference| within(contrasts::aspect(&difference.aspect)));
    format!("new {}", names.collect::<Vec<_>>().join(", "))
}

/// A name within a sentence; an abbreviation stays.
fn within(name: &str) -> String {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(chars).collect()
        }
        _ => name.to_owned(),
    }
}

/// Reasons not to rely on a run.
fn distrust(run: &Point) -> impl Iterator<Item = String> {
    // Fewer are not worth a word.
    const FAILED: f64 = 0.001;
    let standing = match run {
        run if run.lower_bound => Some("lower bound".to_owned()),
        run if !run.conclusive => Some("inconclusive".to_owned()),
        _ => None,
    };
    let failed = (run.failed_share > FAILED).then(|| number::percent(run.failed_share) + " failed");
    standing.into_iter().chain(failed)
}

/// How changes are found.
pub(crate) const METHOD: &str = "Changes are found by E-divisive on logarithms, and tested by shuffling: 95 times in 100 none is found where there is none.";
