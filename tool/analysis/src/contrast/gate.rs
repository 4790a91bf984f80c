//! Gates on a change: a bound on the ratio of a figure that a pipeline can fail on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, Figure, Ratio};

/// A bound on the change of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// As it was written, such as `throughput>-3%`.
    pub text: String,
    /// The figure.
    pub figure: Figure,
    /// Whether the change has to stay above the bound or below it.
    pub limit: Limit,
    /// The bound on the ratio: 0.97 for -3 %.
    pub ratio: f64,
}

/// Where a ratio has to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Above the bound.
    Above,
    /// Below the bound.
    Below,
}

/// What a gate came to on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateFinding {
    /// The gate.
    pub gate: Gate,
    /// The workload of the case; empty for run files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// Its variant; empty for run files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The verdict.
    pub verdict: GateVerdict,
    /// What was found; absent where the figure is missing.
    pub found: Option<Ratio>,
    /// About how often each side would have to be repeated to decide it, if what was found is right; absent where it is decided,
    /// or the scatter between repeats is not known.
    pub repeats_needed: Option<u32>,
}

/// A verdict on a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// The whole interval keeps the bound.
    Met,
    /// None of the interval does.
    Breached,
    /// The bound lies within the interval, or there is no interval.
    NotDecided,
}

/// Holds a gate against a case, by the figure's own 95 % interval.
pub(super) fn held(gate: &Gate, case: &Case) -> GateFinding {
    let found = case.figures.iter().find(|ratio| ratio.figure == gate.figure);
    let verdict = found.map_or(GateVerdict::NotDecided, |ratio| verdict(gate, ratio));
    let is_open = verdict == GateVerdict::NotDecided;
    GateFinding {
        gate: gate.clone(),
        work: case.work.clone(),
        variant: case.variant.clone(),
        verdict,
        found: found.cloned(),
        repeats_needed: found
            .filter(|_| is_open)
            .and_then(|ratio| ratio.repeats_for(ratio.ratio / gate.ratio)),
    }
}

fn verdict(gate: &Gate, ratio: &Ratio) -> GateVerdict {
    let Some([low, high]) = ratio.ci else { return GateVerdict::NotDecided };
    // What is only bounded may be above its interval, or below it.
    let (above, below) =
        (low > gate.ratio && ratio.bound.allows_rise(), high < gate.ratio && ratio.bound.allows_fall());
    match gate.limit {
        Limit::Above if above => GateVerdict::Met,
        Limit::Above if below => GateVerdict::Breached,
        Limit::Below if below => GateVerdict::Met,
        Limit::Below if above => GateVerdict::Breached,
        _ => GateVerdict::NotDecided,
    }
}
