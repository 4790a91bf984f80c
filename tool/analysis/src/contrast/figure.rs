//! The figures that are compared, and where they are read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{Sample, Samples};
use super::side::Given;
use crate::comparison::{Entry, Tier, cpu_us_per_request, is_lower_bound, several_tiers};
use crate::run::{Demand, Identity, PERCENTILES, Run, Step};
use crate::statistics::mean::mean;

/// A figure of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Figure {
    /// Maximum throughput, requests per second; of one load, its throughput.
    #[default]
    Throughput,
    /// N*.
    Users,
    /// Mean response time, microseconds.
    ResponseTimeMean,
    /// A percentile of response times, microseconds.
    ResponseTimeQuantile {
        /// Its field in the run file, such as `p99`.
        percentile: String,
    },
    /// CPU time of all watched tiers per request, microseconds.
    CpuPerRequest,
    /// CPU time of one tier per request, microseconds.
    CpuPerRequestOf {
        /// The tier.
        tier: Tier,
    },
}

impl Figure {
    /// The names that gates call figures by, each with its figure.
    pub fn named() -> Vec<(&'static str, Self)> {
        let quantiles = PERCENTILES.iter().map(|of| (of.name, Self::quantile(of.name)));
        let before =
            [("throughput", Self::Throughput), ("users", Self::Users), ("mean", Self::ResponseTimeMean)];
        before.into_iter().chain(quantiles).chain([("cpu", Self::CpuPerRequest)]).collect()
    }

    fn quantile(name: &str) -> Self {
        Self::ResponseTimeQuantile { percentile: name.to_owned() }
    }
}

/// Every figure of the runs of a side. Response times and costs are those with `at_users`, or of each run's own verdict.
pub(super) fn of_runs(runs: &[Given], at_users: Option<u32>) -> Vec<(Figure, Samples)> {
    let step = |run: &'_ Run| step_at(run, at_users).cloned();
    let steps: Vec<Option<Step>> = runs.iter().map(|given| step(&given.run)).collect();
    let of_steps = |read: &dyn Fn(&Step) -> Option<Sample>| Samples {
        all: steps.iter().map(|step| step.as_ref().and_then(read)).collect(),
        at_least: false,
    };
    let bounds: Vec<bool> = runs.iter().map(|given| is_lower_bound(&given.run)).collect();
    let at_least = 2 * bounds.iter().filter(|is_bound| **is_bound).count() >= runs.len();
    let of_verdicts = |read: fn(&Run) -> Option<Sample>| {
        let all: Vec<Option<Sample>> = runs.iter().map(|given| read(&given.run)).collect();
        Samples { all: if at_least { all } else { without_low_bounds(all, &bounds) }, at_least }
    };
    let mut all = vec![
        (Figure::Throughput, of_verdicts(throughput)),
        (Figure::Users, of_verdicts(users)),
        (Figure::ResponseTimeMean, of_steps(&mean_response)),
    ];
    all.extend(PERCENTILES.iter().map(|percentile| {
        let read = |step: &Step| Sample::of(percentile.read(&step.response_time_us)?, None);
        (Figure::quantile(percentile.name), of_steps(&read))
    }));
    let cpu = |step: &Step| Sample::of(cpu_us_per_request(step)?, None);
    all.push((Figure::CpuPerRequest, of_steps(&cpu)));
    all.extend(several_tiers(steps.iter().flatten()).into_iter().map(|tier| {
        let samples = of_steps(&|step| Sample::of(tier.cpu_us_per_request(step)?, None));
        (Figure::CpuPerRequestOf { tier }, samples)
    }));
    all
}

/// Figures of runs, without those that are only lower bounds and no higher than the others on average: they say nothing of the
/// server. A higher one shows that it was at least so fast, and without it the side would seem slower than it is.
fn without_low_bounds(all: Vec<Option<Sample>>, bounds: &[bool]) -> Vec<Option<Sample>> {
    let exact = all.iter().zip(bounds).filter(|(_, is_bound)| !**is_bound);
    let logs: Vec<f64> = exact.filter_map(|(sample, _)| Some((*sample)?.value.ln())).collect();
    if logs.is_empty() {
        return all;
    }
    let level = mean(&logs).exp();
    let kept = |(sample, is_bound): (Option<Sample>, &bool)| {
        sample.filter(|sample| !is_bound || sample.value > level)
    };
    all.into_iter().zip(bounds).map(kept).collect()
}

/// The same figures of one run on each side, with CPU time per request by the laws of the runs where both regressed it over
/// their steps: it has an interval then, which that of a single step has not.
pub(super) fn with_demands(
    mut sides: [Vec<(Figure, Samples)>; 2],
    [run_before, run_after]: [&Run; 2],
) -> [Vec<(Figure, Samples)>; 2] {
    let [all_before, all_after] = &mut sides;
    for (figure, before) in all_before {
        let Some((_, after)) = all_after.iter_mut().find(|(other, _)| *other == *figure) else { continue };
        let both = (demand(run_before, figure, before), demand(run_after, figure, after));
        if let (Some(one), Some(other)) = both {
            before.all = vec![Some(one)];
            after.all = vec![Some(other)];
        }
    }
    sides
}

