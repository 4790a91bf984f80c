//! A prediction: what becomes of a measured system when something about it changes.
//!
//! A queueing network is built of what the run measured (`model`) and calibrated on its steps; the change is made to the
//! network, and the network is solved again (`network`). What is known only within an interval is drawn again and again
//! within it, and so are the answers. Percentiles for users who think for another time are simulated (`simulation`).

mod change;
mod draw;
mod goal;
mod kinds;
mod mix;
mod model;
mod network;
mod outlook;
mod parts;
mod quantile;
mod simulation;
mod slowdown;
mod solved;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use change::Change;
pub use goal::{Bound, Goal, GoalAnswer, GoalFigure, GoalOption};
pub use mix::{MixShare, NoMix};
pub use slowdown::Slowdown;

use crate::run::{Identity, ResourceKind, Run, Words, known};
use change::demands;
use outlook::Drawn;
use parts::Parts;

/// The value of [`Prediction::schema`].
pub const SCHEMA: &str = "nstar.prediction/1";

/// What is asked of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// What changes, all of it together.
    pub changes: Vec<Change>,
    /// A number of users to answer for.
    pub users: Option<u32>,
    /// What is to be reached, with one change more.
    pub goal: Option<Goal>,
    /// The seed of what is drawn.
    pub seed: u64,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The load did not wait for responses.
    OpenLoop,
    /// Fewer than two steady steps.
    TooFewSteps,
    /// Throughput never stopped growing.
    NotBounded,
    /// The run is in doubt.
    Inconclusive,
    /// Too many requests failed.
    Failures,
    /// Nothing is known of what this bottleneck does elsewhere.
    Bottleneck {
        /// Its kind.
        kind: ResourceKind,
    },
    /// The fewest users wait for each other already.
    NobodyAlone {
        /// The fewest users.
        users: u32,
    },
    /// The run has no such tier, device or demand.
    UnknownName {
        /// The name.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A lock has no workers.
    ALock {
        /// Its holder.
        name: String,
    },
    /// How many workers a tier has does not show, as they were not what stopped it.
    WorkersUnknown {
        /// The tier.
        name: String,
    },
    /// The rate of no link is known.
    NoLink,
    /// No tier behind the server was seen.
    NothingBehind,
    /// Whether the calls are made while the lock is held does not show.
    InTheLock {
        /// What is called.
        name: String,
    },
    /// Calls would be shorter by more than the time that there is for them.
    ShorterThanCalls {
        /// What is called.
        name: String,
        /// By how much, microseconds.
        shorter_us: f64,
        /// The most that they take of a request besides what resources account for, microseconds.
        at_most_us: f64,
    },
    /// No tier of the server was observed.
    NoServer,
    /// Two changes are of one thing, or may be: of two links, one without a name is the busiest.
    NamedTwice {
        /// The later one.
        change: Change,
    },
    /// The ratio of the percentile to the mean is not known where the goal asks for it.
    NoQuantile,
    /// The run file is from before the percentile was kept.
    QuantileNotKept {
        /// Its field in the run file, such as `p95`.
        percentile: String,
        /// Those that the file holds.
        kept: Vec<String>,
    },
    /// Nothing can be said of another mix of requests.
    Mix(NoMix),
}

impl Refusal {
    /// Whether the question is wrong, and not the run.
    pub fn is_of_question(&self) -> bool {
        !matches!(
            self,
            Self::NotBounded
                | Self::Inconclusive
                | Self::Failures
                | Self::Bottleneck { .. }
                | Self::NobodyAlone { .. }
        )
    }
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Version of nstar that wrote this.
    pub version: String,
    /// What was driven.
    pub target: String,
    /// When the run began.
    pub started: String,
    /// The seed of what was drawn.
    pub seed: u64,
    /// What was changed.
    pub changes: Vec<Change>,
    /// The model, as calibrated.
    pub model: ModelFacts,
    /// What the model says of the system as it was measured.
    pub before: Outlook,
    /// What it says of the changed one.
    pub after: Outlook,
    /// Throughput and response time by users.
    pub curve: Vec<CurvePoint>,
    /// What a tenth less of each demand would bring to the changed system, best first.
    pub sensitivity: Vec<Sensitivity>,
    /// What would reach the goal; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalAnswer>,
    /// Reasons not to rely on it.
    pub cautions: Vec<Caution>,
}

/// The model that answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFacts {
    /// Mean think time in the run, microseconds.
    pub think_us: f64,
    /// Part of the response time of one user that no resource accounts for, microseconds.
    pub rest_us: f64,
    /// How many requests are served at a time, where places are what limits it.
    pub places: Option<u32>,
    /// How irregular times are: 0 constant, 1 exponential.
    pub irregularity: f64,
    /// Its standard error.
    pub irregularity_error: f64,
    /// Root mean square gap between the model and the measured throughput, as a share.
    pub misses: f64,
    /// The demands, by the names that changes call them.
    pub demands: Vec<String>,
    /// Steps that it was calibrated on.
    pub steps: u32,
    /// How the bottleneck slows down the more wait for it; absent where throughput did not fall, or nothing of this form is near
    /// to how it fell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdown>,
}

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The interval, [lo, hi].
    pub ci: [f64; 2],
}

