//! The sides of a contrast: run files, or variants of a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::step_at;
use crate::comparison::{
    AtUsers, Comparison, Entry, Limit, by_users, cpu_us_per_request, is_lower_bound, limit,
};
use crate::run::{Host, PERCENTILES, Run};

/// A run, and the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Its file.
    pub file: String,
    /// The run.
    pub run: Run,
}

/// A variant of a comparison, or all of its variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The file of the comparison.
    pub file: String,
    /// The variant; `None`: each is compared with the one of its name.
    pub name: Option<String>,
    /// The comparison.
    pub comparison: Comparison,
}

/// One side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The files.
    pub files: Vec<String>,
    /// What was driven, or the title of the comparison.
    pub target: String,
    /// The variant, where one was named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Where the generator ran.
    pub host: Host,
    /// The version of nstar.
    pub version: String,
    /// The runs, in the order given; empty for variants.
    pub runs: Vec<Point>,
}

/// What a run came to, in short.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Its file.
    pub file: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Maximum throughput; of one load, its throughput.
    pub throughput_per_s: f64,
    /// 95 % interval of it, from within the run.
    pub throughput_ci_per_s: [f64; 2],
    /// Whether it is only a lower bound.
    pub lower_bound: bool,
    /// N*; absent of loads, and where it was not found.
    pub users: Option<u32>,
    /// 95 % interval of N*.
    pub users_ci: Option<[u32; 2]>,
    /// Mean response time at N*, microseconds.
    pub response_time_us: f64,
    /// The 95th percentile of it; absent where the sample is too small, and in files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_us: Option<f64>,
    /// The 99th percentile of it; absent where the sample is too small.
    pub p99_us: Option<f64>,
    /// CPU time of all watched tiers per request, microseconds; absent where it could not be watched.
    pub cpu_us_per_request: Option<f64>,
    /// What stopped the server.
    pub bottleneck: Option<Limit>,
    /// Failed requests as a share of all, 0 to 1.
    pub failed_share: f64,
    /// Whether the answer can be relied on.
    pub conclusive: bool,
}

/// Reasons why variants cannot be put beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariantError {
    /// A comparison has no such variant.
    Unknown {
        /// Its file.
        file: String,
        /// The variant that was named.
        variant: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// The comparisons have no workload in common of which both measured the variant.
    NothingInCommon,
}

impl Point {
    /// What a run came to.
    pub fn of(Given { file, run }: &Given) -> Self {
        let verdict = &run.verdict;
        let time = &verdict.response_time_at_saturation_us;
        let percentile = |name: &str| PERCENTILES.iter().find(|known| known.name == name)?.read(time);
        Self {
            file: file.clone(),
            started: run.started.clone(),
            throughput_per_s: verdict.throughput_max_per_s,
            throughput_ci_per_s: verdict.throughput_max_ci_per_s,
            lower_bound: is_lower_bound(run),
            users: verdict.users_at_saturation,
            users_ci: verdict.users_at_saturation_ci,
            response_time_us: time.mean,
            p95_us: percentile("p95"),
            p99_us: percentile("p99"),
            cpu_us_per_request: run.verdict_step().and_then(cpu_us_per_request),
            bottleneck: limit(run),
            failed_share: run.failed_share(),
            conclusive: verdict.is_conclusive(),
        }
    }
}

impl Side {
    pub(super) fn of_runs(runs: &[Given]) -> Self {
        let first = runs.first().map(|given| &given.run);
        Self {
            files: runs.iter().map(|given| given.file.clone()).collect(),
            target: first.map(|run| run.target.clone()).unwrap_or_default(),
            host: first.map(|run| run.host.clone()).unwrap_or_default(),
            version: first.map(|run| run.version.clone()).unwrap_or_default(),
            variant: String::new(),
            runs: runs.iter().map(Point::of).collect(),
        }
    }

