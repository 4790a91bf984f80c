//! What to run, as values that combine freely: pacing, connection policy, stop condition.

use std::time::Duration;

pub use analysis::run::Connections;

use crate::scenario::definition::Scenario;

/// Everything that a [`crate::Generator`] needs to know, except when to stop: see [`Stop`].
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the users do.
    pub scenario: Scenario,
    /// When users send.
    pub pacing: Pacing,
    /// Whether a connection carries more than one request.
    pub connections: Connections,
    /// A request that takes longer counts as timed out, and its connection is closed.
    pub timeout: Duration,
    /// Number of threads that run the users, each with its own event loop.
    pub threads: usize,
    /// Processors that the threads are pinned to, thread t to `cpus[t % len]`. `None` leaves the choice to the kernel.
    pub cpus: Option<Vec<usize>>,
    /// Whether to accept any certificate. Anyone on the network path could then read and alter the traffic.
    pub insecure: bool,
    /// The source of all randomness: the same seed draws the same values for the same users.
    pub seed: u64,
}

impl Plan {
    /// A closed loop without think time, with connections kept, a time-out of 30 s, one thread, and seed 1.
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
    /// A closed loop: a fixed number of users, each of which sends again after its last request has ended and its
    /// think time has passed. Response times count from the send, as a user of this system sees them, and are never
    /// corrected.
    Closed {
        /// Pause between a response and the next request.
        think: Think,
    },
    /// An open loop: requests start at a total rate, whatever the server does. The number of users limits the number
    /// of open connections. Response times count from the intended start.
    Open {
        /// Requests per second, all threads together.
        rate_per_s: f64,
        /// How the intended starts are spaced.
        arrivals: Arrivals,
    },
}

/// A user's pause between a response and its next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Think {
    /// No pause.
    None,
    /// The same pause every time.
    Constant(Duration),
    /// Exponentially distributed pauses with this mean.
    Exponential(Duration),
}

/// How the intended starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Exponentially distributed gaps: a Poisson process, like the arrivals of many independent users.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After this time.
    Time(Duration),
    /// When every user has made this many requests, failed ones included: equal work.
    PerUser(u64),
    /// When this many requests have been made in total, failed ones included.
    Total(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_one_name_everywhere() {
        for policy in Connections::ALL {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
            assert_eq!(Connections::named(policy.name()), Some(policy));
        }
        assert_eq!(Connections::named("keep"), None);
    }
}
