//! The runs of one variant on one work, as one entry.

use std::cmp::Ordering;

use super::{Entry, Limit, MANY_FAILED, failed_share};
use crate::pooling::{Measured, Pooled, pooled};
use crate::run::{Resource, ResourceKind, Run, Step};
use crate::sample::ErrorCounts;
use crate::student::{NORMAL_95, t_95};
use crate::words::percent;

/// The holder of all processors together.
const HOST: &str = "host";

/// A run, and the name of the file it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The run.
    pub run: Run,
    /// Its file.
    pub file: String,
}

/// One entry from the runs of a variant; its place is not yet known. `overload`: failures are part of the answer.
/// `None` without runs.
pub fn entry(variant: &str, runs: &[Finished], overload: bool) -> Option<Entry> {
    let found = pooled(&runs.iter().map(|finished| measured(&finished.run)).collect::<Vec<_>>())?;
    let middle = &middle(runs)?.run;
    let at = verdict_step(middle);
    let errors = errors(runs);
    let completed = runs.iter().flat_map(|finished| &finished.run.steps).map(|step| step.completed).sum();
    Some(Entry {
        variant: variant.to_owned(),
        place: None,
        throughput_per_s: found.value,
        throughput_ci_per_s: interval(&found),
        of_fastest: None,
        lower_bound: runs.iter().any(|finished| is_lower_bound(&finished.run)),
        users: middle.verdict.users_at_saturation.or(at.map(|step| step.users)),
        response_time_us: middle.verdict.response_time_at_saturation_us,
        cpu_us_per_request: at.and_then(cpu_us_per_request),
        received_bytes_per_s: at.map_or(0.0, |step| step.received_bytes_per_s),
        completed,
        bottleneck: runs.iter().filter_map(|finished| limit(&finished.run)).collect(),
        busiest: at.and_then(|step| step.resources.iter().find(|resource| resource.holder != HOST)).cloned(),
        doubts: doubts(runs, completed, &errors, overload),
        errors,
        runs: runs.iter().map(|finished| finished.file.clone()).collect(),
    })
}

fn measured(run: &Run) -> Measured {
    let (value, [_, high]) = (run.verdict.throughput_max_per_s, run.verdict.throughput_max_ci_per_s);
    Measured {
        value,
        error: (high - value).max(0.0) / NORMAL_95,
        // The interval is that of Student's t already.
        degrees_of_freedom: f64::from(u16::MAX),
        weight: 1.0,
    }
}

fn interval(found: &Pooled) -> [f64; 2] {
    let half_width = t_95(found.degrees_of_freedom) * found.error;
    [(found.value - half_width).max(0.0), found.value + half_width]
}

/// The run whose throughput is in the middle; of two, the slower.
fn middle(runs: &[Finished]) -> Option<&Finished> {
    let mut sorted: Vec<&Finished> = runs.iter().collect();
    sorted.sort_by(|a, b| by_throughput(&a.run, &b.run));
    sorted.get(runs.len().saturating_sub(1) / 2).copied()
}

fn by_throughput(a: &Run, b: &Run) -> Ordering {
    a.verdict.throughput_max_per_s.total_cmp(&b.verdict.throughput_max_per_s)
}

fn verdict_step(run: &Run) -> Option<&Step> {
    let at = run.verdict.users_at_saturation;
    run.steps.iter().find(|step| Some(step.users) == at).or(run.steps.last())
}

fn is_sweep(run: &Run) -> bool {
    run.steps.len() > 1
}

fn is_lower_bound(run: &Run) -> bool {
    run.verdict.bottleneck.kind == ResourceKind::Generator || (is_sweep(run) && !run.verdict.bounded)
}

fn limit(run: &Run) -> Option<Limit> {
    let bottleneck = &run.verdict.bottleneck;
    let told = is_sweep(run) || bottleneck.kind != ResourceKind::None;
    told.then(|| Limit { kind: bottleneck.kind, holder: bottleneck.holder.clone() })
}

/// CPU time of all watched tiers per completed request, by the utilisation law: U = X D.
fn cpu_us_per_request(step: &Step) -> Option<f64> {
    let of_a_tier = |resource: &&Resource| {
        resource.kind == ResourceKind::Cpu && resource.unit == "cores" && resource.holder != HOST
    };
    let tiers: Vec<f64> = step.resources.iter().filter(of_a_tier).map(|resource| resource.used).collect();
    let known = !tiers.is_empty() && step.throughput_per_s > 0.0;
    known.then(|| tiers.iter().sum::<f64>() / step.throughput_per_s * 1e6)
}

fn errors(runs: &[Finished]) -> ErrorCounts {
    let mut all = ErrorCounts::new();
    for (kind, count) in runs.iter().flat_map(|finished| &finished.run.steps).flat_map(|step| &step.errors) {
        let sum: &mut u64 = all.entry(*kind).or_default();
        *sum = sum.saturating_add(*count);
    }
    all
}

fn doubts(runs: &[Finished], completed: u64, errors: &ErrorCounts, overload: bool) -> Vec<String> {
    if completed == 0 {
        return vec!["No request completed.".to_owned()];
    }
    let share = failed_share(completed, errors);
    match (overload, share > MANY_FAILED) {
        (true, _) => return Vec::new(),
        (false, true) => return vec![format!("{} of the requests failed.", percent(share))],
        (false, false) => {}
    }
    let mut all: Vec<String> = Vec::new();
    for doubt in runs.iter().flat_map(|finished| &finished.run.verdict.inconclusive) {
        if !all.contains(doubt) {
            all.push(doubt.clone());
        }
    }
    all
}
