//! What to run, as values that combine freely: pacing, connection policy, stop.

use std::time::Duration;

use crate::scenario::Scenario;

/// All a [`crate::Generator`] needs to know. Independent of when to stop: see [`Stop`].
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the users do.
    pub scenario: Scenario,
    /// When a user sends.
    pub pacing: Pacing,
    /// Whether a connection serves more than one request.
    pub connections: Connections,
    /// A request that is not complete after this long counts as timed out and its connection is closed.
    pub timeout: Duration,
    /// Threads that carry the users, each with its own event loop.
    pub threads: usize,
    /// Processors to pin the threads to, thread t to `cpus[t % len]`; `None` leaves them to the kernel.
    pub cpus: Option<Vec<usize>>,
    /// Accept any certificate of an https server. Anyone on the way could then read and alter the traffic.
    pub insecure: bool,
    /// All that is random follows from it: the same seed draws the same values for the same users.
    pub seed: u64,
}

impl Plan {
    /// Closed loop, no think time, connections kept, 30 s time-out, one thread, seed 1.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        Plan {
            scenario,
            pacing: Pacing::Closed { think: Think::None },
            connections: Connections::Kept,
            timeout: Duration::from_secs(30),
            threads: 1,
            cpus: None,
            insecure: false,
            seed: 1,
        }
    }
}

/// When a user sends its next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// A fixed number of users; each sends once its last request is over and it has thought.
    /// Response times count from the send: what a user of this closed system sees, never corrected.
    Closed {
        /// Pause between a response and the next request.
        think: Think,
    },
    /// Requests start at a total rate whatever the server does. The number of users is the most
    /// connections that may be open. Response times count from the intended start.
    Open {
        /// Requests per second over all threads.
        rate_per_s: f64,
        /// How the intended starts are spaced.
        arrivals: Arrivals,
    },
}

/// A user's pause between a response and its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// None: the next request goes out at once.
    None,
    /// Always the same.
    Constant(Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}

/// How the intended starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Exponential gaps: a Poisson process, as from many independent users.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// Whether a connection serves more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// One per user, kept open for as long as the server does.
    Kept,
    /// A new one for each request, which says `Connection: close`.
    PerRequest,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After so long.
    Time(Duration),
    /// When every user has made so many requests, failed ones included: equal work.
    PerUser(u64),
    /// When so many requests have been made in all, failed ones included.
    Total(u64),
}
