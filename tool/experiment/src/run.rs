//! Runs an experiment: starts its programs, makes its data, measures every workload on every variant.

mod again;
mod drive;
mod plan;
mod ports;
mod preparation;
mod stage;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{
    comparison,
    definition::Variant,
    process::{Trouble, link, program},
    progress::{Event, Listener},
    resolve::{Places, TrialSetup},
    trials::{Trial, Trials},
};
pub use again::AGAIN_MAX;
use again::until_whole;
use analysis::{
    comparison::{Finished, LeftOut, LeftOutCause, has_settled},
    run::{Run, WarningKind},
};
pub use plan::{RecordError, RunError, RunPlan, TrialFleet};
use stage::{Around, Stage};

/// The results of an experiment.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The trials that were measured, in order.
    pub finished: Vec<Finished>,
    /// What was not, and why.
    pub left_out: Vec<LeftOut>,
    /// Whether it was interrupted before its end.
    pub interrupted: bool,
    /// How long the trials took that were made before, with everything around them.
    pub before: Duration,
}

/// A trial that was made before.
#[derive(Debug)]
pub struct Kept {
    /// What was found.
    pub run: Run,
    /// How long it took, with everything around it.
    pub took: Duration,
}

/// Keeps what is measured as soon as it is, so that an experiment that was interrupted can go on.
pub trait Records {
    /// How many trials were made before.
    fn made_before(&self) -> u32;

    /// A trial that was made before, by workload, variant and round.
    fn take(&mut self, work: &str, variant: &str, round: u32) -> Option<Kept>;

    /// Keeps a trial, and how long it took.
    ///
    /// # Errors
    /// Why that is not possible.
    fn keep(&mut self, trial: &Finished, took: Duration) -> Result<(), RecordError>;
}

/// Runs an experiment. However it ends, its programs are stopped and its data removed.
///
/// # Errors
/// If nothing at all could be measured, the first failure: what fails beside others is left out. Also if a trial
/// could not be kept, or the fleet that makes the load could not be had, or did not last in any attempt at a trial.
pub fn run(
    plan: &RunPlan,
    records: &mut dyn Records,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Outcome, RunError> {
    if plan.split.is_some() || !plan.is_driven_elsewhere() {
        listener.on_experiment(&Event::Placed(plan.split.clone()));
    }
    let mut trials = match plan.users {
        Some(_) => Trials::of_sweeps(&plan.experiment, plan.seed),
        None => Trials::new(&plan.experiment, plan.seed, plan.step_max),
    };
    let mut runner = Runner { plan, records, outcome: Outcome::default() };
    runner.leave_out_impossible(&mut trials, listener);
    runner.leave_out_missing(&mut trials, listener)?;
    announce(&trials, runner.records.made_before(), listener);
    let mut planned = false;
    let mut stage = Stage::new(plan)?;
    let mut number = 0;
    loop {
        let ahead = trials.forecast();
        let Some(trial) = trials.next() else { break };
        if interrupt.load(Ordering::Relaxed) {
            runner.outcome.interrupted = true;
            break;
        }
        number += 1;
        let (work, variant) = (&trial.work.name, &trial.variant.name);
        if let Some(Kept { run, took }) = runner.records.take(work, variant, trial.round) {
            trials.made(&trial, took);
            runner.outcome.before += took;
            note_test(&run, &trial, &mut trials);
            let again = note_length(&run, &trial, &mut trials);
            runner.outcome.finished.push(finished(&trial, run));
            runner.drop_pilot(again, &trial);
        } else {
            if !std::mem::replace(&mut planned, true) {
                listener.on_experiment(&Event::Planned(ahead));
            }
            let name = trial.name(&plan.experiment);
            // A single measurement has no name.
            if !name.is_empty() {
                listener.on_experiment(&Event::TrialBegun { name, number, ahead });
            }
            let began = Instant::now();
            let ended = runner.measure(&trial, &mut stage, interrupt, listener)?;
            runner.take_note(ended, &trial, began.elapsed(), &mut trials, listener)?;
        }
        if trials.block_is_complete() && plan.experiment.compares() {
            let open = comparison::open(&plan.experiment, trial.work, &runner.outcome.finished);
            trials.keep_open(&trial, &open);
        }
    }
    if let Some(left) = trials.left_over().filter(|_| !runner.outcome.interrupted) {
        listener.on_experiment(&Event::Settled { left });
    }
    runner.finish()
}

fn finished(trial: &Trial<'_>, run: Run) -> Finished {
    let (work, variant) = (trial.work.name.clone(), trial.variant.name.clone());
    Finished { work, variant, round: trial.round, run }
}

fn is_interrupted(run: &Run) -> bool {
    run.warnings.iter().any(|warning| warning.kind == WarningKind::Interrupted)
}

/// Takes note of the test that the verdict of a trial was put to.
fn note_test(run: &Run, trial: &Trial<'_>, trials: &mut Trials<'_>) {
    if let Some(tested) = &run.confirmation {
        trials.tested(trial, Duration::try_from_secs_f64(tested.elapsed_s).unwrap_or_default());
    }
}

/// Takes note of whether a load was long enough. Returns whether its round is made again of longer ones.
fn note_length<'a>(run: &Run, trial: &Trial<'a>, trials: &mut Trials<'a>) -> bool {
    // A machine that was slower meanwhile is no reason to make loads longer.
    let speed = run.verdict_step().and_then(|step| step.processor_speed).unwrap_or(1.0);
    !is_interrupted(run) && trials.settled(trial, run.verdict.throughput_max_per_s / speed, has_settled(run))
}

