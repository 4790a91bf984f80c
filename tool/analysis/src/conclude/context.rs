//! What a conclusion needs to know beside the measurements.

use crate::counters::ServerAddress;
use crate::resources::{Replacement, Usage};
use crate::run::{
    AgentTrouble, FewerUsers, GeneratorTrouble, HostName, LoadShape, ServerUnwatched, SocketsUnread,
};
use crate::verdict::WatchedDatabase;
use crate::{confirmation, tell_apart};

/// Everything that a conclusion needs besides the measurements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// How the load was made.
    pub load: LoadShape,
    /// One load, or a sweep.
    pub kind: RunKind,
    /// The reason why the server's processes could not be watched, if there is one. N* stands then, but its cause stays
    /// unknown (unless it is the generator, or a link of this host).
    pub unwatched: Option<ServerUnwatched>,
    /// What each observer may not see of the host that it runs on; nothing of those that see everything.
    pub out_of_sight: Vec<OutOfSight>,
    /// The servers, and tiers behind them, that took the place of others that ended meanwhile: at most one server on each host, and
    /// one tier of each name.
    pub replaced: Vec<Replacement>,
    /// What agents on other hosts did not tell, each with the name of its host.
    pub agents: Vec<(String, AgentTrouble)>,
    /// What went wrong with one of several generators, each with its name.
    pub generators: Vec<(String, GeneratorTrouble)>,
    /// The use of each resource before the load began; nothing where it was not watched then.
    pub rest: Usage,
    /// The database that was asked which sessions wait for locks.
    pub database: Option<WatchedDatabase>,
    /// Whether what is sent was meant to come from a disk.
    pub cold: bool,
    /// Whether the time was up before all users that were asked for were tried.
    pub out_of_time: bool,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// Whether this nstar was built without optimisation.
    pub debug_build: bool,
    /// The limit on open files, where it allowed fewer users than were asked for.
    pub fewer_users: Option<FewerUsers>,
    /// The status of a redirect that answered the first request, where the scenario leaves open which statuses are success.
    pub redirected: Option<u16>,
    /// Requests per second that the generator's threads could make of the cheapest kind, if that was tested.
    pub generator_ceiling_per_s: Option<f64>,
    /// What was measured with each tier slowed, if the verdict is to be tested so.
    pub slowed: Option<confirmation::Trial>,
    /// What an experiment showed that was to tell the verdict from another.
    pub told_apart: Option<tell_apart::Trial>,
}

/// What an observer may not see of the host that it runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutOfSight {
    /// The host.
    pub on: HostName,
    /// The network namespaces of the server and of the tiers behind it of which the kernel does not tell all.
    pub sockets: Vec<SocketsUnread>,
    /// The addresses of tiers behind the server that run there, and whose processes may not be looked into.
    pub tiers: Vec<ServerAddress>,
}

/// The kind of run asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunKind {
    /// One load: whether throughput still grows with more users is not asked.
    #[default]
    Load,
    /// A sweep over users.
    Sweep {
        /// The most users it was allowed to try.
        users_max: u32,
    },
}

impl Context {
    /// The most users that were asked for, where there was no time to try as many.
    pub(super) fn asked_beyond_the_time(&self) -> Option<u32> {
        match self.kind {
            RunKind::Sweep { users_max } if self.out_of_time => Some(users_max),
            RunKind::Sweep { .. } | RunKind::Load => None,
        }
    }
}