/// CPU time per request by the laws of a run. `None` for another figure, unless every tier has an interval, and where the step
/// that is compared costs something else: of what is done without requests, one run's regression may have taken account, and
/// another one's not.
fn demand(run: &Run, figure: &Figure, of_step: &Samples) -> Option<Sample> {
    let step_us = of_step.all.first().copied().flatten()?.value;
    let is_of_figure = |demand: &&Demand| match figure {
        Figure::CpuPerRequest => true,
        Figure::CpuPerRequestOf { tier } => {
            demand.identity.as_ref().and_then(Tier::named).as_ref() == Some(tier)
        }
        _ => false,
    };
    let tiers = run.laws.demands.iter().filter(|demand| is_of_tier(demand)).filter(is_of_figure);
    let known: Vec<(f64, [f64; 2])> =
        tiers.map(|demand| Some((demand.demand_us, demand.demand_ci_us?))).collect::<Option<_>>()?;
    // What makes one demand seem too large, such as a throughput that was counted too small, does so to all: their errors add
    // up.
    let [us, low, high] =
        known.iter().fold([0.0; 3], |sum, (us, [low, high])| [sum[0] + us, sum[1] + low, sum[2] + high]);
    let is_borne_out = low <= step_us && step_us <= high;
    Sample::of(us, Some([low, high])).filter(|_| is_borne_out)
}

/// Whether it is the processor time of the server or of a tier behind it. Files from before identities were typed do not tell
/// that from the time of a whole host.
fn is_of_tier(demand: &Demand) -> bool {
    matches!(demand.identity, Some(Identity::Processes(_)))
}

fn throughput(run: &Run) -> Option<Sample> {
    Sample::of(run.verdict.throughput_max_per_s, Some(run.verdict.throughput_max_ci_per_s))
}

/// Users are whole: an interval reaches half a user beyond its ends.
fn users(run: &Run) -> Option<Sample> {
    let ends = |[low, high]: [u32; 2]| [f64::from(low) - 0.5, f64::from(high) + 0.5];
    Sample::of(run.verdict.users_at_saturation?.into(), run.verdict.users_at_saturation_ci.map(ends))
}

fn mean_response(step: &Step) -> Option<Sample> {
    Sample::of(step.response_time_us.mean, step.response_time_us.mean_ci)
}

/// The step with so many users, or the one that the verdict is about.
pub(super) fn step_at(run: &Run, users: Option<u32>) -> Option<&Step> {
    let with = users.and_then(|users| run.steps.iter().find(|step| step.users == users));
    with.or_else(|| run.verdict_step()).filter(|step| step.completed > 0)
}

/// Every figure of a variant, round by round where rounds are kept.
pub(super) fn of_entry(entry: &Entry) -> Vec<(Figure, Samples)> {
    let rounds = |rounds: &[Option<f64>]| rounds.iter().map(|one| Sample::of((*one)?, None)).collect();
    let one = |sample: Option<Sample>| vec![sample];
    let throughput: Vec<Option<Sample>> = rounds(&entry.throughput_by_round_per_s);
    let throughput = match throughput.is_empty() {
        true => one(Sample::of(entry.throughput_per_s, Some(entry.throughput_ci_per_s))),
        false => throughput,
    };
    let ends = |[low, high]: [u32; 2]| [f64::from(low) - 0.5, f64::from(high) + 0.5];
    let users = entry.users_ci.and_then(|ci| Sample::of(entry.users?.into(), Some(ends(ci))));
    let exact = |all| Samples { all, at_least: false };
    let mut all = vec![
        (Figure::Throughput, Samples { all: throughput, at_least: entry.lower_bound }),
        (Figure::Users, Samples { all: one(users), at_least: entry.lower_bound }),
        (Figure::ResponseTimeMean, exact(rounds(&entry.response_time_us_by_round))),
    ];
    all.extend(PERCENTILES.iter().map(|percentile| {
        let kept = entry.percentiles_by_round.iter().find(|kept| kept.percentile == percentile.name);
        let read = percentile.read(&entry.response_time_us);
        let samples = match kept {
            Some(kept) => rounds(&kept.response_time_us),
            None => one(read.and_then(|us| Sample::of(us, None))),
        };
        (Figure::quantile(percentile.name), exact(samples))
    }));
    all.push((Figure::CpuPerRequest, exact(rounds(&entry.cpu_us_per_request_by_round))));
    all.extend(entry.tiers_by_round.iter().map(|of| {
        let tier = Tier { name: of.name.clone(), on: of.on.clone() };
        (Figure::CpuPerRequestOf { tier }, exact(rounds(&of.cpu_us_per_request)))
    }));
    all
}