/// Says what is to come before it begins.
fn announce(trials: &Trials<'_>, made_before: u32, listener: &mut dyn Listener) {
    if let Some(needed) = trials.too_short() {
        listener.on_experiment(&Event::TooShort { needed });
    }
    if made_before > 0 {
        listener.on_experiment(&Event::GoesOn(made_before));
    }
}

/// The programs that are not installed, each with the variants that start it. A program with a path may yet be made.
fn missing_programs(plan: &RunPlan) -> Vec<(LeftOutCause, Vec<&str>)> {
    let experiment = &plan.experiment;
    let mut missing: Vec<(LeftOutCause, Vec<&str>)> = Vec::new();
    for variant in &experiment.variants {
        let places = Places { program: plan.program.clone(), ..Places::example(experiment) };
        let all = experiment.works.iter().flat_map(|work| {
            let setup = TrialSetup { experiment, variant, work };
            // Whatever is wrong with it was told when it was read.
            setup.programs(&places).unwrap_or_default()
        });
        for (name, program) in all {
            if program.contains('/') || program::find(&program, &plan.program).is_some() {
                continue;
            }
            let is_it = |cause: &LeftOutCause| matches!(cause, LeftOutCause::ProgramMissing { program: known, .. } if *known == program);
            match missing.iter_mut().find(|(cause, _)| is_it(cause)) {
                Some((_, variants)) if variants.contains(&variant.name.as_str()) => {}
                Some((_, variants)) => variants.push(&variant.name),
                None => {
                    let cause = LeftOutCause::ProgramMissing { process: Some(name), program };
                    missing.push((cause, vec![&variant.name]));
                }
            }
        }
    }
    missing
}

/// How a trial ended.
enum Ended {
    Measured(Box<Run>),
    /// It failed, and would fail again.
    Failed(LeftOutCause),
    Interrupted,
}

/// An experiment under way.
struct Runner<'a> {
    plan: &'a RunPlan,
    records: &'a mut dyn Records,
    outcome: Outcome,
}

