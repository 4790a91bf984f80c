//! The near end: starts an agent somewhere, asks it, and keeps what it says.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analysis::counters::{Counters, ServerAddress, ThreadLook};
use analysis::doctor::Facts;
use analysis::profile::{HostProfile, Tier};
use analysis::run::{AgentTrouble, ProfileTrouble, ServerUnwatched, SocketsUnread};
use observe::monotonic_us;

use crate::endpoint::Endpoint;
use crate::kept::Kept;
use crate::link::{ANSWER_PATIENCE, Link};
use crate::open::Ended;
use crate::patience::Patience;
use crate::protocol::{About, Command, Listens, NotFound, ProfileOrder, TIERS_MAX};
use crate::ssh::BySsh;
use crate::trouble::StartError;

/// How long to wait for a sample at the end of a measurement.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(1);

/// How long an agent has to tell a profile once it was told to: reading the names of functions may take seconds.
pub const PROFILE_PATIENCE: Duration = Duration::from_secs(20);

/// What an address turned out to be where an agent runs.
pub type Sighting = Result<Listens, NotFound>;

/// Facts that were asked for, by the number of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked(u64);

/// A profile that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileAsked {
    number: u64,
    tiers: Vec<Tier>,
}

/// An agent that observes somewhere, until dropped.
#[derive(Debug)]
pub struct Observer {
    link: Link,
}

impl Observer {
    /// Starts an agent and aligns its clock with ours. `by_ssh` says how it runs on a host that is reached so.
    ///
    /// # Errors
    /// If there is no agent at the end of the stream, or not of this version, or if somebody asks to stop meanwhile.
    pub fn start(endpoint: &Endpoint, by_ssh: BySsh, stop: &AtomicBool) -> Result<Self, StartError> {
        Link::start(endpoint, by_ssh, stop).map(|link| Self { link })
    }

    /// Has the processes behind these addresses found and sampled from now on: those that the load calls, and those that
    /// tiers on other hosts call. Returns what was found, one for each address in this order, or nothing where the agent does
    /// not answer.
    pub fn watch(&self, addresses: &[SocketAddr], behind: &[SocketAddr]) -> Vec<Sighting> {
        let shared = &self.link.stream.shared;
        let number = shared.lock().question();
        let (asked, asked_behind) = (addresses.to_vec(), behind.to_vec());
        self.link.stream.ask(Command::Watch { number, addresses: asked, behind: asked_behind });
        if !shared.wait_until(ANSWER_PATIENCE, |kept| kept.watching.0 == number) {
            // What it said before is of other addresses.
            return Vec::new();
        }
        let mut found = shared.lock().watching.1.clone();
        found.truncate(addresses.len() + behind.len());
        found
    }

    /// Has it tell by what it is judged whether a server there can be measured, and does not wait for that.
    #[must_use]
    pub fn ask_for_facts(&self) -> Asked {
        let number = self.link.stream.shared.lock().question();
        self.link.stream.ask(Command::Facts(number));
        Asked(number)
    }

    /// Waits for what was asked for; `None` where the agent does not answer. Their time is of its own clock.
    #[must_use]
    pub fn facts(&self, Asked(number): Asked) -> Option<Facts> {
        let shared = &self.link.stream.shared;
        let answered = shared.wait_until(ANSWER_PATIENCE, |kept| kept.facts.0 >= number);
        answered.then(|| shared.lock().facts.1.clone())
    }

    /// The same, and waits only as long as the patience lasts.
    #[must_use]
    pub fn facts_within(&self, Asked(number): Asked, patience: &Patience<'_>) -> Option<Facts> {
        let shared = &self.link.stream.shared;
        let answered = shared.wait_unless_stopped(patience, |kept| kept.facts.0 >= number);
        answered.then(|| shared.lock().facts.1.clone())
    }

    /// Has it sample tiers that it watches, for at most this long, and does not wait for that. What was asked for before is
    /// given up.
    #[must_use]
    pub fn profile(&self, mut tiers: Vec<Tier>, most: Duration) -> ProfileAsked {
        tiers.truncate(TIERS_MAX);
        let number = {
            let mut kept = self.link.stream.shared.lock();
            kept.profiles.0 += 1;
            kept.profiles.0
        };
        let pids = tiers.iter().map(|tier| tier.pids.clone()).collect();
        let most_ms = u32::try_from(most.as_millis()).unwrap_or(u32::MAX);
        self.link.stream.ask(Command::Profile(ProfileOrder { number, most_ms, tiers: pids }));
        ProfileAsked { number, tiers }
    }

    /// Has it tell what it sampled by now, and does not wait for that.
    pub fn end_profile(&self) {
        self.link.stream.ask(Command::EndProfile);
    }

    /// Waits for what was sampled as long as the patience lasts. What has come already is taken in any case.
    ///
    /// # Errors
    /// Why it is not known: the agent does not tell it, or tells what cannot be.
    pub fn profiled(
        &self,
        asked: &ProfileAsked,
        patience: &Patience<'_>,
    ) -> Result<HostProfile, ProfileTrouble> {
        let shared = &self.link.stream.shared;
        let is_told =
            |kept: &Kept| kept.profiles.1.as_ref().is_some_and(|profiled| profiled.number == asked.number);
        if shared.wait_unless_stopped(patience, is_told) {
            let told = shared.lock().profiles.1.take();
            return told.and_then(|told| told.into_host(&asked.tiers)).ok_or(ProfileTrouble::Malformed);
        }
        let has_ended = shared.lock().ended.is_some();
        let waited_s = u32::try_from(patience.waited().as_secs()).ok().filter(|_| !has_ended);
        Err(ProfileTrouble::NotAnswered { waited_s })
    }

    /// Where it runs.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.link.about
    }

    /// Has a sample taken now, for the border of a measurement, and does not wait for it.
    pub fn sample(&self) {
        self.ask_for_sample(true);
    }

    fn ask_for_sample(&self, at_border: bool) {
        self.link.stream.shared.lock().ask_for_sample(at_border, monotonic_us());
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
            self.ask_for_sample(false);
            shared.wait_until(SAMPLE_PATIENCE, covers);
        }
        shared.lock().between(start_us, end_us)
    }

    /// The looks at threads within a span of our monotonic clock, microseconds.
    #[must_use]
    pub fn looks_between(&self, (start_us, end_us): (u64, u64)) -> Vec<ThreadLook> {
        self.link.stream.shared.lock().looks_between(start_us, end_us)
    }

    /// Reads all samples so far that were kept, in order of time by our clock.
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
