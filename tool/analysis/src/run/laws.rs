//! Operational laws and fitted models, as the run file holds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Identity, ResourceKind, Words, known};

/// Operational laws over the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Laws {
    /// Little's law held, within the intervals, at every steady step where it can be tested.
    pub little_holds: bool,
    /// The largest gap of a steady step, as a share of N.
    pub little_gap_max: f64,
    /// Users of the steps of a closed loop where Little's law cannot be tested: too many requests failed, and the time
    /// spent in those is not counted. Absent where there are none, and in older run files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub little_untested: Vec<u32>,
    /// Service demand per resource by the utilisation law, U = X D, regressed over the steps.
    pub demands: Vec<Demand>,
}

/// Service demand of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The name of the process or device.
    pub holder: Words,
    /// The resource itself; absent in run files from before identities were typed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// Microseconds of the resource per completed request.
    pub demand_us: f64,
    /// 95 % interval, [lo, hi]; absent with fewer than three steps.
    pub demand_ci_us: Option<[f64; 2]>,
    /// Throughput at which this resource alone would be full, requests per second.
    pub throughput_limit_per_s: f64,
}

/// Service demand of one kind of request on one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestDemand {
    /// The kind of resource: processors of a tier, a disk, a link.
    pub kind: ResourceKind,
    /// The name of the process or device.
    pub holder: Words,
    /// The resource itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known::or_default")]
    pub identity: Option<Identity>,
    /// Microseconds of the resource for one request of this kind.
    pub demand_us: f64,
    /// 95 % interval, [lo, hi].
    pub demand_ci_us: [f64; 2],
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
    /// 95 % interval of the throughput of one user, [lo, hi]; like the others absent in files from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda_ci_per_s: Option<[f64; 2]>,
    /// 95 % interval of the contention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma_ci: Option<[f64; 2]>,
    /// 95 % interval of the coherency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa_ci: Option<[f64; 2]>,
    /// Whether the steps lie around the law as their intervals say they should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<bool>,
}
