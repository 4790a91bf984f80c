//! One step of a run: what was measured with one number of users.
//!
//! [`estimate`](crate::estimate::estimate) makes it from ticks, whoever watched the server adds what the resources did,
//! and [`conclude`](crate::conclude::conclude) adds what follows from that.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GeneratorShare, Identity, ResourceKind, ResponseTime, Unit, Words, known};
use crate::resources::{Group, Usage};
use crate::ticks::{ErrorCounts, ErrorRates, KindCounts, failed_share, failures};

/// One number of users (or, in an open loop, one rate).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Users in the closed loop.
    pub users: u32,
    /// Length of the measured part, warm-up removed, seconds.
    pub elapsed_s: f64,
    /// Seconds dropped as warm-up.
    pub warmup_s: f64,
    /// Requests completed in the measured part.
    pub completed: u64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// 95 % interval of it, [lo, hi]; absent where the step was too short to give one.
    pub throughput_ci_per_s: Option<[f64; 2]>,
    /// Response times.
    pub response_time_us: ResponseTime,
    /// Each kind of request, in the order of the scenario, where it has several. Empty where it has one, where nothing came
    /// back, and in files from before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<StepRequest>,
    /// Errors by kind.
    pub errors: ErrorCounts,
    /// The same per second; empty in run files from before it was counted.
    #[serde(default)]
    pub errors_per_s: ErrorRates,
    /// Whether the step reached a steady state.
    pub steady: bool,
    /// Little's law over users: (N - X (R + Z)) / N.
    pub little_gap: f64,
    /// Requests under way on average, counted at instants, and their 95 % interval, [lo, hi]; absent where they were not
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Body bytes received per second.
    pub received_bytes_per_s: f64,
    /// Body bytes sent per second; 0 in run files from before it was counted.
    #[serde(default)]
    pub sent_bytes_per_s: f64,
    /// What connecting took; absent where connections were kept, or this was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connecting: Option<Connecting>,
    /// Responses that paused for as long as TCP delays an acknowledgement; absent where none did, or this was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// Share of the received bytes that the server and the tiers behind it read from a disk meanwhile, 0 to 1; absent where
    /// nothing was received, or where what they read is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_disk_share: Option<f64>,
    /// How much of a fixed piece of work the processors of the systems did for a second of CPU time: neighbours of a virtual
    /// machine slow them down. Only the ratio of two such figures of one experiment means anything; absent where they were
    /// not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_speed: Option<f64>,
    /// Resources by falling utilisation.
    pub resources: Vec<Resource>,
    /// Waits for locks in the database, if one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// Each measurement of these users in the order of time, where the sweep came back to them: the other figures of the
    /// step come from all of them. Empty where it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicates: Vec<Replicate>,
    /// The last of several measurements; files from before [`Self::replicates`] were kept have it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    /// The generator's account of itself; of several, their mean work, and the lag of the one that was latest.
    pub generator: Generator,
    /// What each of several generators did; empty where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorShare>,
    // The run file leaves out the rest, which is at its default in a step that was read from one.
    /// How the figures were measured.
    #[serde(skip)]
    pub measurement: Measurement,
    /// The use of each resource meanwhile.
    #[serde(skip)]
    pub usage: Usage,
}

/// One of several kinds of request during a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRequest {
    /// Its name in the scenario; empty where all kinds after the first 32 are taken together.
    pub name: String,
    /// Requests of this kind completed in the measured part.
    pub completed: u64,
    /// Its share of the requests that completed there, 0 to 1.
    pub share: f64,
    /// Completed requests of this kind per second.
    pub throughput_per_s: f64,
    /// Response times of this kind.
    pub response_time_us: ResponseTime,
}

/// The mean number of requests under way, L of Little's law.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// The mean.
    pub mean: f64,
    /// 95 % interval of it, [lo, hi]; absent where there were too few counts.
    pub ci: Option<[f64; 2]>,
}

/// What it took to connect: the handshakes of TCP and TLS. Names are looked up before the load begins, and take no part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connecting {
    /// Connections made, for each completed request.
    pub per_request: f64,
    /// Mean time from the attempt until the connection took the request, microseconds.
    pub mean_us: f64,
    /// Share of all response times, 0 to 1.
    pub share: f64,
}

