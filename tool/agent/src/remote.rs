//! The near end of a generator elsewhere: has it make load, and takes what it counts.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analysis::run::{AgentTrouble, GeneratorLoss};
use analysis::ticks::Tick;
use load::fleet::Member;
use load::{Plan, RequestTotal};
use observe::monotonic_us;

use crate::endpoint::Endpoint;
use crate::kept::Kept;
use crate::link::{ANSWER_PATIENCE, Link};
use crate::open::Ended;
use crate::patience::Patience;
use crate::protocol::{self, About, Begin, Command, FRAME_BYTES_MAX, OwnUse, Prepare, Prepared, Started};
use crate::serve::about;
use crate::ssh::BySsh;
use crate::trouble::StartError;

/// An agent that makes load somewhere, until dropped.
#[derive(Debug)]
pub struct RemoteGenerator {
    link: Link,
}

/// What a generator counted since it was asked last.
#[derive(Debug, Default)]
pub struct Progress {
    /// Slices in the order of time, each with the number of what it belongs to; their times are of its own clock.
    pub ticks: VecDeque<(u64, Tick)>,
    /// The number of what began last, and when, microseconds of our monotonic clock.
    pub begun: Option<(u64, u64)>,
    /// The number of what finished last by itself, and when.
    pub finished: Option<(u64, u64)>,
}

/// The load cannot be sent: its requests are too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the load takes {bytes} bytes, and {FRAME_BYTES_MAX} at most are sent to a generator: make bodies with --body-size, or \
     of `size` in a scenario"
)]
pub struct TooLarge {
    bytes: usize,
}

impl RemoteGenerator {
    /// Starts an agent and aligns its clock with ours. `by_ssh` says how it runs on a host that is reached so.
    ///
    /// # Errors
    /// If there is no agent at the end of the stream, or not of this version, or if somebody asks to stop meanwhile.
    pub fn start(endpoint: &Endpoint, by_ssh: BySsh, stop: &AtomicBool) -> Result<Self, StartError> {
        Link::start(endpoint, by_ssh, stop).map(|link| Self { link })
    }

    /// Where it runs.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.link.about
    }

    /// Has it make ready to make a load, with so many threads or one for each processor.
    ///
    /// # Errors
    /// If the load is too large to be sent.
    pub fn prepare(&self, plan: &Plan, threads: Option<u32>) -> Result<(), TooLarge> {
        // Beside this process it is watched from here.
        let watch = !self.about().is_beside(&about());
        let command = Command::Prepare(Box::new(Prepare { plan: plan.clone(), threads, watch }));
        protocol::command(&command).map_err(|bytes| TooLarge { bytes })?;
        self.link.stream.ask(command);
        Ok(())
    }

    /// Waits until it is ready, or until somebody asks to stop.
    ///
    /// # Errors
    /// If it is lost.
    pub fn prepared(&self, stop: &AtomicBool) -> Result<Prepared, GeneratorLoss> {
        self.answer(&Patience::begin(ANSWER_PATIENCE, stop), |kept| kept.arrived.prepared)
    }

    /// Has it send one request to each server and start its threads, as one of several.
    pub fn start_load(&self, member: Member) {
        self.link.stream.ask(Command::Start(member));
    }

    /// Waits for the answers of the servers, this long beyond what any agent needs, or until somebody asks to stop.
    ///
    /// # Errors
    /// If it is lost, or cannot make the load.
    pub fn started(&self, longest: Duration, stop: &AtomicBool) -> Result<Started, GeneratorLoss> {
        let patience = Patience::begin(ANSWER_PATIENCE.saturating_add(longest), stop);
        self.answer(&patience, |kept| kept.arrived.started.clone())
    }

    /// Has something begin at a time of our monotonic clock.
    pub fn begin(&self, begin: Begin) {
        let at_us = self.link.stream.shared.lock().alignment.far_us(begin.at_us).unwrap_or(0);
        self.link.stream.ask(Command::Begin(Begin { at_us, ..begin }));
    }

    /// Takes what came since the last call, and waits for nothing.
    ///
    /// # Errors
    /// If it is lost.
    pub fn take(&self) -> Result<Progress, GeneratorLoss> {
        let mut kept = self.link.stream.shared.lock();
        let near = |kept: &Kept, of: Option<(u64, u64)>| {
            of.and_then(|(number, far_us)| Some((number, kept.alignment.near_us(far_us)?)))
        };
        let ticks = kept.arrived.take_ticks();
        let (begun, finished) = (near(&kept, kept.arrived.begun), near(&kept, kept.arrived.finished));
        drop(kept);
        match self.loss() {
            Some(loss) => Err(loss),
            None => Ok(Progress { ticks, begun, finished }),
        }
    }

    /// A time of its monotonic clock by ours, microseconds.
    #[must_use]
    pub fn near_us(&self, far_us: u64) -> u64 {
        self.link.stream.shared.lock().alignment.near_us(far_us).unwrap_or(0)
    }

    /// By how much its monotonic clock is ahead of ours, and by how much that may be wrong now, microseconds.
    #[must_use]
    pub fn clock(&self) -> (i64, f64) {
        let kept = self.link.stream.shared.lock();
        (kept.alignment.ahead_us().unwrap_or(0), kept.alignment.error_us(monotonic_us()).unwrap_or(0.0))
    }

    /// How full what its host gives it was at worst so far, as far as it tells.
    #[must_use]
    pub fn own_use(&self) -> OwnUse {
        self.link.stream.shared.lock().arrived.own_use.clone()
    }

    /// Has it end the load. [`RemoteGenerator::totals`] waits for what it counted.
    pub fn finish(&self) {
        self.link.stream.ask(Command::Finish);
    }

    /// Waits for its requests by kind, once it was told to finish.
    ///
    /// # Errors
    /// If it is lost.
    pub fn totals(&self) -> Result<Vec<RequestTotal>, GeneratorLoss> {
        // What was counted is wanted of a load that was stopped too.
        let go_on = AtomicBool::new(false);
        let patience = Patience::begin(ANSWER_PATIENCE, &go_on);
        self.answer(&patience, |kept| kept.arrived.totals.clone())
    }

    fn answer<T>(
        &self,
        patience: &Patience<'_>,
        of: impl Fn(&Kept) -> Option<T>,
    ) -> Result<T, GeneratorLoss> {
        let shared = &self.link.stream.shared;
        shared.wait_unless_stopped(patience, |kept| of(kept).is_some() || kept.arrived.failed.is_some());
        let answer = of(&shared.lock());
        let silent = || GeneratorLoss::Silent { silent_s: patience.most().as_secs_f64() };
        answer.ok_or_else(|| self.loss().unwrap_or_else(silent))
    }

    /// How it was lost, if it was.
    fn loss(&self) -> Option<GeneratorLoss> {
        let stream = &self.link.stream;
        let (failed, ended) = {
            let kept = stream.shared.lock();
            (kept.arrived.failed.clone(), kept.ended.clone())
        };
        if let Some(reason) = failed {
            return Some(GeneratorLoss::Failed { reason });
        }
        Some(match ended? {
            AgentTrouble::Malformed => GeneratorLoss::Malformed,
            AgentTrouble::Flooded => GeneratorLoss::Flooded,
            _ => match stream.how_it_ended() {
                Ended::Exited { code, stderr } => GeneratorLoss::Ended { code, stderr },
                Ended::Disconnected { reason } => GeneratorLoss::Disconnected { reason },
            },
        })
    }
}
