//! A comparison: variants of a system, such as concurrency models, measured on the same workloads and put in order.
//!
//! Field names are a contract, as those of the run file are.

mod agreement;
mod blocks;
mod by_round;
mod claims;
mod entry;
mod findings;
mod left_out;
mod looks;
mod order;
mod quantity;
mod ratio;
mod seen;
mod settled;
mod shape;
mod tier;
mod users;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agreement::{AgreementFinding, agreement};
pub use blocks::ROUNDS_MIN;
pub use by_round::{PercentileByRound, TierByRound};
pub use claims::{Claim, Requirement, Trend, checked};
pub use entry::{Finished, entry};
pub(crate) use entry::{is_lower_bound, is_sweep, limit};
pub use findings::{LittleFinding, OrderFinding, PublishedLittle, Tested};
pub use left_out::{Ending, LeftOut, LeftOutCause, ReadySign};
pub use order::{StillOpen, order, still_open};
pub use quantity::Quantity;
pub use seen::{Case, Open, PairCount, Seen};
pub use settled::{has_settled, show_the_same};
pub use shape::{Beside, Course, Gap, beside};
pub use tier::Tier;
pub(crate) use tier::{cpu_us_per_request, is_tier, several_tiers};
pub(crate) use users::by_users;
pub use users::{AtUsers, PublishedPoint, all_users, little, published_little};

use crate::run::{
    Confirmation, Doubt, Host, Identity, Prepared, Profile, Proof, Resource, ResourceKind, ResponseTime,
    Words, known,
};
use crate::ticks::ErrorCounts;

/// The value of [`Comparison::schema`].
pub const SCHEMA: &str = "nstar.comparison/1";

/// Its value in files from when comparisons were called studies, which are read as well.
pub const FIRST_SCHEMA: &str = "nstar.study/1";

/// A whole comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The title: what is compared, in a line.
    pub title: String,
    /// The difference between variants, such as `workers`.
    #[serde(rename = "axis")]
    pub factor: Factor,
    /// Whether the variants are combinations of several factors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub combines: bool,
    /// Where it ran.
    pub host: Host,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// Version of nstar that wrote this.
    pub version: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// Whether it was interrupted before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// All variants that were asked for, measured or not; not in files.
    #[serde(skip)]
    pub variants: Vec<String>,
    /// One per workload, in the order of the experiment.
    pub works: Vec<Workload>,
    /// Measurements that were asked for and not made, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Figures that others published, on other hardware, to compare shape and order with.
    pub published: Vec<Published>,
    /// What publications claim, and whether it is seen here; empty in files from before claims were checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl Comparison {
    /// Holds what was published and what is claimed against what was measured.
    pub fn hold_against(&mut self, all: &[Published], claims: &[Claim]) {
        let held = |published: &Published| Published {
            little: published_little(published),
            compared: agreement(self, published, all),
            ..published.clone()
        };
        let published = all.iter().map(held).collect();
        let claims = claims.iter().map(|claim| checked(self, claim)).collect();
        (self.published, self.claims) = (published, claims);
    }

    /// The variants that were asked for and not measured on a workload.
    fn missing_from<'a>(&'a self, work: &'a Workload) -> impl Iterator<Item = &'a str> {
        let is_measured = |name: &str| work.entries.iter().any(|entry| entry.variant == name);
        self.variants.iter().map(String::as_str).filter(move |name| !is_measured(name))
    }

    /// Whether a publication is of this workload: it names it, or names none where there is only one.
    pub fn is_of(&self, published: &Published, work: &Workload) -> bool {
        published.work.as_ref().map_or(self.works.len() == 1, |name| *name == work.name)
    }

    /// The publications that are of this workload.
    pub fn published_of<'a>(&'a self, work: &'a Workload) -> impl Iterator<Item = &'a Published> {
        self.published.iter().filter(|published| self.is_of(published, work))
    }

    /// Whether the variants are numbers of something.
    pub fn is_over_counts(&self) -> bool {
        let mut variants =
            self.works.iter().flat_map(|work| &work.entries).map(|entry| &entry.variant).peekable();
        variants.peek().is_some() && variants.all(|variant| variant.parse::<f64>().is_ok())
    }

    /// Whether the variants have an order of their own: they are numbers, or combinations of several things.
    pub fn is_ordered(&self) -> bool {
        self.combines || self.is_over_counts()
    }
}

/// The difference between the variants of a comparison, such as `workers`: the factor of the experiment, whose levels the
/// variants are. Of several factors, their names with commas between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Factor(pub String);

/// One workload, measured on every variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Such as `100 KB, 100 connections`.
    pub name: String,
    /// Whether the load asks for more than the system can take, so that denied requests are part of the answer.
    pub overload: bool,
    /// The variant that all others are compared with, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Every pair of variants in order: the one ahead, then the one behind; empty in files from before pairs were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_order: Vec<[String; 2]>,
    /// The order in words, one sentence each; claims only what the intervals support.
    pub order: Vec<Words>,
    /// The same as data; empty in files from before it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known::each_or_default")]
    pub ranking: Vec<OrderFinding>,
    /// Operational laws applied to all of it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub laws: Vec<Words>,
    /// The same as data; empty in files from before it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known::each_or_default")]
    pub little: Vec<LittleFinding>,
    /// One entry per variant, in the order of the experiment.
    pub entries: Vec<Entry>,
}