/// Responses that came in parts, the last after a pause of about 40 ms: a server that writes a response in two pieces waits for
/// the acknowledgement of the first (Nagle's algorithm, RFC 896), which the client delays (RFC 1122 section 4.2.3.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    /// Share of the completed requests, 0 to 1.
    pub share: f64,
    /// Mean length of their pauses, microseconds.
    pub mean_us: f64,
}

/// One of several measurements of the same number of users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replicate {
    /// Seconds from the beginning of the first step to that of this measurement.
    pub at_s: f64,
    /// Length of the measured part, warm-up removed, seconds.
    pub elapsed_s: f64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// 95 % interval of it, [lo, hi], from the scatter within this measurement; absent where it was too short to give one.
    pub throughput_ci_per_s: Option<[f64; 2]>,
    /// Mean response time, microseconds.
    pub response_time_mean_us: f64,
    /// 95 % interval of it, [lo, hi], from the scatter within this measurement; absent where it was too short to give one.
    #[serde(skip)]
    pub response_time_ci_us: Option<[f64; 2]>,
    /// Whether it reached a steady state. Those that did not are part of the step's figures only if none did.
    pub steady: bool,
    /// Batches its intervals were made from; 0 without one.
    #[serde(skip)]
    pub batches: usize,
}

/// The throughput of a step that was measured a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Again {
    /// Length of the measured part, warm-up removed, seconds.
    pub elapsed_s: f64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// 95 % interval of it, [lo, hi]; absent where it was too short to give one.
    pub throughput_ci_per_s: Option<[f64; 2]>,
}

impl From<&Replicate> for Again {
    fn from(last: &Replicate) -> Self {
        let Replicate { elapsed_s, throughput_per_s, throughput_ci_per_s, .. } = *last;
        Self { elapsed_s, throughput_per_s, throughput_ci_per_s }
    }
}

impl Replicate {
    /// This measurement as one of several, begun so many seconds after the first step.
    pub(crate) fn of(step: &Step, at_s: f64) -> Self {
        Self {
            at_s,
            elapsed_s: step.elapsed_s,
            throughput_per_s: step.throughput_per_s,
            throughput_ci_per_s: step.throughput_ci_per_s,
            response_time_mean_us: step.response_time_us.mean,
            response_time_ci_us: step.response_time_us.mean_ci,
            steady: step.steady,
            batches: step.measurement.batches,
        }
    }

    /// Degrees of freedom of its intervals. Many where it does not say.
    pub(crate) fn degrees_of_freedom(&self) -> f64 {
        if self.batches > 1 { self.batches as f64 - 1.0 } else { f64::from(u16::MAX) }
    }
}

/// How the figures of a step were measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// Start and end of the measured part, microseconds of the monotonic clock; of several measurements, that of the
    /// longest.
    pub window: (u64, u64),
    /// The measured parts of all measurements, also of those that were not steady: where threads wait is seen whether or not
    /// throughput settled. Empty where there is only one.
    pub windows: Vec<(u64, u64)>,
    /// The measured parts of those measurements that the figures are of: of the steady ones, or of all where none was. Empty
    /// where there is only one measurement.
    pub counted: Vec<(u64, u64)>,
    /// Batches the throughput's interval was made from; 0 without one.
    pub batches: usize,
    /// Degrees of freedom of the throughput's interval where that is not one less than the batches; 0 elsewhere.
    pub degrees_of_freedom: f64,
    /// Whether batches long enough to be uncorrelated were found. If not, the intervals were widened.
    pub uncorrelated: bool,
    /// Errors in the dropped start and in the stall of a server that died: not part of any rate, but not hidden
    /// either.
    pub unmeasured_errors: ErrorCounts,
    /// Statuses that were not expected, over the whole step.
    pub unexpected_statuses: BTreeMap<u16, u64>,
    /// The server stopped answering before the step ended; the measured part ends before that.
    pub stall: Option<Stall>,
    /// Stretches in which nothing was answered though the server answers all the time otherwise.
    pub pauses: Pauses,
    /// Stretches of all measurements in which requests were under way and nothing was answered, for longer than chance and
    /// the requests themselves explain: start and end, microseconds of the monotonic clock, in order.
    pub silences: Vec<(u64, u64)>,
    /// Mean number of users that were thinking.
    pub mean_thinking_users: f64,
    /// Completions of each kind of request in each measurement that counts; empty where the load has one kind.
    pub kinds: Vec<KindCounts>,
}

