//! What to distrust, as typed values made with the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentTrouble, DatabaseTrouble, GeneratorLoss, GeneratorTrouble, HostName, KernelEvidence, Processes,
    Replicate, ServerUnwatched, Shares, SocketsUnread, Stalls, Words, known,
};
use crate::counters::ServerAddress;
use crate::ticks::ErrorCounts;

/// Something that makes the run less trustworthy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The kind of warning.
    pub kind: WarningKind,
    /// A sentence: what, by how much, what to do.
    pub text: Words,
    /// The same as data; absent in run files from before warnings were typed.
    #[serde(default, skip_serializing_if = "Cause::is_empty", deserialize_with = "known::or_default")]
    pub cause: Cause,
}

/// Kinds of [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Generator and server shared processors.
    SharedCores,
    /// The generator was close to its own limit.
    GeneratorBusy,
    /// Something went wrong with one of several generators.
    Generators,
    /// A step never became steady.
    NotSteady,
    /// The server changed while it was measured.
    Changed,
    /// Nothing was answered for a noticeable part of the time.
    Stalls,
    /// Too few completions for an interval of the width asked for.
    TooShort,
    /// Little's law did not hold at a step.
    Little,
    /// Requests failed.
    Errors,
    /// The server stopped answering before a step ended.
    StoppedAnswering,
    /// The kinds of request did not come in the shares asked for.
    Mix,
    /// What was measured is a redirect.
    Redirected,
    /// Responses were held back until the client acknowledged their first part.
    HeldBack,
    /// Data that was meant to come from a disk did not.
    NotCold,
    /// The ladder ended before throughput stopped growing.
    NotBounded,
    /// The server's processes could not be seen, so no resource can be named.
    NotObserved,
    /// The hypervisor took processor time.
    Steal,
    /// Built without optimisation.
    DebugBuild,
    /// Interrupted: the run is partial.
    Interrupted,
    /// A limit of this host was in the way.
    HostLimit,
    /// A kind of a newer version.
    #[serde(other)]
    Other,
}

