//! Evidence about the tier at which requests queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Identity, Processes};

/// Evidence about the tier at which requests queue, from the requests outstanding on the connections between tiers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HopEvidence {
    /// The requests at this tier, and not at those behind it, grew with the users.
    RequestsQueue {
        /// The tier: processes, or an upstream.
        at: Identity,
        /// Users of a lighter step.
        from_users: u32,
        /// Requests at the tier there, on average.
        from_requests: f64,
        /// Users of the heaviest step.
        to_users: u32,
        /// Requests at the tier there, on average.
        to_requests: f64,
    },
    /// Requests that the tier had not even read.
    NotRead {
        /// The tier.
        of: Processes,
        /// How many, on average.
        requests: f64,
        /// Users of the step.
        users: u32,
    },
    /// Connections wait to be accepted while next to no request is worked on.
    NotAccepted {
        /// The tier.
        of: Processes,
        /// Connections that waited, on average.
        connections: f64,
        /// Requests that the tier had read and not answered, on average.
        held: f64,
        /// Users of the step.
        users: u32,
    },
    /// The connections to a tier do not tell whether requests wait there.
    NotTold {
        /// The tier.
        at: Identity,
        /// Connections of which it is not known, on average.
        connections: f64,
        /// Users of the step.
        users: u32,
    },
    /// Of the requests served at a time, those that are not at the tier where they queue.
    ServedElsewhere {
        /// The tier at which they queue.
        of: Processes,
        /// Requests at other tiers, on average.
        elsewhere: f64,
        /// Requests that the tier itself serves at a time.
        at_a_time: f64,
    },
    /// The time that a request spends at each tier, by Little's law.
    TimePerTier {
        /// The tiers, those in front first.
        tiers: Vec<TierTime>,
        /// Users of the step.
        users: u32,
    },
    /// All connections to a tier are in use, and their number does not grow.
    ConnectionsInUse {
        /// The processes that call.
        of: Processes,
        /// The tier that they call.
        to: Identity,
        /// Connections, on average.
        connections: f64,
        /// Requests outstanding on them, on average.
        outstanding: f64,
        /// Users of a lighter step at which it was the same.
        from_users: u32,
        /// Users of the heaviest step.
        to_users: u32,
    },
    /// The tier that is called is none of those that are observed.
    NotJoined {
        /// The address that is called.
        to: Identity,
        /// Whether address translation may lead on from there to a tier that is observed: connection tracking, which would tell,
        /// could not be read where it is called.
        translation_unread: bool,
    },
}

/// The time that a request spends at a tier, those behind it not counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierTime {
    /// The tier: processes, or an upstream.
    pub at: Identity,
    /// Requests there, on average.
    pub requests: f64,
    /// Microseconds per request.
    pub time_us: f64,
}
