//! `nstar experiment`: starts the programs that a file names, measures every variant, reports.

mod records;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use ::experiment::{
    Trouble,
    comparison::compare,
    definition::Experiment,
    document::{self, Disk},
    names::slug,
    programs, room,
    run::{AGAIN_MAX, Outcome, RunError, RunPlan, TrialFleet, run as run_experiment},
};
use analysis::{
    comparison::Comparison,
    run::{Proof, Run},
};
use report::progress;
use sweep::{
    conclusion::RunStart,
    cores::{self, Split},
};

use crate::{
    exit::{self, Exit, Failure},
    flags::{self, Conditions},
    interrupt::Interrupt,
    output,
    progress::Progress,
};
use records::{Place, RunFiles};

/// What makes this program a guard of another.
pub const GUARD: &str = "guard";

pub(super) fn run(flags: &flags::Experiment) -> Result<Exit, Failure> {
    let path = &flags.file;
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the experiment {}: {error}", path.display())))?;
    let read = document::read_with(path, &text, &Disk, &flags.conditions.set);
    run_and_report(read.map_err(Failure::usage)?, &flags.conditions)
}

/// Stands guard over a program of an experiment, as told on stdin.
///
/// # Errors
/// None: what goes wrong is printed for the process that started the guard.
pub fn guard() -> Result<Exit, Failure> {
    ::experiment::guard::run();
    Ok(Exit::Done)
}

/// What experiments that are run one after the other share.
pub struct Session {
    /// Whether a signal has asked for an end.
    pub interrupt: Interrupt,
    /// Whether a single measurement is kept like the trials of an experiment with several, so that what follows it can be
    /// gone on with alone.
    pub keeps_single: bool,
    /// Who gets which processors; `None`: generator and programs share them.
    split: Option<Split>,
}

impl Session {
    /// Begins to listen for signals, and shares out the processors that this process may run on now.
    ///
    /// # Errors
    /// Where signals cannot be listened for.
    pub fn begin(conditions: &Conditions) -> Result<Self, Failure> {
        Ok(Self {
            interrupt: Interrupt::listen_at_terminal().map_err(Failure::failed)?,
            keeps_single: false,
            split: if conditions.share_cores { None } else { cores::split(&cores::available()) },
        })
    }
}

/// An experiment that was run, with its files written.
#[derive(Debug)]
pub struct Reported {
    /// How it ended.
    pub exit: Exit,
    /// What was measured, of every variant; of the only one where nothing is varied.
    pub comparison: Comparison,
    /// Its page.
    pub page: PathBuf,
    /// What it comes to, for stdout.
    pub text: String,
}

/// Runs an experiment, and shows and writes what was found.
///
/// # Errors
/// Why it could not be run.
pub fn run_and_report(experiment: Experiment, conditions: &Conditions) -> Result<Exit, Failure> {
    let reported = run_in(&Session::begin(conditions)?, experiment, conditions)?;
    output::print(&reported.text)?;
    Ok(reported.exit)
}

/// Runs an experiment, and writes what was found.
///
/// # Errors
/// Why it could not be run.
pub fn run_in(
    session: &Session,
    experiment: Experiment,
    conditions: &Conditions,
) -> Result<Reported, Failure> {
    let (generators, observe) = conditions.elsewhere.plan(&experiment)?;
    // What is made on other hosts needs no processors of this one.
    let split = session.split.clone().filter(|_| !conditions.elsewhere.is_on_other_hosts(&experiment));
    let program = env::current_exe().map_err(Failure::failed)?;
    programs::check(&experiment, &program).map_err(Failure::usage)?;
    room::check(&experiment, split.as_ref()).map_err(Failure::usage)?;
    let plan = RunPlan {
        program,
        guard: vec![GUARD.into()],
        experiment,
        users: conditions.users.clone(),
        step_max: conditions.duration,
        split,
        generators,
        observe,
        fleet: fleet(conditions)?,
        seed: conditions.seed,
        profile: conditions.profile.plan(),
    };
    match plan.experiment.compares() {
        true => comparison(&plan, conditions, session),
        false => sweeps(&plan, conditions, session),
    }
}

/// The fleet that makes the load, if one was asked for.
#[cfg(feature = "fleet")]
fn fleet(conditions: &Conditions) -> Result<Option<TrialFleet>, Failure> {
    super::fleet::for_each_trial(&conditions.elsewhere.fleet)
}

#[cfg(not(feature = "fleet"))]
fn fleet(_: &Conditions) -> Result<Option<TrialFleet>, Failure> {
    Ok(None)
}

fn measure(
    plan: &RunPlan,
    conditions: &Conditions,
    session: &Session,
    files: &mut RunFiles<'_>,
) -> Result<Outcome, Failure> {
    let mut progress = Progress::new(conditions.show.no_progress);
    let outcome = run_experiment(plan, files, &session.interrupt.asked, &mut progress);
    progress.finish();
    let lost_fleet = matches!(outcome, Err(RunError::Fleet(_) | RunError::Lost(_)));
    let ended_early = session.interrupt.signal().is_some() || lost_fleet;
    if ended_early && files.made() > 0 {
        exit::warn(progress::kept(files.made()));
    }
    outcome.map_err(failed)
}

fn failed(error: RunError) -> Failure {
    Failure::failed(match error {
        RunError::Trouble(Trouble::Interrupted) => progress::interrupted().to_owned(),
        RunError::Trouble(Trouble::Cause(cause)) => progress::not_run(&cause),
        RunError::Record(error) => error.to_string(),
        RunError::Fleet(error) => error,
        // The first attempt, and those after it.
        RunError::Lost(lost) => progress::fleet_lost(&lost.name, &lost.loss, AGAIN_MAX + 1),
        RunError::Nothing(first) => progress::nothing_measured(&first),
    })
}