/// An end of a step during which nothing was answered, though users went on trying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stall {
    /// Requests completed before the stall.
    pub completed: u64,
    /// How long it lasted, microseconds.
    pub length_us: u64,
}

/// Stretches of a step in which nothing was answered, though much was due.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pauses {
    /// Share of the measured time, 0 to 1.
    pub share: f64,
    /// How many there were.
    pub count: u64,
    /// The longest, microseconds.
    pub longest_us: u64,
}

impl Measurement {
    /// The measured parts of all measurements.
    pub fn all_windows(&self) -> Vec<(u64, u64)> {
        if self.windows.is_empty() { vec![self.window] } else { self.windows.clone() }
    }

    /// The measured parts of those measurements that the figures are of.
    pub fn counted_windows(&self) -> Vec<(u64, u64)> {
        if self.counted.is_empty() { vec![self.window] } else { self.counted.clone() }
    }
}

impl Step {
    /// Length of the measured part, microseconds.
    pub fn measured_us(&self) -> u64 {
        (self.elapsed_s * 1e6).round() as u64
    }

    /// Length of the dropped start, microseconds.
    pub fn warmup_us(&self) -> u64 {
        (self.warmup_s * 1e6).round() as u64
    }

    /// Half the width of the throughput's interval as a share of the throughput; `None` without an interval
    /// or without completions.
    pub fn throughput_relative_half_width(&self) -> Option<f64> {
        relative_half_width(self.throughput_ci_per_s?, self.throughput_per_s)
    }

    /// The same for the mean response time.
    pub fn response_relative_half_width(&self) -> Option<f64> {
        relative_half_width(self.response_time_us.mean_ci?, self.response_time_us.mean)
    }

    /// This process where it makes the load; `None` where generators elsewhere do, or nobody watched.
    pub fn generator_here(&self) -> Option<&Group> {
        self.usage.generator().filter(|_| self.generators.is_empty())
    }

    /// The busiest of several generators; `None` where one makes the load alone.
    pub fn busiest_generator(&self) -> Option<&GeneratorShare> {
        let known = self.generators.iter().filter(|one| one.useful_work.is_finite());
        known.max_by(|a, b| a.useful_work.total_cmp(&b.useful_work))
    }

    /// Failed requests as a share of all that ended, 0 to 1; 0 where none ended.
    pub fn failed_share(&self) -> f64 {
        failed_share(self.completed, failures(&self.errors))
    }
}

fn relative_half_width([low, high]: [f64; 2], centre: f64) -> Option<f64> {
    (centre > 0.0).then(|| (high - centre).max(centre - low) / centre)
}

/// Locks of a database during a step, as the database reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locks {
    /// Transactions that waited for a lock which another held, on average.
    pub waiting: f64,
    /// Sessions at work, those that waited among them, on average.
    pub at_work: f64,
    /// Share of the samples that found somebody waiting, 0 to 1.
    pub contended: f64,
    /// How often it was asked.
    #[serde(rename = "looks")]
    pub samples: u64,
}

/// The generator's account of itself during a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// Share of its threads' time spent outside the wait for events, 0 to 1.
    pub useful_work: f64,
    /// 99th percentile of its lag in handling events, microseconds.
    pub lag_us_p99: f64,
    /// Share of its cores' time its threads waited for a processor, 0 to 1.
    pub run_queue_wait: f64,
    /// Share of time its cgroup kept it stopped, 0 to 1.
    pub throttled: f64,
}

/// One resource's use during a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device.
    pub holder: Words,
    /// The resource itself; absent in run files from before identities were typed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// Busy share, 0 to 1 of what the holder could use.
    pub utilization: f64,
    /// How much is in use, in `unit`.
    pub used: f64,
    /// The most that `used` can be.
    pub capacity: f64,
    /// Unit of `used` and `capacity`.
    pub unit: Unit,
}
