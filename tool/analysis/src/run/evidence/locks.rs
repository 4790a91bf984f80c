//! Evidence about the locks of a database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Database, Identity, Processes};

/// Evidence about the locks of a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LockEvidence {
    /// How many sessions waited for a lock.
    SessionsWaited {
        /// The database.
        database: Database,
        /// Sessions that waited, on average.
        waiting: f64,
        /// Sessions at work, on average.
        at_work: f64,
        /// N*; there were more users than that.
        users: u32,
        /// Share of the samples that found somebody waiting.
        contended: f64,
        /// How many samples there were.
        #[serde(rename = "looks")]
        samples: u64,
    },
    /// How long a request waited for locks.
    ShareOfResponse {
        /// Microseconds per request.
        waited_us: f64,
        /// Users of the step.
        users: u32,
        /// Share of the response time, 0 to 1.
        share: f64,
        /// Sessions in the database at a time, where clearly fewer than users.
        inside: Option<f64>,
    },
    /// How the queue grew with the users.
    QueueGrew {
        /// Users of the lightest step.
        from_users: u32,
        /// Sessions that waited there.
        from_waiting: f64,
        /// Users of the heaviest step.
        to_users: u32,
        /// Sessions that waited there.
        to_waiting: f64,
    },
    /// Waits counted by the database itself.
    CountedByDatabase {
        /// Sessions waiting at a time.
        waiting: f64,
    },
    /// Nothing but the locks was busy.
    AllElseHadRoom {
        /// The busiest other resource and its busy share.
        busiest: Option<(Identity, f64)>,
    },
    /// The database was not asked.
    NotAsked {
        /// Its processes.
        of: Processes,
    },
    /// Few sessions waited for locks.
    NotTheCause {
        /// The database.
        database: Database,
        /// Sessions that waited, on average.
        waiting: f64,
        /// Sessions at work, on average.
        at_work: f64,
    },
    /// Some sessions waited for locks.
    PartOfTheWaiting {
        /// The database.
        database: Database,
        /// Sessions that waited, on average.
        waiting: f64,
        /// Sessions at work, on average.
        at_work: f64,
    },
}
