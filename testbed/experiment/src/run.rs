//! Runs an experiment: starts its systems, makes its data, measures every workload on every variant.

mod accounts;
mod stand;
mod trials;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use analysis::{comparison::LeftOut, run::Run, search::UsersRange};
use booking::BookingError;
use load::{LoadError, limits::LimitError};
use sweep::{
    cores::Split,
    progress::{Event, Listener},
    sweep::SweepError,
};

use crate::{
    definition::Experiment,
    names,
    servers::{link, process::SystemError},
};
use stand::Stand;
use trials::{Trial, time_each, trials, variants};

/// How an experiment is to be run here.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The program that serves the systems: `PROGRAM serve ..`.
    pub program: PathBuf,
    /// What to run.
    pub experiment: Experiment,
    /// Numbers of users, in place of the experiment's own.
    pub users: Option<UsersRange>,
    /// Longest time for one number of users.
    pub step_max: Option<Duration>,
    /// Concurrency model of the systems, by name, if the experiment does not vary it.
    pub engine: String,
    /// All concurrency models, by name.
    pub engines: Vec<String>,
    /// Who gets which processors; `None` shares them.
    pub split: Option<Split>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// An experiment that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its files could not be made.
    #[error("cannot make the test files: {0}; set TMPDIR to a folder with room")]
    Data(#[from] io::Error),
    /// A system did not start.
    #[error(transparent)]
    System(#[from] SystemError),
    /// None of the experiment's systems can be driven.
    #[error("no system is running to drive")]
    NothingToDrive,
    /// Its accounts could not be made.
    #[error("cannot make the accounts: {made} of {wanted} were made")]
    Accounts {
        /// How many there are.
        made: u64,
        /// How many were wanted.
        wanted: u32,
    },
    /// The database could not be asked whether it holds what was promised.
    #[error("cannot prove what the database holds: {0}")]
    Proof(#[from] BookingError),
    /// The sweep failed.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Too many users for this process.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// No part of a study could be measured.
    #[error("nothing could be measured. {0}")]
    Nothing(String),
}

/// One sweep or load of an experiment.
#[derive(Debug)]
pub struct Part {
    /// Which work, by name; empty if there is only one.
    pub work: String,
    /// Which variant, by name; empty if nothing is varied.
    pub variant: String,
    /// Which round, from 0.
    pub round: u32,
    /// What was found.
    pub run: Run,
}

impl Part {
    /// The name of its run file without the extension: `100-kb-100-connections-epoll-2`.
    pub fn slug(&self) -> String {
        names::slug(&format!("{} {} {}", self.work, self.variant, self.round + 1))
    }
}

/// The results of an experiment.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was measured, in order.
    pub parts: Vec<Part>,
    /// What was not, and why.
    pub left_out: Vec<LeftOut>,
}

/// Runs an experiment. However it ends, its systems are stopped and its data removed.
///
/// # Errors
/// If nothing varies, the first failure. Otherwise only if nothing at all could be measured: what fails is left out.
pub fn run(plan: &RunPlan, interrupt: &AtomicBool, listener: &mut dyn Listener) -> Result<Outcome, RunError> {
    listener.on(&Event::Note(placement(plan.split.as_ref())));
    let experiment = &plan.experiment;
    let variants = variants(experiment, &plan.engine, &plan.engines);
    let trials = trials(experiment, &variants);
    let mut runner = Runner { plan, outcome: Outcome::default(), failed: BTreeMap::new() };
    let trials = runner.possible(trials, listener);
    let mut stand = Stand::new(plan)?;
    stand.time = experiment.time.map(|total| time_each(total, trials.len()));
    for trial in &trials {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        runner.measure(trial, &mut stand, interrupt, listener)?;
    }
    runner.finish()
}

/// An experiment under way.
struct Runner<'a> {
    plan: &'a RunPlan,
    outcome: Outcome,
    /// Why variants failed, by variant and workload; an empty workload stands for all.
    failed: BTreeMap<(String, String), String>,
}

impl Runner<'_> {
    /// The trials that this process may make. The others are reported and left out.
    fn possible<'a>(&mut self, trials: Vec<Trial<'a>>, listener: &mut dyn Listener) -> Vec<Trial<'a>> {
        let Err(reason) = link::check() else { return trials };
        let (linked, possible): (Vec<_>, Vec<_>) =
            trials.into_iter().partition(|trial| trial.work.link_mbit.is_some());
        let mut works: Vec<&str> = linked.iter().map(|trial| trial.work.name.as_str()).collect();
        works.dedup();
        for work in works {
            self.leave_out(work.to_owned(), reason.to_string(), listener);
        }
        possible
    }

    /// Makes one trial, unless its variant has failed before.
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        stand: &mut Stand<'_>,
        interrupt: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<(), RunError> {
        let (variant, work) = (trial.variant.name.clone(), trial.work.name.clone());
        let known = [(variant.clone(), String::new()), (variant.clone(), work.clone())];
        if known.iter().any(|key| self.failed.contains_key(key)) {
            return Ok(());
        }
        let name = trial.name(self.plan.experiment.rounds);
        if !name.is_empty() {
            listener.on(&Event::Note(name.clone()));
        }
        match stand.measure(trial, interrupt, listener) {
            Ok(driven) => {
                self.outcome.parts.push(Part { work, variant, round: trial.round, run: driven.run });
            }
            Err(error) if self.plan.experiment.axis.is_none() => return Err(error),
            // What was interrupted is not reported as left out.
            Err(_) if interrupt.load(Ordering::Relaxed) => {}
            Err(error) => {
                // A server that does not start now will not start for the next work either.
                let everywhere = matches!(
                    error,
                    RunError::System(SystemError::NotListening { .. } | SystemError::Database(_))
                );
                let (work, what) = if everywhere { (String::new(), variant.clone()) } else { (work, name) };
                self.failed.insert((variant, work), error.to_string());
                self.leave_out(what, error.to_string(), listener);
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String, why: String, listener: &mut dyn Listener) {
        listener.on(&Event::Note(format!("LEFT OUT: {what}: {why}")));
        self.outcome.left_out.push(LeftOut { what, why });
    }

    fn finish(self) -> Result<Outcome, RunError> {
        match self.outcome.left_out.as_slice() {
            [first, ..] if self.outcome.parts.is_empty() => {
                Err(RunError::Nothing(format!("{}: {}", first.what, first.why)))
            }
            _ => Ok(self.outcome),
        }
    }
}

fn placement(split: Option<&Split>) -> String {
    match split {
        Some(split) => format!(
            "generator on processors {:?}, systems on {:?}; --share-cores lets both use all",
            split.generator, split.systems
        ),
        None => "generator and systems share all processors: each takes time from the other".into(),
    }
}