impl Runner<'_> {
    /// Leaves out the trials that this process may not make, and reports them.
    fn leave_out_impossible(&mut self, trials: &mut Trials<'_>, listener: &mut dyn Listener) {
        let Err(error) = link::check() else { return };
        let cause = LeftOutCause::from(error);
        let experiment = &self.plan.experiment;
        for work in &experiment.works {
            let is_linked = |variant: &&Variant| {
                let instances = TrialSetup { experiment, variant, work }.instances(&Places::default());
                instances.is_ok_and(|all| all.iter().any(|one| one.link_mbit.is_some()))
            };
            let linked: Vec<&Variant> = experiment.variants.iter().filter(is_linked).collect();
            linked.iter().for_each(|variant| trials.leave_out(&variant.name, &work.name));
            if !linked.is_empty() {
                self.leave_out(work.name.clone(), cause.clone(), listener);
            }
        }
    }

    /// Leaves out the variants that start a program which is not installed, all that need it together.
    ///
    /// # Errors
    /// Where every variant needs it.
    fn leave_out_missing(
        &mut self,
        trials: &mut Trials<'_>,
        listener: &mut dyn Listener,
    ) -> Result<(), RunError> {
        for (cause, variants) in missing_programs(self.plan) {
            if variants.len() == self.plan.experiment.variants.len() {
                return Err(cause.into());
            }
            variants.iter().for_each(|variant| trials.leave_out(variant, ""));
            self.leave_out(variants.join(", "), cause, listener);
        }
        Ok(())
    }

    fn measure(
        &mut self,
        trial: &Trial<'_>,
        stage: &mut Stage<'_>,
        interrupt: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<Ended, RunError> {
        let mut lacking = Vec::new();
        (stage.time, stage.test) = (trial.time, trial.test);
        stage.profile = self.plan.profile.filter(|_| !self.is_profiled(trial));
        let measured = until_whole(interrupt, |losses| {
            if let Some(lost) = losses.last() {
                let (lost, times) = (lost.clone(), again::times(losses));
                listener.on_experiment(&Event::MeasuredAgain { lost, times });
            }
            let mut around = Around { interrupt, listener: &mut *listener, lacking: &mut lacking };
            stage.measure(trial, &mut around)
        });
        for left_out in lacking {
            if !self.outcome.left_out.contains(&left_out) {
                self.outcome.left_out.push(left_out);
            }
        }
        match measured {
            Ok((mut driven, losses)) => {
                driven.run.warnings.extend(again::warning(&losses));
                Ok(Ended::Measured(Box::new(driven.run)))
            }
            // What was interrupted is not reported as left out.
            Err(_) if interrupt.load(Ordering::Relaxed) => Ok(Ended::Interrupted),
            Err(RunError::Trouble(Trouble::Cause(cause))) if self.makes_several() => Ok(Ended::Failed(cause)),
            Err(error) => Err(error),
        }
    }

    /// Whether what fails leaves others to measure.
    fn makes_several(&self) -> bool {
        self.plan.experiment.compares() || self.plan.experiment.works.len() > 1
    }

    /// Whether its variant was profiled on its workload before: once is enough, and the rounds after it measure without.
    fn is_profiled(&self, trial: &Trial<'_>) -> bool {
        self.of_variant(trial).any(|before| before.run.profile.is_some())
    }

    fn take_note<'a>(
        &mut self,
        ended: Ended,
        trial: &Trial<'a>,
        took: Duration,
        trials: &mut Trials<'a>,
        listener: &mut dyn Listener,
    ) -> Result<(), RunError> {
        trials.made(trial, took);
        match ended {
            Ended::Interrupted => self.outcome.interrupted = true,
            Ended::Measured(run) if self.is_cut_short(&run, trial) => self.outcome.interrupted = true,
            Ended::Measured(run) => {
                self.outcome.interrupted |= is_interrupted(&run);
                note_test(&run, trial, trials);
                let again = note_length(&run, trial, trials);
                let finished = finished(trial, *run);
                self.records.keep(&finished, took)?;
                self.outcome.finished.push(finished);
                self.drop_pilot(again, trial);
            }
            Ended::Failed(cause) => {
                // A program that does not start now will not start for the next workload either; where only workloads
                // differ, it may.
                let variant = &trial.variant.name;
                let (work, what) = match cause.prevents_start() && self.plan.experiment.compares() {
                    true => ("", variant.clone()),
                    false => (trial.work.name.as_str(), trial.name(&self.plan.experiment)),
                };
                trials.leave_out(variant, work);
                self.leave_out(what, cause, listener);
            }
        }
        Ok(())
    }

    /// Forgets a round that is made again of longer loads. What a load shows before it settles is no throughput.
    fn drop_pilot(&mut self, again: bool, trial: &Trial<'_>) {
        let is_of_it = |before: &Finished| before.work == trial.work.name && before.round == trial.round;
        self.outcome.finished.retain(|before| !(again && is_of_it(before)));
    }

    /// Whether an interrupted trial says nothing beside those of its variant that were not. A broken promise counts.
    fn is_cut_short(&self, run: &Run, trial: &Trial<'_>) -> bool {
        let kept = run.proof.as_ref().is_none_or(|proof| proof.holds);
        is_interrupted(run) && kept && self.of_variant(trial).next().is_some()
    }

    /// The finished trials of its variant on its workload.
    fn of_variant(&self, trial: &Trial<'_>) -> impl Iterator<Item = &Finished> {
        let (work, variant) = (&trial.work.name, &trial.variant.name);
        self.outcome.finished.iter().filter(move |before| before.work == *work && before.variant == *variant)
    }

    fn leave_out(&mut self, what: String, cause: LeftOutCause, listener: &mut dyn Listener) {
        let left_out = LeftOut::new(what, cause);
        listener.on_experiment(&Event::LeftOut(left_out.clone()));
        self.outcome.left_out.push(left_out);
    }

    fn finish(self) -> Result<Outcome, RunError> {
        match self.outcome.left_out.as_slice() {
            [first, ..] if self.outcome.finished.is_empty() => Err(RunError::Nothing(first.clone().into())),
            _ => Ok(self.outcome),
        }
    }
}
