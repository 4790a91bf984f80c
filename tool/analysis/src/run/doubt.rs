//! Why an answer is not to be relied on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, Database, Explanation, Replicate, Slowable};
use crate::ticks::ErrorCounts;

/// One reason not to rely on an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Doubt {
    /// No request completed.
    NothingCompleted,
    /// Throughput never stopped growing.
    NeverBounded {
        /// Most users that were tried.
        users: u32,
        /// Users that were asked for, where the time was up before more could be tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u32>,
    },
    /// Only one step was measured, which does not show where throughput stops growing.
    OnlyStep {
        /// Its users.
        users: u32,
    },
    /// Throughput varied too much from step to step.
    TooUneven {
        /// Most users that were tried.
        users: u32,
    },
    /// The load generator was the limit.
    GeneratorLimit,
    /// The run ended early, because no load could be made without a generator that was lost.
    EndedEarly {
        /// The generator whose trouble ended it.
        generator: String,
    },
    /// The load generator took more of shared processors than the server.
    GeneratorTookMore,
    /// Other processes filled the processors of the server.
    OthersTookMost {
        /// Cores that they used.
        cores: f64,
        /// Cores that there were.
        available: f64,
    },
    /// Other processes took part of the processors.
    Interference {
        /// The side that lost them.
        victim: Victim,
        /// Cores that they took.
        cores: f64,
        /// Cores that there were.
        available: f64,
    },
    /// Transactions queue for locks, and something else may be why.
    LocksHeldForLonger {
        /// The database.
        database: Database,
        /// The obstacle to a verdict.
        because: LockDoubt,
    },
    /// Transactions queued for locks beside a full resource.
    LocksAsWell {
        /// The database.
        database: Database,
    },
    /// Locks may be part of the cause.
    LocksMayBePart {
        /// The database.
        database: Database,
        /// Sessions that waited, on average.
        waiting: f64,
        /// Sessions at work, on average.
        at_work: f64,
    },
    /// Many requests failed where the verdict is drawn.
    RequestsFailed {
        /// Share of the requests, 0 to 1.
        share: f64,
        /// Users of the step.
        users: u32,
        /// How they failed.
        errors: ErrorCounts,
    },
    /// Many requests of all runs failed.
    ManyFailed {
        /// Share of the requests, 0 to 1.
        share: f64,
    },
    /// Other processes used the processors of the host.
    OthersUsedProcessors {
        /// Cores that they used.
        cores: f64,
        /// Cores that there were.
        available: f64,
    },
    /// A warning of the run says that it was not as asked for.
    Warned {
        /// The cause of the warning.
        warning: Cause,
    },
    /// Nothing completed beyond N*.
    StoppedAnsweringBeyond {
        /// Users of the step.
        users: u32,
        /// How requests failed.
        errors: ErrorCounts,
    },
    /// The server stopped answering where the verdict is drawn.
    Stalled {
        /// Users of the step.
        users: u32,
    },
    /// No steady state was reached where the verdict is drawn.
    NotSteady {
        /// Users of the step.
        users: u32,
    },
    /// Throughput per user jumped from one step to the next.
    Jump {
        /// Users of the step with the lower throughput per user.
        from_users: u32,
        /// Users of the next larger step.
        to_users: u32,
        /// How many times the throughput per user grew.
        factor: f64,
        /// Shares of the responses that were held back at both steps, the lower throughput first, where that explains it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_back: Option<[f64; 2]>,
    },
    /// Throughput fell with more users and rose again with more still.
    Dip {
        /// Users of the step in between.
        users: u32,
        /// Completed requests per second of it.
        per_s: f64,
        /// Users of a step below it and of one above it that had more throughput.
        around_users: [u32; 2],
        /// Completed requests per second of these.
        around_per_s: [f64; 2],
        /// Shares of the responses that were held back at this step and at the one above it, where that explains the dip.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_back: Option<[f64; 2]>,
    },
    /// The maximum throughput is hardly known.
    MaximumUnknown {
        /// Half of its 95 % interval as a share of it.
        half_width: f64,
    },
    /// The server changed while it was measured.
    Changed {
        /// Users of a step that was measured several times.
        users: u32,
        /// Completed requests per second in the earlier of the two measurements that differ most.
        before_per_s: f64,
        /// The same in the later.
        after_per_s: f64,
        /// Every measurement in the order of time; empty in run files from before it was kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        course: Vec<Replicate>,
    },
    /// Little's law is off where the verdict is drawn.
    Little {
        /// Users of the step.
        users: u32,
        /// The gap as a share of the users, without its sign.
        gap: f64,
    },
    /// Users were idle where the verdict is drawn.
    IdleUsers {
        /// Users of the step.
        users: u32,
        /// Share of them, 0 to 1.
        share: f64,
    },
    /// Slowing the holder of the bottleneck did not slow the server, and slowing this tier did.
    NotConfirmed(Slowable),
    /// No explanation is probable enough to be relied on.
    Undecided {
        /// The most probable one.
        best: Explanation,
        /// The next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Explanation>,
        /// The measurement that would tell them apart.
        tell_apart: TellApart,
    },
    /// A sentence of a run file from before doubts were typed, or from a newer version.
    Told {
        /// The sentence.
        text: String,
    },
}

impl Doubt {
    /// Whether it is only about why throughput stops growing, and the figures hold whatever the cause is.
    pub(crate) fn is_about_the_cause(&self) -> bool {
        matches!(self, Self::Undecided { .. })
    }
}

impl Default for Doubt {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

/// The side whose processors others took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The busiest tier.
    Server,
    /// The load generator.
    Generator,
}

/// Measurements that would tell two explanations apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TellApart {
    /// Two users at random moments against one: whether they wait for each other.
    PairTest,
    /// Slowing each tier a little, and watching throughput.
    Confirm,
    /// Watching the tier that is not observed.
    WatchTheTier,
    /// Asking the database which of its sessions wait for locks.
    WatchDatabase,
    /// A host on which nothing else runs.
    QuietHost,
    /// More of the one, so that only the other can be full; or a measurement that this version does not know.
    #[default]
    #[serde(other)]
    MoreOfOne,
}

/// Reasons why a queue for locks does not prove that locks are the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockDoubt {
    /// The database's own processes could not be watched.
    NotWatched,
    /// A processor, a disk or a link is busy as well.
    SomethingBusy,
}
