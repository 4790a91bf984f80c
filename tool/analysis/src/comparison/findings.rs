//! What a comparison comes to, as data: the order of variants, and what operational laws say of the figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OfFastest;

/// One thing that the intervals say about the order of a workload's variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OrderFinding {
    /// Nothing was measured that can be compared.
    NothingComparable,
    /// Only one variant was measured.
    OnlyOne {
        /// The variant.
        variant: String,
    },
    /// One variant is first.
    First {
        /// The variant.
        variant: String,
        /// Its throughput, requests per second.
        throughput_per_s: f64,
        /// The variant with the next highest throughput.
        next: String,
        /// Its throughput over that of the next.
        times_next: f64,
        /// Whether its throughput is only a lower bound.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
    },
    /// One variant is first by CPU time per request, as the generator was the limit.
    Cheapest {
        /// The variant.
        variant: String,
        /// The variant that comes next.
        next: String,
        /// CPU time per request of the next over that of the first.
        times_cpu: f64,
    },
    /// Several variants, but not all, may each be first.
    SeveralMayBeFirst {
        /// The variants, fastest first.
        variants: Vec<String>,
    },
    /// All differences are within the intervals.
    WithinIntervals,
    /// There are too few rounds to know what differs from one to the next.
    FewRounds {
        /// How many there are.
        rounds: u32,
    },
    /// Lower bounds among the figures leave no order.
    LowerBounds {
        /// How many figures are lower bounds.
        bounds: u32,
        /// How many figures there are.
        figures: u32,
    },
    /// The speed of the processors varied from trial to trial, and the comparison allows for it.
    ProcessorSpeed {
        /// The standard deviation of its logarithm.
        varied: f64,
    },
    /// One variant is last.
    Last {
        /// The variant.
        variant: String,
        /// Its throughput over that of the fastest, where that is known well enough.
        of_fastest: Option<OfFastest>,
        /// Whether there are variants that cannot be compared.
        of_compared: bool,
    },
    /// What the variants are beside the one that all are compared with.
    AgainstBaseline {
        /// The variant that all others are compared with.
        baseline: String,
        /// Those that are ahead of it, in the order of the experiment.
        ahead: Vec<String>,
        /// Those that are behind it.
        behind: Vec<String>,
        /// Those that cannot be told from it.
        open: Vec<String>,
    },
    /// Some variants are in order with others by CPU time per request, as the generator was the limit.
    ByCpuTime {
        /// The variants that the generator could not drive further in at least one round, fastest first.
        variants: Vec<String>,
    },
    /// Words from a file of an older version, which has no data beside them, or of a newer one.
    Told {
        /// The words.
        text: String,
    },
}

impl Default for OrderFinding {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

/// Little's law, N = X R, tested on everything measured on a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LittleFinding {
    /// No load was both steady and without many failures.
    Untested,
    /// The law holds.
    Holds {
        /// Where it was tested.
        tested: Tested,
        /// The largest gap, as a share of N.
        gap_max: f64,
    },
    /// The law does not hold.
    Off {
        /// The largest gap, as a share of N.
        gap_max: f64,
    },
    /// Words from a file of an older version, which has no data beside them, or of a newer one.
    Told {
        /// The words.
        text: String,
    },
}

impl Default for LittleFinding {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

/// Where a law was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tested {
    /// At every step of sweeps.
    EveryStep,
    /// In every load.
    EveryLoad,
    /// Wherever it can be tested.
    WherePossible,
}

/// Little's law, N = X R, tested on figures that somebody else published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PublishedLittle {
    /// Every point agrees with the law.
    Holds,
    /// Some points break it.
    Broken {
        /// How many points do.
        broken: u32,
        /// How many points there are.
        points: u32,
        /// Users of the point with the highest throughput.
        users: u32,
        /// Throughput times response time there, which the law says is the number of users.
        present: f64,
    },
    /// Words from a file of an older version, which has no data beside them, or of a newer one.
    Told {
        /// The words.
        text: String,
    },
}
