//! The run file, `nstar.run/1`: everything a sweep or a load found, as one value.
//!
//! Field names are a contract. Others may be added; these hold.

mod response_time;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::response_time::{PERCENTILES, Percentile, ResponseTime};
use crate::proof::Proof;
use crate::sample::{ErrorCounts, ErrorRates};

/// The value of [`Run::schema`].
pub const SCHEMA: &str = "nstar.run/1";

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What was driven: a URL, or a scenario's name and base URL. Never holds credentials.
    pub target: String,
    /// Where the generator ran.
    pub host: Host,
    /// When the run began, RFC 3339, UTC.
    pub started: String,
    /// How long the whole run took, warm-up and pauses included, seconds.
    pub elapsed_s: f64,
    /// Version of nstar that wrote this.
    pub version: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// How the load was made.
    pub load: LoadShape,
    /// The kinds of request, where the load has several; the whole run, warm-up included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestShare>,
    /// Whether what was promised is what the database holds, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What was concluded.
    pub verdict: Verdict,
    /// One entry per number of users, ascending.
    pub steps: Vec<Step>,
    /// Operational laws.
    pub laws: Laws,
    /// Fitted models.
    pub models: Models,
    /// What to distrust.
    pub warnings: Vec<Warning>,
}

/// The generator's host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Online processors.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
}

/// How the load was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadShape {
    /// `closed` or `open`.
    pub loop_kind: String,
    /// Open loop: intended requests per second.
    pub rate_per_s: Option<f64>,
    /// Mean think time between a response and the next request, microseconds.
    pub think_time_us: f64,
    /// `kept` or `per-request`.
    pub connections: String,
    /// Generator threads.
    pub threads: u32,
    /// Processors the generator was confined to, if it was.
    pub generator_cpus: Option<Vec<u32>>,
    /// Processors the systems under test were confined to, if nstar confined them.
    pub system_cpus: Option<Vec<u32>>,
}

/// One of several kinds of request, as asked and as it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestShare {
    /// What the scenario calls it.
    pub name: String,
    /// Its weight as a share of all weights, 0 to 1.
    pub asked_share: f64,
    /// Its share of the requests that completed, 0 to 1.
    pub share: f64,
    /// How many completed.
    pub completed: u64,
    /// How often another was made in its turn, for the user had kept nothing that it could take.
    pub replaced: u64,
}

/// What was concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// N*: the smallest number of users that reaches 95 % of the maximum throughput.
    pub users_at_saturation: Option<u32>,
    /// 95 % interval of N*, [lo, hi].
    pub users_at_saturation_ci: Option<[u32; 2]>,
    /// Crossing of the asymptotes, (R(1) + Z) * X_max.
    pub knee_users: Option<f64>,
    /// Whether throughput was seen to stop growing. If not, the maximum is a lower bound.
    pub bounded: bool,
    /// Maximum throughput, completed requests per second.
    pub throughput_max_per_s: f64,
    /// 95 % interval of it, [lo, hi].
    pub throughput_max_ci_per_s: [f64; 2],
    /// Response time at N* (at the last step if not bounded).
    pub response_time_at_saturation_us: ResponseTime,
    /// What stops the server there.
    pub bottleneck: Bottleneck,
    /// Why the answer is not to be relied on, one sentence each; empty when it is.
    pub inconclusive: Vec<String>,
    /// What would come next if the bottleneck were removed, one sentence.
    pub next: Option<String>,
}

/// What kind of thing stops a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// All the processors the holder may use.
    Cpu,
    /// One thread at the speed of one core, others idle.
    SingleThread,
    /// A cgroup's CPU quota.
    CpuQuota,
    /// A block device.
    Disk,
    /// A link or a shaper on it.
    Network,
    /// Mutual exclusion inside the server.
    Lock,
    /// A fixed number of workers, all waiting.
    WorkerPool,
    /// The listen queue.
    AcceptQueue,
    /// The limit on open descriptors.
    FileDescriptors,
    /// Memory.
    Memory,
    /// A tier behind the server.
    Upstream,
    /// The load generator itself.
    Generator,
    /// Never saturated.
    None,
    /// Saturated, and no evidence says why.
    Unknown,
}

/// The resource that stops the server, with evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// What kind of resource.
    pub kind: ResourceKind,
    /// The process or device, such as `nginx (pid 812)` or `vda`; empty where there is none.
    pub holder: String,
    /// Busy share at N*, 0 to 1 of what the holder could use.
    pub utilization: Option<f64>,
    /// Service demand on it, microseconds per completed request.
    pub demand_us: Option<f64>,
    /// What was seen, in sentences with numbers, most telling first.
    pub evidence: Vec<String>,
    /// Which threads the holder's CPU time was spent in, where that is what it lacks and their names tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadTime>,
    /// The next most utilised resource.
    pub runner_up: Option<Resource>,
    /// How sure.
    pub confidence: Confidence,
}

/// A process's CPU time by the names of its threads, at N* and the steps beyond it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTime {
    /// Threads of one name with at least 1 % of it, most first.
    pub names: Vec<NamedThreads>,
    /// Share that is in no entry, 0 to 1: threads that came and went between two looks or were too many to be looked
    /// at, children that ended, names with less than 1 %.
    pub rest: f64,
}

