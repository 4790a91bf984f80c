//! What makes the load: the generator of this process, or a fleet of them elsewhere.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use analysis::run::{GeneratorHost, GeneratorTrouble};
use analysis::ticks::Tick;
use load::{Ceiling, LoadError, Plan, ProbeReport, RequestTotal, Stop, Think};

use crate::fleet::{Fleet, FleetError, Generators, Lost};
use crate::sweep::SweepError;

/// How long to test what the generator can do: enough to tell 80 % from 100 %.
const CEILING_TIME: Duration = Duration::from_millis(300);

/// Makes load; in a closed loop users keep their connections from one step to the next.
///
/// [`load::Generator`] is the real one, or several elsewhere; a simulated queueing network stands in for it in tests.
pub trait Driver {
    /// Changes the number of users from now on.
    ///
    /// # Errors
    /// If there cannot be so many.
    fn set_users(&mut self, users: u32) -> Result<(), DriveError>;

    /// Changes the think time from the next change of users on.
    fn set_think(&mut self, think: Think);

    /// Drives for this long, or until interrupted, and returns the slices counted meanwhile.
    ///
    /// # Errors
    /// If no load can be made any longer; [`DriveError::Again`] if it can. What was being measured is worth nothing then.
    fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError>;
}

/// Reasons why a load did not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// It cannot be made here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// One of several generators was lost. The others can begin again, with the same users.
    #[error(transparent)]
    Again(FleetError),
    /// It cannot be made elsewhere any longer. What was measured before stands.
    #[error(transparent)]
    Over(FleetError),
}

/// The generator of this process, or several elsewhere.
pub(crate) enum Source {
    Here(Box<load::Generator>),
    Fleet(Box<Fleet>),
}

/// How a source of load began.
pub(crate) struct Began {
    pub(crate) source: Source,
    /// The answer of each server to the first request.
    pub(crate) probes: Vec<ProbeReport>,
    /// What the generator here can make, requests per second, where that was asked for and could be tested.
    pub(crate) ceiling_per_s: Option<f64>,
    /// Most users that there may be: those asked for, or fewer where that will do.
    pub(crate) users_max: u32,
}

/// What to make a load with.
pub(crate) struct Making<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) generators: &'a Generators,
    /// Most users there will be.
    pub(crate) users_max: u32,
    /// Whether to test what the generator here can do.
    pub(crate) with_ceiling: bool,
}

/// What comes of a load once it has ended.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Totals of every kind of request, of the generators that told theirs.
    pub(crate) totals: Vec<RequestTotal>,
    /// Which of several generators was lost, if that ended the run or came at its very end.
    pub(crate) lost: Option<Lost>,
    /// Which of them was lost first, whenever that was: the totals lack what it had sent.
    pub(crate) uncounted: Option<Lost>,
}

/// What is known of several generators.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) hosts: Vec<GeneratorHost>,
    pub(crate) troubles: Vec<(String, GeneratorTrouble)>,
}

impl Told {
    /// Whether no load can be made any longer.
    pub(crate) fn is_over(&self) -> bool {
        self.troubles.iter().any(|(_, trouble)| trouble.ended_run())
    }
}

impl Source {
    /// Sends one request to each server, and starts what makes the load.
    pub(crate) fn start(making: &Making<'_>, interrupt: &AtomicBool) -> Result<Began, SweepError> {
        let Making { plan, generators, users_max, with_ceiling } = *making;
        if !generators.endpoints.is_empty() {
            let (fleet, probes, users_max) = Fleet::start(generators, (plan, users_max), interrupt)?;
            let source = Source::Fleet(Box::new(fleet));
            return Ok(Began { source, probes, ceiling_per_s: None, users_max });
        }
        let probes = load::probe(plan)?;
        // It is a test of this host alone; where it cannot be made, the load still can.
        let ceiling = || Ceiling::measure(plan, CEILING_TIME, interrupt).ok();
        let ceiling_per_s = with_ceiling.then(ceiling).flatten().map(|ceiling| ceiling.requests_per_s);
        let source = Source::Here(Box::new(load::Generator::start(plan)?));
        Ok(Began { source, probes, ceiling_per_s, users_max })
    }

    /// The addresses that the load goes to.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Source::Here(generator) => generator.addresses().to_vec(),
            Source::Fleet(fleet) => fleet.addresses().to_vec(),
        }
    }

    /// How long the generator of this process took to look up the server's name, if it has one.
    pub(crate) fn name_lookup(&self) -> Option<Duration> {
        match self {
            Source::Here(generator) => generator.name_lookup(),
            Source::Fleet(_) => None,
        }
    }

    /// Whether any of the load is made on this host.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Source::Here(_)) || !self.beside().is_empty()
    }

    /// Processes beside this one that make the load in its place.
    pub(crate) fn beside(&self) -> Vec<u32> {
        match self {
            Source::Here(_) => Vec::new(),
            Source::Fleet(fleet) => fleet.beside(),
        }
    }

    /// Runs until `stop`, or until interrupted.
    pub(crate) fn run(&mut self, stop: Stop, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
        match self {
            Source::Here(generator) => Ok(generator.run(stop, interrupt)?),
            Source::Fleet(fleet) => fleet.run(stop, interrupt),
        }
    }

    /// What is known by now of several generators; nothing where there is one.
    pub(crate) fn told(&self) -> Told {
        match self {
            Source::Here(_) => Told::default(),
            Source::Fleet(fleet) => fleet.told(),
        }
    }

    /// Ends the load. Returns what was sent, and which of several generators were lost.
    pub(crate) fn finish(self) -> Sent {
        match self {
            Source::Here(generator) => Sent { totals: generator.finish(), ..Sent::default() },
            Source::Fleet(fleet) => fleet.finish(),
        }
    }
}

impl Driver for Source {
    fn set_users(&mut self, users: u32) -> Result<(), DriveError> {
        match self {
            Source::Here(generator) => Ok(generator.set_users(users)?),
            Source::Fleet(fleet) => {
                fleet.set_users(users);
                Ok(())
            }
        }
    }

    fn set_think(&mut self, think: Think) {
        match self {
            Source::Here(generator) => generator.set_think(think),
            Source::Fleet(fleet) => fleet.set_think(think),
        }
    }

    fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
        match self {
            Source::Here(generator) => Ok(generator.collect(for_us, interrupt)?),
            Source::Fleet(fleet) => fleet.collect(for_us, interrupt),
        }
    }
}