/// What a model says of a system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlook {
    /// Maximum throughput, requests per second.
    pub throughput_max_per_s: Estimate,
    /// N*; absent where it is beyond a million users.
    pub users_at_saturation: Option<Estimate>,
    /// Mean response time there, microseconds.
    pub response_time_at_saturation_us: Option<Estimate>,
    /// Every limit on throughput that is known, the lowest first: the bottleneck, and what comes next.
    pub limits: Vec<LimitFacts>,
}

/// A limit on throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitFacts {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device; empty where there is none.
    pub holder: Words,
    /// The process or device itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// Where it would be full, requests per second.
    pub throughput_per_s: f64,
}

/// A point of the curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Users.
    pub users: u32,
    /// Whether it was asked for.
    pub asked: bool,
    /// Measured requests per second; absent where so many users were not measured.
    pub measured_per_s: Option<f64>,
    /// What the model says of the system as measured, requests per second.
    pub before_per_s: f64,
    /// Requests per second after the change.
    pub throughput_per_s: Estimate,
    /// Mean response time after the change, microseconds.
    pub response_time_us: Estimate,
    /// Its 95th percentile, where the measured ratio to the mean, or a simulated one, can stand for it; absent where the run file
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_us: Option<Estimate>,
    /// Its 99th percentile, where the measured ratio to the mean, or a simulated one, can stand for it.
    pub p99_us: Option<Estimate>,
    /// Whether so much throughput, or so many users, were not measured.
    pub beyond_measured: bool,
}

/// What a tenth less of a demand brings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// The demand, as changes call it.
    pub demand: String,
    /// Maximum throughput over that without it.
    pub throughput_ratio: f64,
    /// Mean response time at N* over that without it.
    pub response_time_ratio: f64,
    /// N* then; absent where it is beyond a million users.
    pub users_at_saturation: Option<u32>,
}

/// A reason not to rely on a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caution {
    /// More throughput than was measured: what stops it there is known only from less.
    BeyondThroughput {
        /// The most that was measured, requests per second.
        measured_per_s: f64,
    },
    /// More users than were measured.
    BeyondUsers {
        /// The most that were measured.
        measured: u32,
    },
    /// Throughput fell with many users.
    Fell {
        /// Users of the last step.
        users: u32,
        /// Its throughput as a share of the maximum.
        share: f64,
        /// Whether that of the model falls too.
        #[serde(default)]
        followed: bool,
    },
    /// The model is this far from the steps.
    Misses {
        /// As a share.
        share: f64,
    },
    /// Nothing else is known that would limit it.
    NoOtherLimit,
    /// A tier is taken to use more processors than it was seen to.
    MoreProcessors {
        /// The tier.
        name: String,
    },
    /// Users think for another time: how regularly they come then is not known.
    OtherThinkTime,
    /// Several changes were asked for at once: what they do to one another was not measured.
    SeveralChanges {
        /// How many.
        changes: u32,
    },
    /// Several changes promise so much more throughput than was measured that no prediction as far was ever held against a
    /// changed server.
    FarBeyond {
        /// How many changes.
        changes: u32,
        /// The predicted maximum over the measured one.
        times: f64,
    },
    /// The processors of the host are shared with the load generator, which is part of that limit.
    SharedWithLoad,
    /// Added servers bring no disk or link that other tiers on their host use too: these stay as they are.
    SharedDevices {
        /// The demands on them, as changes call them.
        demands: Vec<String>,
    },
    /// One call for each request.
    OneCall {
        /// What is called.
        name: String,
    },
    /// The mix of requests stays as it was.
    Mix,
    /// In another mix each kind of request waits, for what no resource accounts for, as it did with the fewest users.
    OtherMix,
    /// A demand stays as it was in another mix, because what each kind of request costs there is not known. It had room.
    MixKept {
        /// The demand, as changes call it.
        demand: String,
    },
}

/// Answers a question from a run.
///
/// # Errors
/// [`Refusal`] where the run or the question does not bear an answer.
pub fn predict(run: &Run, question: &Question, version: &str) -> Result<Prediction, Refusal> {
    let parts = Parts::of(run)?;
    change::named_once(&question.changes, &parts)?;
    let drawn = Drawn::of(&parts, &question.changes, question.seed)?;
    let ratios = quantile::Ratios::of(run, question, &drawn, &parts);
    let goal = question.goal.as_ref().map(|goal| goal::answer(goal, &drawn, &parts, &ratios)).transpose()?;
    Ok(Prediction {
        schema: SCHEMA.into(),
        version: version.into(),
        target: run.target.clone(),
        started: run.started.clone(),
        seed: question.seed,
        changes: question.changes.clone(),
        model: ModelFacts {
            think_us: parts.think_us,
            rest_us: drawn.before.delay_us,
            places: drawn.before.places.as_ref().map(|places| places.count),
            irregularity: drawn.irregularity.mean(),
            irregularity_error: drawn.irregularity.error(false),
            misses: drawn.misses,
            demands: demands(&drawn.before),
            steps: parts.points.len() as u32,
            slowdown: drawn.before.slow.map(|slow| slow.by),
        },
        before: drawn.outlook(outlook::Side::Before),
        after: drawn.outlook(outlook::Side::After),
        curve: outlook::curve(&drawn, &parts, question.users, &ratios),
        sensitivity: outlook::sensitivity(&drawn.after),
        cautions: outlook::cautions(run, question, goal.as_ref(), &drawn, &parts),
        goal,
    })
}
