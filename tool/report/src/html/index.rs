//! The page of several experiments.

use analysis::comparison::{Comparison, Entry, Published, Workload};
use serde::Serialize;

use super::RenderError;
use super::bars::Drawn;
use super::chart::Chart;
use super::comparison::{Agreement, Claimed, agreement, claims, hardware};
use super::relative;
use crate::index::{Index, Outcome, Shown};
use crate::number;
use crate::sentences::left_out;
use crate::summary::comparison as summary;
use crate::summary::index::{self as phrases, standing};

/// The most variants of a workload whose doubts are shown.
const DOUBTS_MAX: usize = 3;

/// The index as a page that opens offline.
pub(crate) fn page(index: &Index) -> Result<String, RenderError> {
    super::render("index.html", Page::new(index))
}

#[derive(Debug, Serialize)]
struct Page {
    title: &'static str,
    reading: String,
    interrupted: bool,
    experiments: Vec<Section>,
    version: String,
}

/// One experiment.
#[derive(Debug, Serialize)]
struct Section {
    name: String,
    /// What it is called on the command line.
    given: String,
    title: String,
    /// What came of it, where it was not measured.
    standing: Option<String>,
    failed: bool,
    /// What it comes to, for the list of all.
    outcome: Vec<String>,
    page: String,
    took: String,
    works: Vec<Work>,
    claims_made: Vec<Claimed>,
    left_out: Vec<String>,
}

/// One workload.
#[derive(Debug, Serialize)]
struct Work {
    name: String,
    verdict: Vec<String>,
    /// Once for each publication, and once where there is none.
    charts: Vec<Charts>,
    /// Whether the agreement must name the publication, as the charts do not.
    names_publications: bool,
    agreement: Vec<Agreement>,
    doubts: Vec<String>,
}

/// A workload beside a publication.
#[derive(Debug, Serialize)]
struct Charts {
    curves: Option<Chart>,
    bars: Option<Drawn>,
    /// The publication, with hardware and year.
    beside: Option<String>,
}

impl Page {
    fn new(index: &Index) -> Self {
        let scale = if index.full { "Published scale" } else { "Quick scale" };
        let sections = index.experiments.iter().enumerate().map(|(place, shown)| section(shown, place));
        Self {
            title: "Published experiments – nstar",
            reading: format!(
                "{scale}, {}, begun {}, took {}.",
                hardware(&index.host),
                index.started,
                number::elapsed(index.elapsed_s)
            ),
            interrupted: index.interrupted,
            experiments: sections.collect(),
            version: index.version.clone(),
        }
    }
}

fn section(shown: &Shown, place: usize) -> Section {
    let empty = Section {
        name: shown.name.clone(),
        given: shown.given.clone(),
        title: shown.title.clone(),
        standing: None,
        failed: matches!(shown.outcome, Outcome::Failed { .. }),
        outcome: Vec::new(),
        page: String::new(),
        took: String::new(),
        works: Vec::new(),
        claims_made: Vec::new(),
        left_out: Vec::new(),
    };
    let Outcome::Measured { comparison, page } = &shown.outcome else {
        return Section { standing: Some(standing(&shown.outcome)), ..empty };
    };
    let works = comparison.works.iter().enumerate();
    Section {
        outcome: phrases::agreements(comparison).into_iter().chain(phrases::claims(comparison)).collect(),
        page: page.clone(),
        took: number::elapsed(comparison.elapsed_s),
        works: works.map(|(index, work)| of_work(comparison, work, &format!("{place}-{index}"))).collect(),
        claims_made: claims(comparison),
        left_out: comparison.left_out.iter().map(left_out::sentence).collect(),
        ..empty
    }
}

fn of_work(comparison: &Comparison, work: &Workload, id: &str) -> Work {
    let mut published: Vec<Option<&Published>> = comparison.published_of(work).map(Some).collect();
    let names_publications = published.len() > 1 || !published.iter().flatten().all(|one| is_drawn(one));
    published.retain(|one| one.is_some_and(is_drawn));
    if published.is_empty() {
        published.push(None);
    }
    let charts = published.into_iter().enumerate();
    Work {
        name: work.name.clone(),
        verdict: summary::order(comparison, work),
        charts: charts
            .map(|(place, published)| charts_of(work, published, &format!("{id}-{place}")))
            .collect(),
        names_publications,
        agreement: agreement(comparison, work),
        doubts: doubts(work),
    }
}

/// Whether it has anything to draw.
fn is_drawn(published: &Published) -> bool {
    !published.figures.is_empty() || !published.points.is_empty()
}

fn charts_of(work: &Workload, published: Option<&Published>, id: &str) -> Charts {
    Charts {
        bars: relative::paired(work, published, id).filter(|_| work.entries.len() > 1),
        curves: relative::curves(work, published, id),
        beside: published.map(|published| format!("{}, {}", published.title, summary::hardware(published))),
    }
}

/// The first reasons not to rely on the figures; the report has all of them.
fn doubts(work: &Workload) -> Vec<String> {
    let of = |entry: &Entry| {
        let of_variant =
            if entry.variant.is_empty() { String::new() } else { format!("{}: ", entry.variant) };
        summary::doubts(entry).first().map(|doubt| format!("{of_variant}{doubt}"))
    };
    work.entries.iter().filter_map(of).take(DOUBTS_MAX).collect()
}