/// Causes of warnings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// A signal ended the run early.
    Interrupted,
    /// This program was built without optimisation.
    DebugBuild,
    /// The server stopped answering.
    Stalled {
        /// Users of the first step where it did.
        users: u32,
        /// Requests completed before.
        completed: u64,
        /// How long nothing was answered, seconds.
        stalled_s: f64,
    },
    /// The server, or a tier behind it as the role says, ended, and another has served since.
    ServerReplaced {
        /// What served before.
        before: Processes,
        /// What served after it.
        after: Processes,
        /// Users of the step in which that was seen; absent where it was after all of them.
        users: Option<u32>,
        /// How often it was replaced in all.
        times: u64,
    },
    /// Requests failed.
    RequestsFailed {
        /// Users of the first step where they did; absent where they failed only outside the measured parts.
        first_users: Option<u32>,
        /// How many, by kind.
        errors: ErrorCounts,
        /// The most frequent unexpected statuses with their counts, most frequent first.
        statuses: Vec<(u16, u64)>,
    },
    /// Steps up to the last do not show where throughput stops growing.
    TooUneven {
        /// Most users that were tried.
        users: u32,
    },
    /// Throughput grew up to the most users that were allowed.
    StillGrew {
        /// Most users that were tried.
        users: u32,
        /// Users that were asked for, where the time was up before more could be tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u32>,
    },
    /// The server's processes could not be watched.
    NotWatched {
        /// The reason.
        reason: ServerUnwatched,
    },
    /// Less is known of the sockets of a network namespace than of others.
    SocketsUnread {
        /// The host that it is of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
        /// The namespace, and the reason.
        reason: SocketsUnread,
        /// How many more namespaces there are of which less is known.
        others: u64,
    },
    /// Tiers behind the server run on a host that is observed, and their processes may not be looked into.
    TiersNotWatched {
        /// The host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
        /// The addresses that the server, or a tier behind it, calls.
        addresses: Vec<ServerAddress>,
    },
    /// Connections led to more addresses than are watched at a time.
    AddressesLeftOut {
        /// The host whose connections they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: HostName,
        /// Users of the step where most were left out.
        users: u32,
        /// How many were left out at one moment: those with fewest connections.
        addresses: u64,
        /// How many there were.
        of: u64,
    },
    /// An agent on another host did not tell all.
    AgentTrouble {
        /// The name of its host.
        host: String,
        /// What it did not tell, and why.
        trouble: AgentTrouble,
    },
    /// A database did not tell all about its locks.
    DatabaseTrouble {
        /// Its name in reports, without credentials.
        database: String,
        /// The reason.
        reason: DatabaseTrouble,
    },
    /// No session was ever at work in the database.
    DatabaseIdle {
        /// Its name in reports, without credentials.
        database: String,
    },
    /// The generator was busy.
    GeneratorBusy {
        /// Users of the step where it was busiest.
        users: u32,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// The generator made nearly all that it can make.
    NearCeiling {
        /// Users of the step with the highest throughput.
        users: u32,
        /// That throughput as a share of the ceiling.
        share: f64,
        /// Requests of the cheapest kind that the generator can make per second.
        ceiling_per_s: f64,
    },
    /// One of several generators was busy.
    OneGeneratorBusy {
        /// Its name.
        generator: String,
        /// Users of the step where it was busiest.
        users: u32,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// One of several generators made nearly all that it can make.
    OneGeneratorNearCeiling {
        /// Its name.
        generator: String,
        /// Users of the step where it made most.
        users: u32,
        /// What it made as a share of its ceiling.
        share: f64,
        /// Requests of the cheapest kind that it can make per second.
        ceiling_per_s: f64,
    },
    /// Something went wrong with one of several generators.
    GeneratorTrouble {
        /// Its name.
        generator: String,
        /// What went wrong.
        trouble: GeneratorTrouble,
    },
    /// A generator was lost, and the measurement with it, which was made again from its beginning.
    MeasuredAgain {
        /// How often it was made again.
        times: u32,
        /// The name of the generator that was lost, the last one where it was made again more than once.
        generator: String,
        /// How that was lost.
        loss: GeneratorLoss,
    },
    /// What was measured stands, and no proof was asked for: a generator was lost, and with it what it had been told.
    NotProven {
        /// The name of the generator that was lost first.
        generator: String,
        /// How that was lost.
        loss: GeneratorLoss,
    },
    /// Generator and server shared processors.
    SharedCores {
        /// N*; absent for one load.
        users: Option<u32>,
        /// The busiest tier.
        server: Processes,
        /// Use of the processors by group.
        shares: Shares,
        /// Requests per second that the server would reach alone, where its CPU is the limit.
        alone_per_s: Option<f64>,
    },
    /// Steps reached no steady state.
    NotSteady {
        /// Their users.
        users: Vec<u32>,
    },
    /// Users were idle.
    IdleUsers {
        /// Users of the worst step.
        users: u32,
        /// Share of them, 0 to 1.
        share: f64,
    },
    /// The first request was answered by a redirect, which counts as success and is not followed.
    Redirected {
        /// The status.
        status: u16,
    },
    /// Responses paused for as long as TCP delays an acknowledgement.
    HeldBack {
        /// Users of the step where most did.
        users: u32,
        /// Share of the requests whose responses did, 0 to 1.
        share: f64,
        /// Mean length of their pauses, microseconds.
        pause_us: f64,
        /// Mean response time of the step, microseconds.
        response_us: f64,
    },
    /// A step had another throughput when it was measured again.
    Changed {
        /// Its users.
        users: u32,
        /// Every measurement in the order of time.
        course: Vec<Replicate>,
    },
    /// Nothing was answered for a noticeable part of the time, beyond what chance explains.
    Stalls(Stalls),
    /// Steps were too short for an interval.
    NoInterval {
        /// Their users.
        users: Vec<u32>,
    },
    /// Too few responses at N* for some percentiles, which are not shown.
    FewResponses {
        /// Users of the step.
        users: u32,
        /// How many responses there were.
        samples: u64,
        /// The lowest percentile that is not shown, 0 to 1.
        share: f64,
        /// How many it needs.
        needed: u64,
    },
    /// The interval at N* is wide.
    WideInterval {
        /// N*.
        users: u32,
        /// Half its width as a share of the throughput.
        half_width: f64,
    },
    /// Little's law is off at a step.
    Little {
        /// Users of the worst step.
        users: u32,
        /// The gap as a share of the users, without its sign.
        gap: f64,
    },
    /// The hypervisor took processor time.
    Steal {
        /// Users of the worst step.
        users: u32,
        /// Share of the processor time, 0 to 1.
        share: f64,
    },
    /// A listen queue of this host overflowed.
    ListenQueue {
        /// Users of the worst step.
        users: u32,
        /// Connections per second that found it full.
        overflows_per_s: f64,
        /// The fullest queue of the server, where that was never full.
        not_full: Option<ListenQueue>,
    },
    /// A limit of this host that makes requests fail was reached.
    LimitReached {
        /// The limit.
        limit: KernelEvidence,
    },
    /// The limit on open files allowed fewer users than were asked for.
    FewerUsers(FewerUsers),
    /// The kinds of request did not come in the shares asked for.
    Mix {
        /// The kind that is furthest from its share.
        request: String,
        /// The share that it had, 0 to 1.
        share: f64,
        /// The share asked for, 0 to 1.
        asked: f64,
        /// Requests that were replaced by another kind.
        replaced: Vec<Replaced>,
    },
    /// Data that was meant to come from a disk came from memory, or may have.
    NotCold {
        /// Users of the step that the verdict is about.
        users: u32,
        /// Share of the received bytes that came from a disk, 0 to 1; absent where that is not known.
        share: Option<f64>,
    },
    /// A program ran without the limit on its memory that it should have had.
    MemoryNotLimited {
        /// What the experiment calls it.
        program: String,
        /// The limit, bytes.
        limit_bytes: u64,
        /// The number of the system's error; absent where it gave none.
        os_error: Option<i32>,
    },
    /// A program ran without the limit on what it asks of the disk that it should have had.
    DiskNotLimited {
        /// What the experiment calls it.
        program: String,
        /// The number of the system's error; absent where it gave none.
        os_error: Option<i32>,
    },
    /// A sentence of a run file from before warnings were typed, or from a newer version.
    Told {
        /// The sentence.
        text: String,
    },
}

/// How full a listen queue was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListenQueue {
    /// Its port.
    pub port: u16,
    /// Most connections that waited.
    pub waiting: u64,
    /// How many it holds.
    pub backlog: u64,
}

