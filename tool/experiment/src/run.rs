//! Runs an experiment: starts its programs, makes its data, measures every workload on every variant.

mod drive;
mod plan;
mod ports;
mod preparation;
mod stage;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    names,
    process::link,
    progress::{Event, Listener},
    resolve::{Places, TrialSetup},
    trials::{Trial, time_each, trials},
};
use analysis::{comparison::LeftOut, run::Run};
pub use plan::{RunError, RunPlan};
use stage::{Around, Stage};

/// One sweep or load of an experiment.
#[derive(Debug)]
pub struct Part {
    /// Which workload, by name; empty if there is only one.
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

/// Runs an experiment. However it ends, its programs are stopped and its data removed.
///
/// # Errors
/// If nothing varies, the first failure. Otherwise only if nothing at all could be measured: what fails is left out.
pub fn run(plan: &RunPlan, interrupt: &AtomicBool, listener: &mut dyn Listener) -> Result<Outcome, RunError> {
    listener.on_experiment(&Event::Placed(plan.split.clone()));
    let mut runner = Runner { plan, outcome: Outcome::default(), failed: BTreeMap::new() };
    let trials = runner.possible(trials(&plan.experiment, plan.seed), listener);
    let mut stage = Stage::new(plan)?;
    stage.time = plan.experiment.time.map(|total| time_each(total, trials.len()));
    for trial in &trials {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        runner.measure(trial, &mut stage, interrupt, listener)?;
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
        let experiment = &self.plan.experiment;
        let is_linked = |trial: &Trial<'_>| {
            let setup = TrialSetup { experiment, variant: trial.variant, work: trial.work };
            setup.instances(&Places::default()).is_ok_and(|all| all.iter().any(|one| one.link_mbit.is_some()))
        };
        let (linked, possible): (Vec<_>, Vec<_>) = trials.into_iter().partition(is_linked);
        let mut works: Vec<&str> = linked.iter().map(|trial| trial.work.name.as_str()).collect();
        works.sort_unstable();
        works.dedup();
        for work in works {
            let what = if work.is_empty() { "the link" } else { work };
            self.leave_out(what.to_owned(), reason.to_string(), listener);
        }
        possible
    }

    /// Makes one trial, unless its variant has failed before.
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        stage: &mut Stage<'_>,
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
            listener.on_experiment(&Event::TrialBegun(name.clone()));
        }
        let mut lacking = Vec::new();
        let driven = stage.measure(trial, &mut Around { interrupt, listener, lacking: &mut lacking });
        for (what, why) in lacking {
            let left_out = LeftOut { what, why };
            if !self.outcome.left_out.contains(&left_out) {
                self.outcome.left_out.push(left_out);
            }
        }
        match driven {
            Ok(driven) => {
                self.outcome.parts.push(Part { work, variant, round: trial.round, run: driven.run });
            }
            // What was interrupted is not reported as left out.
            Err(_) if interrupt.load(Ordering::Relaxed) => {}
            Err(error) if !self.plan.experiment.compares() => return Err(error),
            Err(error) => {
                // A program that does not start now will not start for the next workload either.
                let everywhere = matches!(error, RunError::Start(_));
                let (work, what) = if everywhere { (String::new(), variant.clone()) } else { (work, name) };
                self.failed.insert((variant, work), error.to_string());
                self.leave_out(what, error.to_string(), listener);
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String, why: String, listener: &mut dyn Listener) {
        let left_out = LeftOut { what, why };
        listener.on_experiment(&Event::LeftOut(left_out.clone()));
        self.outcome.left_out.push(left_out);
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
