//! What to run, as values that combine freely: pacing, connection policy, stop condition.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use analysis::run::Connections;

use crate::fleet::Member;
use crate::scenario::definition::Scenario;

/// Most threads of a generator.
pub const THREADS_MAX: u16 = 1_024;

/// Everything that a [`crate::Generator`] needs to know, except when to stop: see [`Stop`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
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
    /// Which of several generators this is that make the load together; by default it is alone.
    pub member: Member,
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
            member: Member::default(),
        }
    }
}

/// When a user sends its next request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Think {
    /// No pause.
    None,
    /// The same pause every time.
    Constant(Duration),
    /// Exponentially distributed pauses with this mean.
    Exponential(Duration),
}

/// How the intended starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Exponentially distributed gaps: a Poisson process, like the arrivals of many independent users.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// After this time.
    Time(Duration),
    /// When every user has made this many requests, failed ones included: equal work.
    PerUser(u64),
    /// When this many requests have been made in total, failed ones included.
    Total(u64),
}

impl Plan {
    /// Whether it is one that a command line or a file could have made: one that came over a stream may hold anything.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.scenario.is_sound() && self.member.is_sound()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::definition::Body;
    use crate::scenario::template::TemplatePart;
    use crate::scenario::value::ValueKind;

    /// A load that came over a stream is not believed to be one: what would divide by zero or draw from nothing is refused.
    #[test]
    fn what_no_file_could_hold_is_not_sound() {
        let text = r#"
            base = "http://h"
            [values]
            luck = { kind = "random", min = 1, max = 6 }
            word = { kind = "random-string", length = 4 }
            size = { kind = "choice", items = ["s"] }
            [[request]]
            path = "/${luck}${word}${size}"
            body = { size = 7 }
        "#;
        let sound = Plan::new(Scenario::from_toml(std::path::Path::new("x.toml"), text).unwrap());
        assert!(sound.is_sound());
        let broken: [fn(&mut Plan); 9] = [
            |plan| plan.scenario.requests.clear(),
            |plan| plan.scenario.requests[0].weight = 0,
            |plan| plan.scenario.requests[0].body = Body::Generated(serde_json::from_str("[]").unwrap()),
            |plan| plan.scenario.requests[0].path.pieces.push(TemplatePart::Taken(0)),
            |plan| plan.scenario.values[0].width = usize::MAX,
            |plan| plan.scenario.values[0].kind = ValueKind::Random { min: 2, max: 1 },
            |plan| plan.scenario.values[0].kind = ValueKind::RandomString { length: 9, alphabet: Vec::new() },
            |plan| plan.scenario.values[0].kind = ValueKind::Cycle { items: Vec::new(), step: 1 },
            |plan| plan.member = serde_json::from_str(r#"{"weights":[1],"index":1}"#).unwrap(),
        ];
        for (number, breaks) in broken.into_iter().enumerate() {
            let mut plan = sound.clone();
            breaks(&mut plan);
            assert!(!plan.is_sound(), "{number}");
        }
    }

    #[test]
    fn connections_have_one_name_everywhere() {
        for policy in Connections::ALL {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
            assert_eq!(Connections::named(policy.name()), Some(policy));
        }
        assert_eq!(Connections::named("keep"), None);
    }
}