/// Threads of one name, of all processes that hold the bottleneck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedThreads {
    /// The kernel's short name of them; `worker-*` stands for `worker-1`, `worker-2` and so on.
    pub name: String,
    /// Most of them at any one look.
    pub threads: u64,
    /// Share of the CPU time, 0 to 1.
    pub share: f64,
    /// Microseconds of CPU time per completed request.
    pub demand_us: Option<f64>,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Direct evidence, nothing against it.
    High,
    /// Direct evidence, with a rival close by.
    Medium,
    /// By elimination, or with evidence missing.
    Low,
}

/// One resource's use during a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// What kind.
    pub kind: ResourceKind,
    /// The process or device.
    pub holder: String,
    /// Busy share, 0 to 1 of what the holder could use.
    pub utilization: f64,
    /// Cores, devices or bits per second in use, for the reader; unit in `unit`.
    pub used: f64,
    /// What `used` is at most.
    pub capacity: f64,
    /// Unit of `used` and `capacity`.
    pub unit: String,
}

/// One number of users (or, in an open loop, one rate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Errors by kind.
    pub errors: ErrorCounts,
    /// The same per second; empty in run files from before it was counted.
    #[serde(default)]
    pub errors_per_s: ErrorRates,
    /// Whether the step reached a steady state.
    pub steady: bool,
    /// Little's law: (N - X (R + Z)) / N.
    pub little_gap: f64,
    /// Body bytes received per second.
    pub received_bytes_per_s: f64,
    /// Body bytes sent per second; 0 in run files from before it was counted.
    #[serde(default)]
    pub sent_bytes_per_s: f64,
    /// Resources by falling utilisation.
    pub resources: Vec<Resource>,
    /// Who waited for whom in the database, where one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Locks>,
    /// The generator's account of itself.
    pub generator: Generator,
}

/// What a database told of its locks during a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locks {
    /// Transactions that waited for a lock which another held, on average.
    pub waiting: f64,
    /// Sessions at work, those that waited among them, on average.
    pub at_work: f64,
    /// Share of the looks that found somebody waiting, 0 to 1.
    pub contended: f64,
    /// How often it was asked.
    pub looks: u64,
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

/// Operational laws over the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Laws {
    /// Little's law held, within the intervals, at every steady step where it can be tested.
    pub little_holds: bool,
    /// The largest gap of a steady step, as a share of N.
    pub little_gap_max: f64,
    /// Users of the steps of a closed loop where Little's law cannot be tested: too many requests failed, and the time
    /// spent in those is not counted. Absent where there are none, and in run files from before it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub little_untested: Vec<u32>,
    /// Service demand per resource by the utilisation law, U = X D, regressed over the steps.
    pub demands: Vec<Demand>,
}

/// Service demand of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// What kind.
    pub kind: ResourceKind,
    /// The process or device.
    pub holder: String,
    /// Microseconds of the resource per completed request.
    pub demand_us: f64,
    /// 95 % interval, [lo, hi]; absent with fewer than three steps.
    pub demand_ci_us: Option<[f64; 2]>,
    /// Throughput at which this resource alone would be full, requests per second.
    pub throughput_limit_per_s: f64,
}

/// Fitted models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// Asymptotic bounds.
    pub bounds: Option<Bounds>,
    /// Mean value analysis of the measured demands.
    pub mva: Option<Vec<Predicted>>,
    /// Universal scalability law.
    pub usl: Option<Usl>,
}

/// Asymptotic bounds (Denning and Buzen 1978).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// Response time of one user alone, microseconds.
    pub response_time_alone_us: f64,
    /// Upper bound on throughput, requests per second.
    pub throughput_max_per_s: f64,
    /// Where the asymptotes cross, users.
    pub knee_users: f64,
}

/// A model's prediction for one number of users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Users.
    pub users: u32,
    /// Predicted throughput, requests per second.
    pub throughput_per_s: f64,
    /// Predicted mean response time, microseconds.
    pub response_time_us: f64,
}

/// Universal scalability law, X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) (Gunther 1993).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usl {
    /// Throughput of one user, requests per second.
    pub lambda_per_s: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
    /// Share of the variance of throughput it explains.
    pub r_squared: f64,
}

/// Something that makes the run less trustworthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What kind.
    pub kind: WarningKind,
    /// A sentence: what, by how much, what to do.
    pub text: String,
}

/// Kinds of [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Generator and server shared processors.
    SharedCores,
    /// The generator was close to its own limit.
    GeneratorBusy,
    /// A step never became steady.
    NotSteady,
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
}

impl Verdict {
    /// Whether the answer can be relied on. A bottleneck that is `unknown` does not make it inconclusive:
    /// N* and the throughput stand without their cause.
    pub fn is_conclusive(&self) -> bool {
        self.inconclusive.is_empty()
    }
}

impl Run {
    /// Whether any request completed.
    pub fn completed_any(&self) -> bool {
        self.steps.iter().any(|step| step.completed > 0)
    }

    /// Failed requests as a share of all requests, 0 to 1; 0 where there were none.
    pub fn error_share(&self) -> f64 {
        let completed: u64 = self.steps.iter().map(|step| step.completed).sum();
        let failed: u64 = self.steps.iter().flat_map(|step| step.errors.values()).sum();
        failed as f64 / (completed + failed).max(1) as f64
    }
}
