//! An experiment that varies something: every variant measured, one table of their order, one report.

use std::{
    fs,
    path::{Path, PathBuf},
};

use analysis::comparison::Comparison;
use engine::Model;
use experiment::{
    comparison::compare,
    definition::{Axis, Engines},
    run::{Outcome, Part, RunPlan, run as run_experiment},
};

use nstar::{
    exit::{self, Exit, Failure},
    interrupt::Interrupt,
    output,
    progress::Progress,
};
use sweep::conclusion::RunStart;

use crate::flags::Lab;

pub(super) fn run(flags: &Lab, plan: &RunPlan) -> Result<Exit, Failure> {
    check(flags, plan)?;
    let files = output::Files::plan(&flags.output)?;
    let folder = runs_folder(&files.run)?;
    let start = RunStart::now();
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let outcome = run_experiment(plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?;
    progress.finish();
    let comparison = compare(&plan.experiment, &outcome, start, plan.seed, |part| run_file(&folder, part));
    write_runs(&files.run, &folder, &outcome)?;
    output::write_file(&files.run, &report::comparison::json(&comparison).map_err(Failure::failed)?)?;
    output::write_file(&files.report, &report::comparison::html(&comparison).map_err(Failure::failed)?)?;
    show(&comparison, &files, flags)?;
    Ok(exit_of(&comparison, &interrupt))
}

/// What does not go with an experiment that chooses the models itself.
fn check(flags: &Lab, plan: &RunPlan) -> Result<(), Failure> {
    let varies_engine = !matches!(plan.experiment.axis, Some(Axis::Databases(_) | Axis::Peers { .. }));
    if flags.engine.is_some() && varies_engine {
        return Err(Failure::usage(format!(
            "--engine: {} varies the concurrency model itself, in its [axis]",
            flags.experiment
        )));
    }
    if !flags.show.gates.is_empty() {
        return Err(Failure::usage(format!(
            "--gate goes with one sweep; {} compares several. Gate one of them: {}",
            flags.experiment,
            one_of(plan.experiment.axis.as_ref())
        )));
    }
    let names = match &plan.experiment.axis {
        Some(Axis::Engines(Engines::Named(names))) => names.as_slice(),
        Some(Axis::Workers { engine, .. }) => std::slice::from_ref(engine),
        Some(Axis::Engines(Engines::All) | Axis::Databases(_) | Axis::Peers { .. }) | None => &[],
    };
    for name in names {
        name.parse::<Model>()
            .map_err(|error| Failure::usage(format!("{}: axis: {error}", flags.experiment)))?;
    }
    Ok(())
}

/// How one variant is run by itself.
fn one_of(axis: Option<&Axis>) -> &'static str {
    match axis {
        Some(Axis::Databases(_)) => {
            "nstar-lab serve booking --allow-test-ids --database URL, then nstar sweep scenarios/book.toml --gate .."
        }
        Some(Axis::Workers { .. }) => {
            "nstar-lab serve SYSTEM --engine MODEL --workers N, then nstar sweep URL --gate .."
        }
        Some(Axis::Peers { .. }) => {
            "nstar-lab serve index, nstar-lab serve peer, then nstar sweep URL --gate .."
        }
        Some(Axis::Engines(_)) | None => {
            "nstar-lab serve SYSTEM --engine MODEL, then nstar sweep URL --gate .."
        }
    }
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

fn show(comparison: &Comparison, files: &output::Files, flags: &Lab) -> Result<(), Failure> {
    if flags.show.json {
        return output::print(&report::comparison::json(comparison).map_err(Failure::failed)?);
    }
    output::print(&report::comparison::terminal(comparison, &output::terminal_options(&files.names())))
}

/// Conclusive where every work put at least one variant in its place.
fn exit_of(comparison: &Comparison, interrupt: &Interrupt) -> Exit {
    if let Some(signal) = interrupt.signal() {
        return Exit::Interrupted(signal);
    }
    let entries = || comparison.works.iter().flat_map(|work| &work.entries);
    if entries().all(|entry| entry.completed == 0) {
        exit::warn("no request completed");
        return Exit::Failed;
    }
    if broken(comparison) {
        exit::warn("THE PROOF FAILED: the database does not hold what was promised, as told above");
        return Exit::Failed;
    }
    let placed = comparison.works.iter().all(|work| work.entries.iter().any(|entry| entry.place.is_some()));
    if placed { Exit::Done } else { Exit::Inconclusive }
}

/// Whether a database does not hold what was promised.
fn broken(comparison: &Comparison) -> bool {
    let entries = comparison.works.iter().flat_map(|work| &work.entries);
    entries.flat_map(|entry| &entry.proofs).any(|proof| !proof.holds)
}
