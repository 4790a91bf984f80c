//! The near end: starts an agent somewhere, asks it, and keeps what it says.

use std::net::SocketAddr;
use std::time::Duration;

use analysis::counters::{Counters, ServerAddress, ThreadLook};
use analysis::run::{AgentTrouble, ServerUnwatched, SocketsUnread};
use observe::monotonic_us;

use crate::endpoint::Endpoint;
use crate::kept::Kept;
use crate::link::{ANSWER_PATIENCE, Link};
use crate::open::Ended;
use crate::protocol::{About, Command, NotFound};
use crate::ssh::BySsh;
use crate::trouble::StartError;

/// How long to wait for a sample at the end of a measurement.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(1);

/// What an address turned out to be where an agent runs.
pub type Sighting = Result<SocketAddr, NotFound>;

/// An agent that observes somewhere, until dropped.
#[derive(Debug)]
pub struct Observer {
    link: Link,
}

impl Observer {
    /// Starts an agent and aligns its clock with ours. `by_ssh` says how it runs on a host that is reached so.
    ///
    /// # Errors
    /// If there is no agent at the end of the stream, or not of this version.
    pub fn start(endpoint: &Endpoint, by_ssh: BySsh) -> Result<Self, StartError> {
        Link::start(endpoint, by_ssh).map(|link| Self { link })
    }

    /// Has the processes behind these addresses found and sampled from now on: those that the load calls, and those that
    /// tiers on other hosts call. Returns what was found, one for each address in this order, or nothing where the agent does
    /// not answer.
    pub fn watch(&self, addresses: &[SocketAddr], behind: &[SocketAddr]) -> Vec<Sighting> {
        let asked_before = self.link.stream.shared.lock().watching.0;
        self.link.stream.ask(Command::Watch { addresses: addresses.to_vec(), behind: behind.to_vec() });
        self.link.stream.shared.wait_until(ANSWER_PATIENCE, |kept| kept.watching.0 > asked_before);
        let mut found = self.link.stream.shared.lock().watching.1.clone();
        found.truncate(addresses.len() + behind.len());
        found
    }

    /// Where it runs.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.link.about
    }

    /// Has a sample taken now, and does not wait for it.
    pub fn sample(&self) {
        self.link.stream.ask(Command::Sample);
    }

    /// Starts or stops closer looks at threads.
    pub fn look_closely(&self, closely: bool) {
        self.link.stream.ask(Command::LookClosely(closely));
    }

    /// The samples that cover a span of our monotonic clock, microseconds. Where the last of them is still to come it is
    /// waited for, unless the agent has stalled or ended.
    #[must_use]
    pub fn between(&self, (start_us, end_us): (u64, u64)) -> Vec<Counters> {
        let covers = |kept: &Kept| kept.covers(end_us) || kept.has_stalled(monotonic_us());
        let shared = &self.link.stream.shared;
        if !covers(&shared.lock()) {
            self.sample();
            shared.wait_until(SAMPLE_PATIENCE, covers);
        }
        shared.lock().between(start_us, end_us)
    }

    /// The looks at threads within a span of our monotonic clock, microseconds.
    #[must_use]
    pub fn looks_between(&self, (start_us, end_us): (u64, u64)) -> Vec<ThreadLook> {
        self.link.stream.shared.lock().looks_between(start_us, end_us)
    }

    /// Reads all samples so far, in order of time by our clock.
    pub fn read<T>(&self, reader: impl FnOnce(&[Counters]) -> T) -> T {
        reader(self.link.stream.shared.lock().samples())
    }

    /// What it may not see where it runs: namespaces of which the kernel does not tell all, and addresses of tiers.
    #[must_use]
    pub fn unseen(&self) -> (Vec<SocketsUnread>, Vec<ServerAddress>) {
        let unseen = self.link.stream.shared.lock().unseen.clone();
        unseen.into_parts()
    }

    /// What kept it from telling all.
    #[must_use]
    pub fn troubles(&self) -> Vec<AgentTrouble> {
        let troubles = self.link.stream.shared.lock().troubles(monotonic_us());
        let told = |trouble| match trouble {
            AgentTrouble::Ended { .. } => match self.link.stream.how_it_ended() {
                Ended::Exited { code, stderr } => AgentTrouble::Ended { code, stderr },
                Ended::Disconnected { reason } => AgentTrouble::Disconnected { reason },
            },
            other => other,
        };
        troubles.into_iter().map(told).collect()
    }
}

/// The reason why no server was found, of those for each address: the first, if none was found.
#[must_use]
pub fn not_found(sightings: &[Sighting]) -> Option<ServerUnwatched> {
    let found = sightings.iter().any(Result::is_ok);
    let first = sightings.iter().find_map(|sighting| sighting.clone().err());
    first.filter(|_| !found).map(ServerUnwatched::from)
}
