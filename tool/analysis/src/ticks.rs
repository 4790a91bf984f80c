//! What the load generator counted, slice by slice.

mod kind_counts;

pub use kind_counts::KindCounts;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reasons why a request did not complete. Only completed requests count towards throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Nobody listens on the port.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// No complete response within the time allowed.
    TimedOut,
    /// A complete response whose status was not an expected one.
    Status,
    /// The server said that it is too busy, and when to come back: 503 or 429 with `Retry-After`, unexpected.
    Unavailable,
    /// Bytes that are not an HTTP response.
    Malformed,
    /// The peer closed before the response was complete.
    ClosedEarly,
    /// A complete response whose body was not the expected one.
    WrongBody,
    /// An answer as expected, without the value that the scenario keeps of it.
    NothingToKeep,
    /// The TLS handshake or record layer failed.
    Tls,
    /// No route to the host, or the network is down.
    Unreachable,
    /// This process ran out of descriptors or local ports.
    LocalLimit,
}

/// Errors counted by kind; a kind that never happened is absent.
pub type ErrorCounts = BTreeMap<ErrorKind, u64>;

/// With more failed requests than this share, the throughput of the others is not that of the service asked for.
const MANY_FAILED: f64 = 0.05;

/// Requests that failed in any way.
pub fn failures(errors: &ErrorCounts) -> u64 {
    errors.values().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Failed requests as a share of all that ended, 0 to 1; 0 where none ended.
pub fn failed_share(completed: u64, failed: u64) -> f64 {
    failed as f64 / (completed as f64 + failed as f64).max(1.0)
}

/// Whether so large a share of the requests failed that the throughput of the others says nothing about the service.
pub fn many_failed(share: f64) -> bool {
    share > MANY_FAILED
}

/// Adds counts of errors to others, kind by kind.
pub(crate) fn add_errors(sum: &mut ErrorCounts, errors: &ErrorCounts) {
    for (&kind, &count) in errors {
        let of_kind = sum.entry(kind).or_default();
        *of_kind = of_kind.saturating_add(count);
    }
}

/// Errors per second by kind; a kind that never happened is absent.
pub type ErrorRates = BTreeMap<ErrorKind, f64>;

/// One slice of a step, all generator threads merged. Slices of a step are consecutive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Start of the slice, microseconds of the monotonic clock shared with [`crate::counters::Counters`].
    pub start_us: u64,
    /// Length of the slice, microseconds.
    pub length_us: u64,
    /// Requests completed in the slice.
    pub completed: u64,
    /// Sum of the response times of those requests, nanoseconds (exact, not from the histogram).
    pub response_time_ns_sum: u64,
    /// Response times of those requests.
    pub response_times: Counts,
    /// How long requests waited that timed out in the slice: their response times would have been at least that.
    pub timed_out: Counts,
    /// The same of each kind of request, ascending by kind, where the load has several; empty where it has one.
    pub by_kind: Vec<KindTick>,
    /// Requests that failed in the slice.
    pub errors: ErrorCounts,
    /// Statuses of responses counted as [`ErrorKind::Status`] or [`ErrorKind::Unavailable`].
    pub unexpected_statuses: BTreeMap<u16, u64>,
    /// Connections made in the slice: ready to send a request, after their handshakes.
    pub connected: u64,
    /// Sum of the times that took, nanoseconds. Where a request waits for its connection it is part of its response time.
    pub connecting_ns_sum: u64,
    /// Completed requests whose response paused before its last part for as long as TCP delays an acknowledgement.
    pub held_back: u64,
    /// Sum of those pauses, nanoseconds.
    pub held_back_ns_sum: u64,
    /// Body bytes received.
    pub bytes_received: u64,
    /// Body bytes sent, those of requests that failed later included.
    pub bytes_sent: u64,
    /// How the generator itself fared.
    pub generator: GeneratorTick,
    /// What each of several generators did, where they make the load together; empty where there is one.
    #[serde(skip)]
    pub parts: Vec<GeneratorPart>,
}

/// So many kinds of request are told apart; those after them are counted together, as one kind.
pub const KINDS_APART: u16 = 32;

/// One of several kinds of request in a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTick {
    /// Its place in the scenario, from 0; [`KINDS_APART`] stands for all kinds from there on.
    pub kind: u16,
    /// Sum of the response times of those that completed, nanoseconds (exact, not from the histogram).
    pub response_time_ns_sum: u64,
    /// Response times of those that completed.
    pub response_times: Counts,
    /// How long those waited that timed out.
    pub timed_out: Counts,
}

impl KindTick {
    /// The place of its counts among those of all kinds. Counts of others may name any kind.
    pub(crate) fn place(&self) -> usize {
        usize::from(self.kind.min(KINDS_APART))
    }

    /// Requests of this kind that completed.
    pub fn completed(&self) -> u64 {
        self.response_times.total()
    }
}

/// One of several generators in a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorPart {
    /// Its name, which no other has.
    pub name: Arc<str>,
    /// Users that it has.
    pub users: u32,
    /// Requests that completed there.
    pub completed: u64,
    /// How it fared.
    pub generator: GeneratorTick,
}

/// The sum of a count over ticks.
pub(crate) fn sum(ticks: &[Tick], count: fn(&Tick) -> u64) -> u64 {
    ticks.iter().map(count).fold(0, u64::saturating_add)
}

/// Response times as sparse histogram counts, three significant digits, 1 us to 1 h.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// (value in microseconds, how often), ascending by value.
    pub values_us: Vec<(u64, u64)>,
    /// Response times above one hour: counted here, not dropped.
    pub beyond: u64,
}

impl Counts {
    /// How many there are.
    pub fn total(&self) -> u64 {
        self.values_us.iter().map(|(_, count)| *count).fold(self.beyond, u64::saturating_add)
    }
}

/// The generator's account of itself over one slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorTick {
    /// Time its threads spent outside the wait for events, summed over threads, microseconds.
    pub busy_us: u64,
    /// How many threads it ran.
    pub threads: u32,
    /// 99th percentile of the lag between an event being ready to handle and its handling, microseconds.
    pub lag_us_p99: u64,
    /// The largest such lag, microseconds.
    pub lag_us_max: u64,
    /// Users that were thinking (not waiting for a response), integrated over the slice: user-microseconds.
    pub thinking_user_us: u64,
    /// Requests under way at an instant of the slice, over all threads, if all of them counted.
    pub in_flight: Option<u64>,
    /// Open loop only: requests whose intended start passed with no connection free to send them.
    pub late_starts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_failed_is_not_yet_many() {
        assert!(!many_failed(failed_share(95, 5)));
        assert!(many_failed(failed_share(94, 6)));
        assert_eq!(failed_share(0, 0), 0.0);
    }
}
