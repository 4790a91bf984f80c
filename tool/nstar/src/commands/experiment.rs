//! `nstar experiment`: starts the programs that a file names, measures every variant, reports.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use ::experiment::{
    comparison::compare,
    definition::Experiment,
    document::{self, Disk},
    names::slug,
    room,
    run::{Outcome, Part, RunPlan, run as run_experiment},
};
use analysis::{comparison::Comparison, run::Proof};
use sweep::{conclusion::RunStart, cores};

use crate::{
    exit::{self, Exit, Failure},
    flags::{self, Conditions},
    interrupt::Interrupt,
    output,
    progress::Progress,
};

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

/// Runs an experiment, and shows and writes what was found.
///
/// # Errors
/// Why it could not be run.
pub fn run_and_report(experiment: Experiment, conditions: &Conditions) -> Result<Exit, Failure> {
    room::check(&experiment).map_err(Failure::usage)?;
    let plan = RunPlan {
        program: env::current_exe().map_err(Failure::failed)?,
        guard: vec![GUARD.into()],
        experiment,
        users: conditions.users.clone(),
        step_max: conditions.duration,
        split: if conditions.share_cores { None } else { cores::split(&cores::available()) },
        seed: conditions.seed,
    };
    if plan.experiment.compares() { comparison(&plan, conditions) } else { sweeps(&plan, conditions) }
}

/// An experiment that varies nothing: a report for each workload.
fn sweeps(plan: &RunPlan, conditions: &Conditions) -> Result<Exit, Failure> {
    let files = files(plan, conditions)?;
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(conditions.show.no_progress);
    let outcome = run_experiment(plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?;
    progress.finish();
    let mut worst = interrupt.signal().map_or(Exit::Done, Exit::Interrupted);
    for part in &outcome.parts {
        let Some((_, files)) = files.iter().find(|(work, _)| *work == part.work) else { continue };
        worst = worse(worst, show_run(part, files, conditions, &interrupt)?);
    }
    Ok(worst)
}

/// One pair of files for each workload; with several, its name goes into theirs: `run-10-mb.json`.
fn files(plan: &RunPlan, conditions: &Conditions) -> Result<Vec<(String, output::Files)>, Failure> {
    let of = |name: &str| match plan.experiment.works.as_slice() {
        [_] => output::Files::plan(&conditions.output),
        _ => output::Files::plan_part(&conditions.output, &slug(name)),
    };
    plan.experiment.works.iter().map(|work| Ok((work.name.clone(), of(&work.name)?))).collect()
}

fn show_run(
    part: &Part,
    files: &output::Files,
    conditions: &Conditions,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    files.write(&part.run)?;
    output::show(&part.run, &conditions.show, &files.names())?;
    Ok(match &part.run.proof {
        Some(proof) if !proof.holds => broken_promise(proof),
        _ => output::exit_of(&part.run, &conditions.show, interrupt),
    })
}

/// Of several sweeps the one that went worst decides: failure, then a breached gate, then no answer.
fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit| match exit {
        Exit::Interrupted(_) => 4,
        Exit::Failed | Exit::Usage => 3,
        Exit::GateBreached => 2,
        Exit::Inconclusive => 1,
        Exit::Done => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// An experiment that varies something: every variant measured, one table of their order, one report.
fn comparison(plan: &RunPlan, conditions: &Conditions) -> Result<Exit, Failure> {
    if !conditions.show.gates.is_empty() {
        return Err(Failure::usage(
            "--gate goes with one sweep; this experiment compares several. Gate one of them with nstar sweep",
        ));
    }
    let files = output::Files::plan(&conditions.output)?;
    let folder = runs_folder(&files.run)?;
    let start = RunStart::now();
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(conditions.show.no_progress);
    let outcome = run_experiment(plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?;
    progress.finish();
    let comparison = compare(&plan.experiment, &outcome, start, plan.seed, |part| run_file(&folder, part));
    write_runs(&files.run, &folder, &outcome)?;
    output::write_file(&files.run, &report::comparison::json(&comparison).map_err(Failure::failed)?)?;
    output::write_file(&files.report, &report::comparison::html(&comparison).map_err(Failure::failed)?)?;
    show_comparison(&comparison, &files, conditions)?;
    Ok(exit_of(&comparison, &interrupt))
}

/// The folder of the single runs, beside the comparison: `run.runs` for `run.json`.
fn runs_folder(comparison: &Path) -> Result<String, Failure> {
    let folder = comparison.with_extension("runs");
    let made = fs::create_dir_all(&folder);
    made.map_err(|error| Failure::usage(format!("cannot make the folder {}: {error}", folder.display())))?;
    Ok(folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn run_file(folder: &str, part: &Part) -> String {
    format!("{folder}/{}.json", part.slug())
}

fn write_runs(comparison: &Path, folder: &str, outcome: &Outcome) -> Result<(), Failure> {
    outcome.parts.iter().try_for_each(|part| {
        let path: PathBuf = comparison.with_file_name(run_file(folder, part));
        output::write_file(&path, &report::json(&part.run).map_err(Failure::failed)?)
    })
}

fn show_comparison(
    comparison: &Comparison,
    files: &output::Files,
    conditions: &Conditions,
) -> Result<(), Failure> {
    if conditions.show.json {
        return output::print(&report::comparison::json(comparison).map_err(Failure::failed)?);
    }
    output::print(&report::comparison::terminal(comparison, &output::terminal_options(&files.names())))
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
    exit::warn(format!("THE PROOF FAILED: {}", proof.text));
    Exit::Failed
}