    pub(super) fn of_variant(of: &Variant) -> Self {
        Self {
            files: vec![of.file.clone()],
            target: of.comparison.title.clone(),
            variant: of.name.clone().unwrap_or_default(),
            host: of.comparison.host.clone(),
            version: of.comparison.version.clone(),
            runs: Vec::new(),
        }
    }
}

/// The runs, each once: a copy of a file is no repeat.
pub(super) fn without_copies(runs: Vec<Given>) -> Vec<Given> {
    let mut kept: Vec<Given> = Vec::with_capacity(runs.len());
    for given in runs {
        if kept.iter().all(|other| other.run != given.run) {
            kept.push(given);
        }
    }
    kept
}

/// The number of users that all runs of both sides measured and that is nearest to N* of the side before; without N* the
/// largest. `None` if they have none in common.
pub(super) fn common_users(before: &[Given], after: &[Given]) -> Option<u32> {
    let all = || before.iter().chain(after).map(|given| &given.run);
    let measured = |run: &Run, users: u32| step_at(run, Some(users)).is_some_and(|step| step.users == users);
    let first = all().next()?;
    let candidates = first.steps.iter().map(|step| step.users).filter(|users| *users > 0);
    let common = candidates.filter(|users| all().all(|run| measured(run, *users)));
    let mut stars: Vec<u32> =
        before.iter().filter_map(|given| given.run.verdict.users_at_saturation).collect();
    stars.sort_unstable();
    let Some(star) = stars.get(stars.len().saturating_sub(1) / 2) else { return common.max() };
    let apart = |users: &u32| (f64::from(*users) / f64::from((*star).max(1))).ln().abs();
    common.min_by(|a, b| apart(a).total_cmp(&apart(b)).then(b.cmp(a)))
}

/// The steps of the run with the median throughput. `None` without runs.
pub(super) fn middle_steps(runs: &[Given]) -> Option<Vec<AtUsers>> {
    let mut sorted: Vec<&Run> = runs.iter().map(|given| &given.run).collect();
    sorted.sort_by(|a, b| a.verdict.throughput_max_per_s.total_cmp(&b.verdict.throughput_max_per_s));
    sorted.get(sorted.len().saturating_sub(1) / 2).map(|run| by_users(run))
}

/// A workload, and the entry of each side on it.
pub(super) type Pair<'a> = (&'a str, &'a Entry, &'a Entry);

/// The entries that belong together, workload by workload.
pub(super) fn pairs<'a>(before: &'a Variant, after: &'a Variant) -> Result<Vec<Pair<'a>>, VariantError> {
    for side in [before, after] {
        is_known(side)?;
    }
    let (name, other) = (before.name.as_ref().or(after.name.as_ref()), after.name.as_ref());
    let mut found = Vec::new();
    for work in &before.comparison.works {
        let Some(same) = after.comparison.works.iter().find(|other| other.name == work.name) else {
            continue;
        };
        for entry in work.entries.iter().filter(|entry| name.is_none_or(|name| entry.variant == *name)) {
            let wanted = other.unwrap_or(&entry.variant);
            let of = same.entries.iter().find(|other| other.variant == *wanted);
            found.extend(of.map(|of| (work.name.as_str(), entry, of)));
        }
    }
    if found.is_empty() { Err(VariantError::NothingInCommon) } else { Ok(found) }
}

fn is_known(side: &Variant) -> Result<(), VariantError> {
    let Some(name) = &side.name else { return Ok(()) };
    let entries = || side.comparison.works.iter().flat_map(|work| &work.entries);
    if entries().any(|entry| entry.variant == *name) {
        return Ok(());
    }
    let mut known: Vec<String> = Vec::new();
    for entry in entries().filter(|entry| !entry.variant.is_empty()) {
        if !known.contains(&entry.variant) {
            known.push(entry.variant.clone());
        }
    }
    Err(VariantError::Unknown { file: side.file.clone(), variant: name.clone(), known })
}
