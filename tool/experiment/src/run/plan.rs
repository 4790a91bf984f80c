//! How an experiment is to be run here, and why it could not be.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use analysis::{
    comparison::{LeftOut, LeftOutCause},
    search::UsersRange,
};
use load::{LoadError, document::DocumentError, limits::LimitError};
use sweep::{
    cores::Split,
    database::PasswordFileError,
    elsewhere::Observe,
    fleet::{Generators, Lost},
    profiling::ProgramTables,
    sweep::SweepError,
};

use crate::{
    definition::Experiment,
    process::{Trouble, running::Guards},
};

/// How an experiment is to be run here.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// This program.
    pub program: PathBuf,
    /// Its arguments that make it a guard.
    pub guard: Vec<String>,
    /// What to run.
    pub experiment: Experiment,
    /// Numbers of users, in place of the experiment's own.
    pub users: Option<UsersRange>,
    /// Longest time for one number of users.
    pub step_max: Option<Duration>,
    /// Who gets which processors; `None` shares them.
    pub split: Option<Split>,
    /// Where load is made, in place of where the experiment says.
    pub generators: Generators,
    /// Where to observe besides this host, in place of where the experiment says.
    pub observe: Observe,
    /// What makes the load and observes besides, if it has to be claimed for each trial.
    pub fleet: Option<TrialFleet>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Reads the tables of programs, if each variant is to be profiled once on each workload.
    pub profile: Option<ProgramTables>,
}

impl RunPlan {
    /// Whether load is made elsewhere than by this process.
    pub(super) fn is_driven_elsewhere(&self) -> bool {
        self.fleet.is_some()
            || !self.generators.endpoints.is_empty()
            || !self.experiment.generators.is_empty()
    }

    pub(super) fn guards(&self) -> Guards {
        Guards { program: self.program.clone(), arguments: self.guard.clone() }
    }
}

/// A fleet whose members are claimed for each trial anew: each serves one at a time, and is free again after it.
#[derive(Clone)]
pub struct TrialFleet {
    name: String,
    claim: Arc<Claim>,
}

/// Adds members of a fleet to what makes load and to what observes, or says why it cannot. Ends early where the user asks to
/// stop.
type Claim = dyn Fn(&mut Generators, &mut Observe, &AtomicBool) -> Result<(), String> + Send + Sync;

impl TrialFleet {
    /// A fleet of this name, which tells it from others where an experiment is gone on with. What claims its members adds them
    /// to what makes the load and to what observes, or says why it cannot; the flag says that the user asked to stop.
    #[must_use]
    pub fn new<F>(name: String, claim: F) -> Self
    where
        F: Fn(&mut Generators, &mut Observe, &AtomicBool) -> Result<(), String> + Send + Sync + 'static,
    {
        Self { name, claim: Arc::new(claim) }
    }

    pub(super) fn claim(
        &self,
        (generators, observe): (&mut Generators, &mut Observe),
        interrupt: &AtomicBool,
    ) -> Result<(), RunError> {
        (self.claim)(generators, observe, interrupt).map_err(RunError::Fleet)
    }
}

impl fmt::Debug for TrialFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrialFleet").field(&self.name).finish()
    }
}

/// Why an experiment could not be run.
#[derive(Debug)]
pub enum RunError {
    /// A program, a command, the load or the sweep failed, or the user asked to stop.
    Trouble(Trouble),
    /// What was measured could not be kept.
    Record(RecordError),
    /// The fleet that makes the load could not be had. No variant is to blame for that, so none is left out.
    Fleet(String),
    /// The fleet that makes the load was lost within a measurement, in each of its attempts. No variant is to blame for that
    /// either.
    Lost(Lost),
    /// All was left out, this first.
    Nothing(Box<LeftOut>),
}

impl RunError {
    /// The experiment's folder could not be made.
    pub(super) fn folder(error: io::Error) -> Self {
        LeftOutCause::NoFolder { error: error.to_string() }.into()
    }

    /// There are no ports for its programs.
    pub(super) fn ports(error: &io::Error) -> Self {
        let error =
            format!("no ports for the programs of the experiment: {error}; end what listens on so many");
        LeftOutCause::Failed { error }.into()
    }

    /// All networks for links are in use.
    pub(super) fn no_network() -> Self {
        let error = "no network of 198.18.0.0/15 is left for a link; end what uses so many".to_owned();
        LeftOutCause::Failed { error }.into()
    }

    /// The generator could not be kept off the processors of the programs.
    pub(super) fn processors(error: &io::Error) -> Self {
        let error = format!(
            "cannot keep the generator on processors of its own: {error}; --share-cores lets all use all"
        );
        LeftOutCause::Failed { error }.into()
    }

    /// The password of the database to watch could not be read.
    pub(super) fn password(error: &PasswordFileError) -> Self {
        LeftOutCause::Failed { error: error.to_string() }.into()
    }

    /// Its files could not be made.
    pub(super) fn data(error: io::Error) -> Self {
        LeftOutCause::NoData { error: error.to_string() }.into()
    }
}

impl From<Trouble> for RunError {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<LeftOutCause> for RunError {
    fn from(cause: LeftOutCause) -> Self {
        Self::Trouble(Trouble::Cause(cause))
    }
}

impl From<RecordError> for RunError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// Errors that say of themselves what is wrong.
macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for RunError {
            fn from(error: $error) -> Self {
                LeftOutCause::Failed { error: error.to_string() }.into()
            }
        }
    )*};
}

failed!(DocumentError, SweepError, LoadError, LimitError);

/// What was measured could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);
