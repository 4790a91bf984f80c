//! The page of many runs in the order of time.

use analysis::contrast::Point;
use analysis::history::{Course, Followed, History};
use serde::Serialize;

use super::chart::{Chart, NARROW, Plot, Series, WIDE};
use super::table::Table;
use super::{RenderError, runs};
use crate::axis::Axis;
use crate::number;
use crate::sentences::histories;

/// The history as a page that opens offline.
pub(crate) fn page(history: &History) -> Result<String, RenderError> {
    super::render("history.html", Page::new(history))
}

#[derive(Debug, Serialize)]
struct Page {
    title: &'static str,
    headline: String,
    courses: Vec<Section>,
    method: &'static str,
}

/// The runs of one target and load.
#[derive(Debug, Serialize)]
struct Section {
    id: String,
    name: String,
    found: Vec<String>,
    figures: Vec<Figure>,
    table: Table,
}

#[derive(Debug, Serialize)]
struct Figure {
    heading: &'static str,
    charts: Vec<Chart>,
}

impl Page {
    fn new(history: &History) -> Self {
        let runs: usize = history.courses.iter().map(|course| course.runs.len()).sum();
        let changes: usize = history.courses.iter().map(|course| course.changes.len()).sum();
        let changes = match changes {
            0 => "no change".to_owned(),
            1 => "one change".to_owned(),
            some => format!("{} changes", number::count(some as u64)),
        };
        Self {
            title: "History – nstar",
            headline: crate::words::capitalised(&format!("{changes} in {} runs", number::count(runs as u64))),
            courses: history.courses.iter().enumerate().map(|(index, of)| section(of, index)).collect(),
            method: histories::METHOD,
        }
    }
}

fn section(course: &Course, index: usize) -> Section {
    Section {
        id: format!("course-{index}"),
        name: histories::title(course),
        found: histories::found(course),
        figures: Followed::ALL.into_iter().filter_map(|of| figure(course, of, index)).collect(),
        table: runs::table(
            format!("runs-{index}"),
            "The runs by when they began".into(),
            &histories::rows(course),
        ),
    }
}

/// A figure over the runs, with its level between changes. `None` where no run has it.
fn figure(course: &Course, of: Followed, index: usize) -> Option<Figure> {
    let at = |(index, run): (usize, &Point)| Some(((index + 1) as f64, of.of(run)?));
    let values: Vec<(f64, f64)> = course.runs.iter().enumerate().filter_map(at).collect();
    let ends = values
        .iter()
        .map(|(_, value)| *value)
        .chain(intervals(course, of).into_iter().flat_map(|(_, lo, hi)| [lo, hi]));
    let y = Axis::around(ends.collect::<Vec<_>>());
    let level = |(from, to, level): (u32, u32, f64)| Series {
        class: "bound",
        values: [from, to].map(|run| (f64::from(run + 1), level)).to_vec(),
        ..Series::default()
    };
    let mut series: Vec<Series> = course.levels(of).into_iter().map(level).collect();
    let note = |(place, value): &(f64, f64)| {
        let run = course.runs.get(*place as usize - 1)?;
        Some((*place, format!("{}: {}", run.file, histories::value(of, *value))))
    };
    let notes = values.iter().filter_map(note).collect();
    series.push(Series { class: "main", intervals: intervals(course, of), values, ..Series::default() });
    let plot = Plot {
        id: format!("{}-{index}", histories::figure(of).replace([' ', '*'], "-").to_lowercase()),
        title: format!("{} by run", histories::figure(of)),
        description: histories::found(course).join(" "),
        y_name: histories::figure(of).into(),
        x_name: "runs",
        x: Axis::counted(course.runs.len()),
        y,
        y_tick: if of == Followed::CpuPerRequest { number::time } else { number::axis_label },
        series,
        saturation: None,
        notes,
    };
    let is_known = plot.series.iter().any(|series| !series.values.is_empty());
    is_known
        .then(|| Figure { heading: histories::figure(of), charts: vec![plot.draw(WIDE), plot.draw(NARROW)] })
}

/// Intervals from within the runs.
fn intervals(course: &Course, of: Followed) -> Vec<(f64, f64, f64)> {
    let of_run = |run: &Point| match of {
        Followed::Throughput => Some(run.throughput_ci_per_s),
        Followed::Users => run.users_ci.map(|ci| ci.map(f64::from)),
        Followed::CpuPerRequest => None,
    };
    let runs = course.runs.iter().enumerate().filter(|(_, run)| of.of(run).is_some());
    runs.filter_map(|(index, run)| of_run(run).map(|[lo, hi]| ((index + 1) as f64, lo, hi))).collect()
}