/// Fewer users than asked for, because of the limit on open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FewerUsers {
    /// Users asked for.
    pub asked: u32,
    /// Open files that they need.
    pub files_needed: u64,
    /// Open files that a process may have.
    pub files_limit: u64,
    /// Users that the limit allows.
    pub allowed: u32,
}

/// Requests of one kind that were replaced by another kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replaced {
    /// The kind.
    pub request: String,
    /// How often.
    pub times: u64,
}

impl Warning {
    /// A warning of this kind.
    pub fn new(kind: WarningKind, cause: Cause) -> Self {
        Self { kind, text: Words::default(), cause }
    }
}

impl Default for Cause {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

impl From<Cause> for Warning {
    fn from(cause: Cause) -> Self {
        Self::new(cause.kind(), cause)
    }
}

impl Cause {
    /// Whether nothing is known of the cause but words that stand elsewhere.
    fn is_empty(&self) -> bool {
        matches!(self, Self::Told { text } if text.is_empty())
    }

    /// The kind of warning that it makes.
    fn kind(&self) -> WarningKind {
        match self {
            Self::Interrupted => WarningKind::Interrupted,
            Self::DebugBuild => WarningKind::DebugBuild,
            Self::Stalled { .. } => WarningKind::StoppedAnswering,
            Self::RequestsFailed { .. } => WarningKind::Errors,
            Self::TooUneven { .. } | Self::StillGrew { .. } => WarningKind::NotBounded,
            Self::NotWatched { .. }
            | Self::SocketsUnread { .. }
            | Self::TiersNotWatched { .. }
            | Self::AddressesLeftOut { .. }
            | Self::AgentTrouble { .. }
            | Self::DatabaseTrouble { .. }
            | Self::DatabaseIdle { .. } => WarningKind::NotObserved,
            Self::GeneratorBusy { .. }
            | Self::NearCeiling { .. }
            | Self::OneGeneratorBusy { .. }
            | Self::OneGeneratorNearCeiling { .. } => WarningKind::GeneratorBusy,
            Self::GeneratorTrouble { .. } | Self::MeasuredAgain { .. } | Self::NotProven { .. } => {
                WarningKind::Generators
            }
            Self::SharedCores { .. } => WarningKind::SharedCores,
            Self::NotSteady { .. } | Self::IdleUsers { .. } => WarningKind::NotSteady,
            Self::Changed { .. } | Self::ServerReplaced { .. } => WarningKind::Changed,
            Self::Stalls(_) => WarningKind::Stalls,
            Self::NoInterval { .. } | Self::WideInterval { .. } | Self::FewResponses { .. } => {
                WarningKind::TooShort
            }
            Self::Little { .. } => WarningKind::Little,
            Self::Steal { .. } => WarningKind::Steal,
            Self::ListenQueue { .. }
            | Self::LimitReached { .. }
            | Self::FewerUsers(_)
            | Self::MemoryNotLimited { .. }
            | Self::DiskNotLimited { .. }
            | Self::Told { .. } => WarningKind::HostLimit,
            Self::Mix { .. } => WarningKind::Mix,
            Self::Redirected { .. } => WarningKind::Redirected,
            Self::HeldBack { .. } => WarningKind::HeldBack,
            Self::NotCold { .. } => WarningKind::NotCold,
        }
    }
}