/// One variant on one workload, over all its runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Such as `epoll`, or `4` workers.
    pub variant: String,
    /// The places it may have in the order, [best, worst], from 1; absent if its figure cannot be compared.
    pub place: Option<[u32; 2]>,
    /// Completed requests per second: at N* of a sweep, in all of a load.
    pub throughput_per_s: f64,
    /// 95 % interval of it, which allows for runs that disagree.
    pub throughput_ci_per_s: [f64; 2],
    /// The same in each round, absent where the variant missed it; empty in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throughput_by_round_per_s: Vec<Option<f64>>,
    /// The same of the rounds that were set aside, in which it is only a lower bound; not in files.
    #[serde(skip)]
    pub at_least_by_round_per_s: Vec<Option<f64>>,
    /// CPU time per completed request in each round, microseconds; empty where it could not be watched, and in files from
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_us_per_request_by_round: Vec<Option<f64>>,
    /// The same of each tier; empty where there is one alone, and in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers_by_round: Vec<TierByRound>,
    /// Mean response time in each round, at N* of a sweep, microseconds; empty in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_time_us_by_round: Vec<Option<f64>>,
    /// Percentiles of response times in each round; empty in files from before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles_by_round: Vec<PercentileByRound>,
    /// The speed of the processors of the systems, by round ([`Step::processor_speed`](crate::run::Step::processor_speed));
    /// empty where they were not timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processor_speed_by_round: Vec<Option<f64>>,
    /// Its throughput over that of the fastest; absent if one of them cannot be compared, or is only a lower bound.
    pub of_fastest: Option<OfFastest>,
    /// The same over the throughput of the baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_baseline: Option<OfFastest>,
    /// Whether the throughput is only a lower bound: the generator was the limit, or throughput never stopped growing.
    pub lower_bound: bool,
    /// How many runs gave only a lower bound, or were beside other work, although most were not. They count towards no
    /// throughput and no response time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs_set_aside: u32,
    /// Users: N* of a sweep, in the run with the median throughput, or those of the load.
    pub users: Option<u32>,
    /// 95 % interval of N*, [lo, hi], in the run with the median throughput; absent where no sweep found N*, and in files
    /// from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_ci: Option<[u32; 2]>,
    /// The same of each run that counts; not in files.
    #[serde(skip)]
    pub users_ci_by_run: Vec<Option<[u32; 2]>>,
    /// Response time there, in the run with the median throughput.
    pub response_time_us: ResponseTime,
    /// CPU time of the system per completed request, microseconds; absent where it could not be watched.
    pub cpu_us_per_request: Option<f64>,
    /// Body bytes received per second by the generator.
    pub received_bytes_per_s: f64,
    /// Requests completed, over all runs and steps.
    pub completed: u64,
    /// Requests that failed, by kind, over all runs and steps.
    pub errors: ErrorCounts,
    /// The bottleneck, in each run that looked for one.
    pub bottleneck: Vec<Limit>,
    /// What slowing each tier showed, in the run where that was tried; it holds for the bottleneck of every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Where the processor time of each tier went, in the run where that was looked at; its run file holds the stacks too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The busiest resource, apart from the host as a whole.
    pub busiest: Option<Resource>,
    /// Throughput and response time by users, in the run with the median throughput; empty if the workload has only one
    /// number of users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<AtUsers>,
    /// The same of each run that counts; not in files.
    #[serde(skip)]
    pub steps_by_run: Vec<Vec<AtUsers>>,
    /// Whether the database holds what clients were told, for each run that checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// What the commands said that prepared and reset it, in the run with the median throughput.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared: Vec<Prepared>,
    /// Reasons not to rely on the figure, one sentence each.
    #[serde(rename = "doubts")]
    pub inconclusive: Vec<Words>,
    /// The same as data.
    #[serde(
        rename = "reasons",
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "known::each_or_default"
    )]
    pub doubts: Vec<Doubt>,
    /// The run files it was made from.
    pub runs: Vec<String>,
}

impl Entry {
    /// Whether the generator was the limit in one of its runs.
    pub(crate) fn generator_was_limit(&self) -> bool {
        self.bottleneck.iter().any(|limit| limit.kind == ResourceKind::Generator)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The bottleneck of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device.
    pub holder: Words,
    /// The process or device itself; absent in files from before identities were typed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
}

/// A ratio of two throughputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfFastest {
    /// The ratio.
    pub ratio: f64,
    /// Interval of it; all intervals of one workload hold together 95 times in 100, and so do all to its baseline.
    pub ci: [f64; 2],
}

/// Figures that somebody else measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The title of the measurement.
    pub title: String,
    /// The hardware, in words.
    pub hardware: String,
    /// The quantity of the figures, with its unit.
    pub unit: String,
    /// The year, if it is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub year: Option<u32>,
    /// The workload that it is shown beside, if one is like it.
    #[serde(default)]
    pub work: Option<String>,
    /// The variant that is like it; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// What stopped the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<ResourceKind>,
    /// N*: where throughput stopped growing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users_at_saturation: Option<u32>,
    /// What is measured here as well and is the quantity of the figures, if something is: then workloads can be put in the
    /// order that they have in the publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Quantity>,
    /// Whether a smaller figure is better.
    #[serde(default)]
    pub smaller_is_better: bool,
    /// Names and figures, in the order of the publication.
    #[serde(default)]
    pub figures: Vec<PublishedFigure>,
    /// Throughput and response time by users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PublishedPoint>,
    /// Operational laws applied to the points, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<Words>,
    /// The same as data; absent in files from before it was written.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub little: Option<PublishedLittle>,
    /// How far it agrees with what was measured here, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreement: Vec<Words>,
    /// The same as data; empty in files from before it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known::each_or_default")]
    pub compared: Vec<AgreementFinding>,
}

/// One published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// The variant, by its name in this comparison if it has one.
    pub variant: String,
    /// The figure.
    pub value: f64,
}

#[cfg(test)]
mod tests;
