//! The page of a run, in the order of its sections.

use std::collections::BTreeSet;

use analysis::run::{Run, Step};
use serde::Serialize;

use super::facts::{self, Fact};
use super::figures::{self, Figure};
use super::table::{Cell, Column, Table};
use super::{off_cpu, profile, requests, threads, topology};
use crate::metrics::{Output, shown_in};
use crate::number;
use crate::sentences::{self, holders};
use crate::summary;
use crate::words::{self, ERROR_KINDS};

/// One in so many bytes of flame graphs is for where threads sleep.
const ASLEEP_PART: usize = 8;

/// The page, as the template reads it.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    target: String,
    headline: String,
    inconclusive: Vec<String>,
    warnings: Vec<Notice>,
    verdict: Vec<Fact>,
    evidence: Vec<String>,
    next: Option<String>,
    requests: Option<Table>,
    threads: Option<Table>,
    profile: Option<profile::Section>,
    off_cpu: Option<off_cpu::Section>,
    topology: Option<topology::Section>,
    figures: Vec<Figure>,
    steps: Option<Table>,
    utilization: Option<Table>,
    errors: Option<Table>,
    little: String,
    demands: Option<Table>,
    models: Vec<Fact>,
    predicted: Option<Table>,
    run: Vec<Fact>,
}

#[derive(Debug, Serialize)]
struct Notice {
    kind: &'static str,
    text: String,
}

impl Page {
    /// The page, with flame graphs of at most so many bytes.
    pub(super) fn new(run: &Run, graphs_bytes: usize) -> Self {
        let warnings = run.warnings.iter();
        let asleep_bytes = graphs_bytes / ASLEEP_PART;
        Self {
            title: format!("{} – nstar", run.target),
            target: run.target.clone(),
            headline: summary::headline(run),
            inconclusive: sentences::doubts(&run.verdict),
            warnings: warnings
                .map(|w| Notice { kind: words::warning(w.kind), text: sentences::warning(&w.cause) })
                .collect(),
            verdict: facts::verdict(run),
            evidence: evidence(run),
            next: run.verdict.next_limit.as_ref().map(sentences::next),
            requests: requests::table(run),
            threads: threads::table(run),
            profile: profile::section(run, graphs_bytes - asleep_bytes),
            off_cpu: off_cpu::section(run, asleep_bytes),
            topology: topology::section(run),
            figures: figures::figures(run),
            steps: steps(run),
            utilization: figures::utilization_table(run),
            errors: errors(run),
            little: summary::little(run),
            demands: demands(run),
            models: facts::models(run),
            predicted: predicted(run),
            run: facts::run(run),
        }
    }
}

/// What speaks for the verdict: what was seen, what slowing each tier showed, and where its processor time goes. Then what the
/// response times leave out.
fn evidence(run: &Run) -> Vec<String> {
    let tested = run.confirmation.as_ref().map(sentences::confirmation);
    let why = sentences::profile(run);
    let lookup = summary::name_lookup(run);
    summary::evidence(&run.verdict.bottleneck).into_iter().chain(tested).chain(why).chain(lookup).collect()
}

fn steps(run: &Run) -> Option<Table> {
    let cells = |step: &Step| {
        let measured = step.into();
        let metrics = shown_in(Output::StepsPage);
        metrics.map(|metric| Cell::metric(metric, &measured, |unit, quantity| unit.cell(quantity))).collect()
    };
    (!run.steps.is_empty()).then(|| Table {
        id: "steps-table".into(),
        caption: "What was measured at each number of users".into(),
        columns: shown_in(Output::StepsPage).map(Column::metric).collect(),
        rows: figures::step_rows(run, cells),
    })
}

fn errors(run: &Run) -> Option<Table> {
    let seen: BTreeSet<_> = run.steps.iter().flat_map(|step| step.errors.keys().copied()).collect();
    let kinds: Vec<_> = ERROR_KINDS.into_iter().filter(|kind| seen.contains(kind)).collect();
    let row = |step: &Step| {
        let counts = kinds.iter().map(|kind| {
            let count = step.errors.get(kind).copied().unwrap_or(0);
            Cell::figure("errors.kind", count, number::count(count))
        });
        std::iter::once(figures::users_cell(step)).chain(counts).collect()
    };
    let headings = kinds.iter().map(|kind| Column::numeric(words::capitalised(words::error_kind(*kind))));
    (!kinds.is_empty()).then(|| Table {
        id: "errors-table".into(),
        caption: "Requests that failed, by kind".into(),
        columns: std::iter::once(Column::numeric("Users")).chain(headings).collect(),
        rows: figures::step_rows(run, row),
    })
}

fn demands(run: &Run) -> Option<Table> {
    let rows = run.laws.demands.iter().map(|demand| super::table::Row {
        marked: demand.kind == run.verdict.bottleneck.kind
            && demand.identity == run.verdict.bottleneck.identity,
        cells: vec![
            Cell::words(holders::holder_or_kind(demand.kind, demand.identity.as_ref())),
            Cell::words(words::kind(demand.kind)),
            Cell::figure(
                "demand_us",
                demand.demand_us,
                number::time_with_interval(demand.demand_us, demand.demand_ci_us),
            ),
            Cell::figure(
                "throughput_limit_per_s",
                demand.throughput_limit_per_s,
                number::plain(demand.throughput_limit_per_s),
            ),
        ],
    });
    (!run.laws.demands.is_empty()).then(|| Table {
        id: "demands-table".into(),
        caption:
            "What a request costs each resource by all steps, and the throughput at which it alone is full"
                .into(),
        columns: vec![
            Column::words("Resource"),
            Column::words("Kind"),
            Column::numeric("Demand per request (95 % interval)"),
            Column::numeric("Full at, requests/s"),
        ],
        rows: rows.collect(),
    })
}

fn predicted(run: &Run) -> Option<Table> {
    let predicted = run.models.mva.as_ref().filter(|points| !points.is_empty())?;
    let rows = predicted.iter().map(|point| super::table::Row {
        marked: run.verdict.users_at_saturation == Some(point.users),
        cells: vec![
            Cell::figure("mva.users", point.users, number::count(point.users.into())),
            Cell::figure(
                "mva.throughput_per_s",
                point.throughput_per_s,
                number::plain(point.throughput_per_s),
            ),
            Cell::figure(
                "mva.response_time_us",
                point.response_time_us,
                number::time(point.response_time_us),
            ),
        ],
    });
    Some(Table {
        id: "mva-table".into(),
        caption: "Mean value analysis of the measured demands".into(),
        columns: ["Users", "Predicted requests/s", "Predicted response time"].map(Column::numeric).into(),
        rows: rows.collect(),
    })
}
