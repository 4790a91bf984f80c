//! Figures of a variant that are several in each round: percentiles, and what each tier costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entry::{Finished, by_round, is_tier};
use crate::run::{HostName, PERCENTILES, Resource, Run};

/// A percentile of response times, round by round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentileByRound {
    /// Its field in the run file, such as `p99`.
    pub percentile: String,
    /// The response time in each round, at N* of a sweep, microseconds; absent where the sample was too small, or the variant
    /// missed the round.
    pub response_time_us: Vec<Option<f64>>,
}

/// What a tier costs, round by round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierByRound {
    /// The kernel's name of its processes.
    pub name: String,
    /// The host, or the container, that they run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: HostName,
    /// Its CPU time per completed request in each round, microseconds; absent where it was not seen, or the variant missed the
    /// round.
    pub cpu_us_per_request: Vec<Option<f64>>,
}

/// Every percentile that is known of any round.
pub(super) fn percentiles(rounds: u32, runs: &[&Finished]) -> Vec<PercentileByRound> {
    let each = PERCENTILES.iter().map(|percentile| {
        let read = |run: &Run| percentile.read(&run.verdict.response_time_at_saturation_us);
        let positive = |run: &Run| read(run).filter(|us| *us > 0.0);
        PercentileByRound {
            percentile: percentile.name.to_owned(),
            response_time_us: by_round(rounds, runs, positive),
        }
    });
    each.filter(|one| one.response_time_us.iter().any(Option::is_some)).collect()
}

/// Every tier, in the order of their names; none where there is one alone, which costs what all do. What a request costs does not
/// depend on whether throughput could grow, so every run counts.
pub(super) fn tiers(rounds: u32, runs: &[Finished]) -> Vec<TierByRound> {
    let runs: Vec<&Finished> = runs.iter().collect();
    let steps = runs.iter().filter_map(|finished| finished.run.verdict_step());
    let mut all: Vec<Place<'_>> = steps.flat_map(|step| step.resources.iter().filter_map(place)).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() < 2 {
        return Vec::new();
    }
    let of = |tier: &Place<'_>| TierByRound {
        name: tier.0.to_owned(),
        on: tier.1.map(str::to_owned),
        cpu_us_per_request: by_round(rounds, &runs, |run| cpu_us_per_request(run, tier)),
    };
    all.iter().map(of).collect()
}

/// The name of a tier, and its host.
type Place<'a> = (&'a str, Option<&'a str>);

/// The tier whose processor time a resource is.
fn place(resource: &Resource) -> Option<Place<'_>> {
    let of = resource.identity.as_ref().filter(|_| is_tier(resource))?.processes()?;
    Some((of.name.as_str(), of.on.as_deref()))
}

fn cpu_us_per_request(run: &Run, tier: &Place<'_>) -> Option<f64> {
    let step = run.verdict_step()?;
    let own = step.resources.iter().filter(|resource| place(resource).as_ref() == Some(tier));
    let used: Vec<f64> = own.map(|resource| resource.used).collect();
    let known = !used.is_empty() && step.throughput_per_s > 0.0;
    known.then(|| used.iter().sum::<f64>() / step.throughput_per_s * 1e6)
}
