//! Figures of a variant that are several in each round: percentiles, and what each tier costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entry::{Finished, by_round};
use super::tier::{Tier, several_tiers};
use crate::run::{HostName, PERCENTILES, Run};

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

/// Every tier, in the order of their names; none where there is one alone. What a request costs does not depend on whether
/// throughput could grow, so every run counts.
pub(super) fn tiers(rounds: u32, runs: &[Finished]) -> Vec<TierByRound> {
    let runs: Vec<&Finished> = runs.iter().collect();
    let all = several_tiers(runs.iter().filter_map(|finished| finished.run.verdict_step()));
    let of = |tier: Tier| {
        let cpu = |run: &Run| tier.cpu_us_per_request(run.verdict_step()?);
        TierByRound { cpu_us_per_request: by_round(rounds, &runs, cpu), name: tier.name, on: tier.on }
    };
    all.into_iter().map(of).collect()
}
