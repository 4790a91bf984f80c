//! What is measured, and what else a conclusion needs to know.

use crate::counters::{Counters, DatabaseLook};
use crate::estimate::Estimate;
use crate::run::LoadShape;
use crate::verdict::WatchedDatabase;

/// One step: how many users, what the generator measured, what the operating system counted meanwhile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Users of the closed loop, or the step's rank in an open loop.
    pub users: u32,
    /// What the ticks showed.
    pub estimate: Estimate,
    /// Looks within the step and around it, in order of time; may be empty.
    pub counters: Vec<Counters>,
    /// What the database told of itself meanwhile, where one was watched, in order of time.
    pub database: Vec<DatabaseLook>,
}

impl Observed {
    /// Share of the users that neither waited for a response nor thought: not yet connected, or backing off after an
    /// error. Thinking users less those that the think time accounts for, X Z (Little's law), 0 to 1.
    pub(crate) fn idle_share(&self, think_us: f64) -> f64 {
        let told = self.estimate.throughput_per_s * think_us / 1e6;
        let idle = (self.estimate.mean_thinking_users - told) / f64::from(self.users.max(1));
        if idle.is_finite() { idle.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// What a conclusion needs to know beside the measurements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// How the load was made.
    pub load: LoadShape,
    /// What was asked for.
    pub experiment: Experiment,
    /// Whether the server's processes could be watched.
    pub observation: Observation,
    /// The database that was asked which sessions wait for locks.
    pub database: Option<WatchedDatabase>,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// Whether this nstar was built without optimisation.
    pub debug_build: bool,
    /// Limits of this host that were in the way, one sentence each.
    pub host_limits: Vec<String>,
    /// Requests per second that the generator's threads could make of the cheapest kind, if that was tested.
    pub generator_ceiling_per_s: Option<f64>,
}

impl Context {
    /// Whether a fixed number of users waits for responses.
    pub fn closed(&self) -> bool {
        self.load.rate_per_s.is_none()
    }
}

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Experiment {
    /// One load: whether throughput still grows with more users is not asked.
    #[default]
    Load,
    /// A sweep over users.
    Sweep {
        /// The most users it was allowed to try.
        users_max: u32,
    },
}

/// Whether the server's processes could be watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Observation {
    /// They are on this host, and what could be read of them is in the counters.
    #[default]
    Watched,
    /// They could not be: N* stands, but its cause stays unknown (unless it is the generator, or a link
    /// of this host).
    NotPossible {
        /// Such as `the target is on another host`.
        why: String,
    },
}