/// An experiment that varies nothing: a report for each workload.
fn sweeps(plan: &RunPlan, conditions: &Conditions, session: &Session) -> Result<Reported, Failure> {
    let files = files(plan, conditions)?;
    let held = !plan.experiment.published.is_empty() || !plan.experiment.claims.is_empty();
    let beside = held.then(|| output::Files::plan_part(&conditions.output, "experiment")).transpose()?;
    let start = RunStart::now();
    let several = plan.experiment.works.len() > 1 || session.keeps_single;
    let journal = several.then_some(conditions.resume);
    if conditions.resume && !several {
        return Err(Failure::usage(
            "--resume goes with experiments of several trials; this one makes a single one",
        ));
    }
    let mut runs = RunFiles::open(Place::Reports(&files), &conditions.output, plan, journal)?;
    let outcome = measure(plan, conditions, session, &mut runs)?;
    if outcome.interrupted && outcome.finished.is_empty() {
        exit::warn("interrupted before the measurement ended: nothing was measured");
    }
    let comparison = compare(&plan.experiment, &outcome, start, plan.seed, |trial| runs.name(trial));
    let (mut text, mut worst) =
        (String::new(), session.interrupt.signal().map_or(Exit::Done, Exit::Interrupted));
    if outcome.left_out.iter().any(|left_out| left_out.cause.is_failure()) {
        worst = worst.or_worse(Exit::Failed);
    }
    for trial in &outcome.finished {
        let Some(files) = runs.files(&trial.work) else { continue };
        text += &output::text(&trial.run, &conditions.show, &files.names())?;
        worst = worst.or_worse(exit_of_run(&trial.run, conditions, &session.interrupt));
    }
    let mut page = files.first().map(|(_, files)| files.report.clone()).unwrap_or_default();
    if let Some(files) = beside {
        write_comparison(&comparison, &files)?;
        if !conditions.show.json {
            text +=
                &report::comparison::held_terminal(&comparison, &output::terminal_options(&files.names()));
        }
        page = files.report;
    }
    Ok(Reported { exit: worst, comparison, page, text })
}

/// One pair of files for each workload; with several, its name goes into theirs: `run-10-mb.json`.
fn files(plan: &RunPlan, conditions: &Conditions) -> Result<Vec<(String, output::Files)>, Failure> {
    let of = |name: &str| match plan.experiment.works.as_slice() {
        [_] => output::Files::plan(&conditions.output),
        _ => output::Files::plan_part(&conditions.output, &slug(name)),
    };
    plan.experiment.works.iter().map(|work| Ok((work.name.clone(), of(&work.name)?))).collect()
}

fn exit_of_run(run: &Run, conditions: &Conditions, interrupt: &Interrupt) -> Exit {
    match &run.proof {
        Some(proof) if !proof.holds => broken_promise(proof),
        _ => output::exit_of(run, &conditions.show, interrupt),
    }
}

/// An experiment that varies something: every variant measured, one table of their order, one report.
fn comparison(plan: &RunPlan, conditions: &Conditions, session: &Session) -> Result<Reported, Failure> {
    if !conditions.show.gates.is_empty() {
        return Err(Failure::usage(
            "--gate goes with one sweep; this experiment compares several. Gate one of them with nstar sweep",
        ));
    }
    let files = output::Files::plan(&conditions.output)?;
    let mut runs = RunFiles::open(Place::Folder, &files.run, plan, Some(conditions.resume))?;
    let start = RunStart::now();
    let outcome = measure(plan, conditions, session, &mut runs)?;
    let comparison = compare(&plan.experiment, &outcome, start, plan.seed, |trial| runs.name(trial));
    write_comparison(&comparison, &files)?;
    Ok(Reported {
        exit: exit_of(&comparison, &session.interrupt),
        text: text_of(&comparison, &files, conditions)?,
        comparison,
        page: files.report,
    })
}

fn write_comparison(comparison: &Comparison, files: &output::Files) -> Result<(), Failure> {
    output::write_file(&files.run, &report::comparison::json(comparison).map_err(Failure::failed)?)?;
    output::write_file(&files.report, &report::comparison::html(comparison).map_err(Failure::failed)?)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn text_of(
    comparison: &Comparison,
    files: &output::Files,
    conditions: &Conditions,
) -> Result<String, Failure> {
    if conditions.show.json {
        return report::comparison::json(comparison).map_err(Failure::failed);
    }
    Ok(report::comparison::terminal(comparison, &output::terminal_options(&files.names())))
}

/// Conclusive where every workload put at least one variant in its place.
fn exit_of(comparison: &Comparison, interrupt: &Interrupt) -> Exit {
    if let Some(signal) = interrupt.signal() {
        return Exit::Interrupted(signal);
    }
    let entries = || comparison.works.iter().flat_map(|work| &work.entries);
    if entries().all(|entry| entry.completed == 0) {
        exit::warn("no request completed");
        return Exit::Failed;
    }
    if let Some(proof) = entries().flat_map(|entry| &entry.proofs).find(|proof| !proof.holds) {
        return broken_promise(proof);
    }
    let placed = comparison.works.iter().all(|work| work.entries.iter().any(|entry| entry.place.is_some()));
    if placed { Exit::Done } else { Exit::Inconclusive }
}

fn broken_promise(proof: &Proof) -> Exit {
    exit::warn(progress::proved(proof));
    Exit::Failed
}
