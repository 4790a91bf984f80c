//! Words for the course of figures over many runs.

use analysis::history::{ChangePoint, Course, Followed, RUNS_MIN};

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

/// What the runs of a course measured: `http://localhost/, one load of 10 users`.
pub(crate) fn title(of: &Course) -> String {
    match of.load {
        None => of.target.clone(),
        Some(load) => match load.rate_per_s {
            Some(rate) => format!("{}, {} offered", of.target, number::rate(rate, None)),
            None => format!("{}, one load of {}", of.target, words::users(load.users)),
        },
    }
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
    if of.runs.len() < RUNS_MIN {
        return vec![format!(
            "To find a change takes {} runs; there {} {}.",
            number::count(RUNS_MIN as u64),
            if of.runs.len() == 1 { "is" } else { "are" },
            number::count(of.runs.len() as u64)
        )];
    }
    if of.changes.is_empty() {
        return vec![format!("No change is shown in {} runs.", number::count(of.runs.len() as u64))];
    }
    of.changes.iter().map(change).collect()
}

/// How changes are found.
pub(crate) const METHOD: &str = "Changes are found by E-divisive on logarithms, and tested by shuffling: 95 times in 100 none is found where there is none.";
