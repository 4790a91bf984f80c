//! Evidence about users that wait while nothing is busy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Identity, Processes};

/// Evidence about users that wait while nothing is busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WaitingEvidence {
    /// The host swaps.
    MemoryShort {
        /// Share of the time that some task waited for memory.
        pressure: f64,
        /// Pages per second that came back from swap.
        swapped_in_per_s: f64,
        /// N*.
        users: u32,
    },
    /// One request is served at a time.
    OneServed,
    /// One request is served at a time by what users wait for, and others are under way beside it.
    OneServedBeside {
        /// How many in all.
        at_a_time: f64,
    },
    /// A fixed number of requests is served at a time.
    SeveralServed {
        /// How many.
        at_a_time: f64,
    },
    /// How that number was found: by Little's law.
    ServedByLittle {
        /// The highest throughput, requests per second.
        throughput_per_s: f64,
        /// Response time of a request that waits for no other, microseconds.
        alone_us: f64,
        /// Requests served at a time.
        at_a_time: f64,
    },
    /// Of the requests under way at a time, those whose responses were held back until the client acknowledged a first part.
    HeldBack {
        /// How many, on average.
        held_back: f64,
        /// Requests that are served at a time.
        at_a_time: f64,
    },
    /// An experiment: a few users who came at random moments, against one. Positive odds are those of one at a time.
    Contention {
        /// What was measured.
        #[serde(flatten)]
        compared: TimesCompared,
        /// Workers of the pool that the verdict names, where those are fewer than the users: they wait for each other there
        /// too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workers: Option<u32>,
    },
    /// An experiment: one user who paused, against one who did not. Positive odds are those of a limit on the rate.
    Pausing(TimesCompared),
    /// The number served at a time, as a hint.
    NumberServed {
        /// How many.
        at_a_time: f64,
    },
    /// One user alone waited for a disk most of the time, though no watched disk is full.
    AloneAtTheDisk {
        /// The processes that waited.
        of: Processes,
        /// Share of the samples that found them waiting.
        waiting: f64,
    },
    /// The busiest resource had room.
    BusiestHadRoom {
        /// The resource.
        resource: Identity,
        /// Busy share, 0 to 1.
        busy: f64,
    },
    /// Others kept the processors busy, and nobody here waited for one.
    HostBusyForOthers,
    /// There were stretches of time in which nobody was answered.
    NothingAnswered {
        /// Share of the time, 0 to 1.
        share: f64,
        /// The longest stretch, microseconds.
        longest_us: f64,
        /// N*.
        users: u32,
    },
    /// The server told clients to send less, or to come back later.
    RequestsRejected {
        /// How many requests.
        requests: u64,
        /// How many of them with status 429.
        too_many: u64,
        /// The highest throughput of the others, requests per second.
        throughput_per_s: f64,
        /// N*.
        users: u32,
    },
    /// Requests in service, on average: throughput times response time.
    InService {
        /// How many.
        requests: f64,
    },
    /// Throughput fell as more users waited.
    FellWithUsers {
        /// Users at the highest throughput.
        from_users: u32,
        /// Completed requests per second there.
        from_per_s: f64,
        /// Users at the lowest throughput beyond.
        to_users: u32,
        /// Completed requests per second there.
        to_per_s: f64,
    },
    /// More threads of one process waited at one futex.
    ThreadsAtOneFutex {
        /// N*.
        from_users: u32,
        /// Threads that waited there, on average.
        from_threads: f64,
        /// 95 % interval of that, [lo, hi]; absent where there were too few counts, and in older files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_ci: Option<[f64; 2]>,
        /// More users.
        to_users: u32,
        /// Threads that waited there.
        to_threads: f64,
        /// 95 % interval of that, [lo, hi]; absent where there were too few counts, and in older files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_ci: Option<[f64; 2]>,
        /// Threads that waited with one user; absent where N* is one user, or that was not counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alone_threads: Option<f64>,
    },
    /// More users made more threads of the server wait for a lock or a condition.
    MoreThreadsWait {
        /// Users at N*.
        from_users: u32,
        /// Threads that waited there, on average.
        from_threads: f64,
        /// Most users that were tried.
        to_users: u32,
        /// Threads that waited there, on average.
        to_threads: f64,
    },
    /// More users made more threads of the server sleep until a time.
    MoreThreadsSleep {
        /// N*.
        from_users: u32,
        /// Threads that slept, on average.
        from_threads: f64,
        /// 95 % interval of that, [lo, hi]; absent where there were too few counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_ci: Option<[f64; 2]>,
        /// More users.
        to_users: u32,
        /// Threads that slept with them.
        to_threads: f64,
        /// 95 % interval of that, [lo, hi]; absent where there were too few counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_ci: Option<[f64; 2]>,
    },
}

/// An experiment that compared response times (see [`crate::tell_apart`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesCompared {
    /// How many users, compared with one.
    pub users: u32,
    /// Their mean pause between two requests, microseconds.
    pub think_us: f64,
    /// Mean response time of the one user, microseconds.
    pub alone_us: f64,
    /// By how much the other is longer, microseconds; below zero if it is shorter.
    pub longer_us: f64,
    /// 95 % interval of that, microseconds.
    pub longer_ci_us: [f64; 2],
    /// By how much it would be longer if what the experiment asks were so, microseconds: least and most.
    pub expected_us: [f64; 2],
    /// The natural logarithm of the odds that it is so, against not.
    pub log_odds: f64,
}

/// Odds of 9 to 1.
const TELLING: f64 = 2.2;

impl TimesCompared {
    /// Whether it is so, if that was told: with odds of 9 to 1 or more.
    pub fn told(&self) -> Option<bool> {
        (self.log_odds.abs() >= TELLING).then_some(self.log_odds > 0.0)
    }
}

/// With fewer than this many requests served at a time it is one.
const ONE: f64 = 1.5;

impl WaitingEvidence {
    /// Whether requests were served one at a time, as far as it was seen how many were.
    pub fn is_one_at_a_time(&self) -> bool {
        matches!(self, Self::NumberServed { at_a_time } if *at_a_time < ONE)
    }
}
