//! How an experiment is to be run here, and why it could not be.

use std::{io, path::PathBuf, time::Duration};

use analysis::search::UsersRange;
use load::{LoadError, document::DocumentError, limits::LimitError};
use sweep::{cores::Split, sweep::SweepError};

use crate::{
    definition::Experiment,
    process::{CommandError, StartError, running::Guards},
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
    /// Seed of every random choice.
    pub seed: u64,
}

impl RunPlan {
    pub(super) fn guards(&self) -> Guards {
        Guards { program: self.program.clone(), arguments: self.guard.clone() }
    }
}

/// An experiment that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its folder could not be made.
    #[error("cannot make a folder for the experiment: {0}; set TMPDIR to a folder that you can write to")]
    Folder(io::Error),
    /// Its files could not be made.
    #[error("cannot make the files of the experiment: {0}; set TMPDIR to a folder with room")]
    Data(io::Error),
    /// Its file says something that cannot be done.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A program did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A command did not do its work.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// What a command printed is not what is read there.
    #[error("`{program}` did not print the expected JSON: {why}")]
    Printed {
        /// The program.
        program: String,
        /// What is wrong.
        why: String,
    },
    /// A load that prepares did not succeed.
    #[error("preparing failed: {made} of {wanted} requests succeeded")]
    Prepared {
        /// How many succeeded.
        made: u64,
        /// How many were wanted.
        wanted: u64,
    },
    /// A program ended during the measurement.
    #[error("{name} ended during the measurement: {how}")]
    Died {
        /// Which.
        name: String,
        /// How.
        how: String,
    },
    /// The sweep failed.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Too many users for this process.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// What was measured could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Nothing could be measured.
    #[error("nothing could be measured. {0}")]
    Nothing(String),
}

/// What was measured could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);
