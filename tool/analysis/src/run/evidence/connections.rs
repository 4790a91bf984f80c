//! Evidence about connections that are not accepted, or turned away.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Processes;

/// Evidence about connections that are not accepted, or turned away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ConnectionEvidence {
    /// A table of descriptors is full.
    DescriptorsFull {
        /// The processes.
        of: Processes,
        /// Descriptors open.
        open: u64,
        /// The limit.
        limit: u64,
        /// N*.
        users: u32,
    },
    /// Connections turned away while the table was full.
    TurnedAway {
        /// Requests that were refused, turned away, reset, closed early or timed out.
        requests: u64,
        /// Whether connections waited to be accepted.
        queued: bool,
    },
    /// Advice to raise the limit of a full table.
    RaiseDescriptorLimit,
    /// The listen queue overflows.
    ListenQueueFull {
        /// Connections per second that found it full.
        overflows_per_s: f64,
        /// Connections per second that were dropped.
        drops_per_s: f64,
        /// N*.
        users: u32,
    },
    /// Handshakes had to be tried again, as the generator's host counted.
    HandshakesRetried {
        /// How many per second.
        per_s: f64,
        /// N*.
        users: u32,
    },
    /// Users that had no connection, by Little's law, while the queue overflowed.
    NotAdmitted {
        /// Users of the step.
        users: u32,
        /// How many of them were not let in.
        outside: f64,
    },
    /// How full the queue was.
    ListenQueueSeen {
        /// Its port.
        port: u16,
        /// Most connections that waited.
        waiting: u64,
        /// How many the queue holds.
        backlog: u64,
        /// Share of the samples that found it full.
        full: f64,
    },
    /// The server may accept slowly because its workers are taken.
    AcceptsSlowly {
        /// Requests served at a time.
        at_a_time: f64,
    },
    /// Connections waited to be accepted.
    WaitingToBeAccepted {
        /// The port.
        port: u16,
        /// Most connections that waited.
        connections: u64,
    },
    /// Connecting took much of the response times.
    ConnectingTook {
        /// Share of them, 0 to 1.
        share: f64,
        /// Mean time to connect, microseconds.
        mean_us: f64,
        /// Users of the step.
        users: u32,
    },
    /// The server told clients that it is too busy.
    ToldToComeBack {
        /// How many requests.
        requests: u64,
    },
}
