//! An experiment on the systems of this repository.

mod compare;

use std::env;

use experiment::{
    definition::Experiment,
    library,
    run::{Part, RunPlan, run as run_experiment},
};
use nstar::{
    exit::{Exit, Failure},
    interrupt::Interrupt,
    output,
    progress::Progress,
};
use sweep::cores;

use crate::flags::Lab;

pub(crate) fn run(flags: &Lab) -> Result<Exit, Failure> {
    if flags.list {
        return list();
    }
    let plan = run_plan(flags)?;
    experiment::room::check(&plan.experiment).map_err(Failure::usage)?;
    if plan.experiment.axis.is_some() {
        return compare::run(flags, &plan);
    }
    let files = files(flags, &plan.experiment)?;
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let outcome = run_experiment(&plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?;
    progress.finish();
    let mut worst = Exit::Done;
    for (part, files) in outcome.parts.iter().zip(&files) {
        worst = worse(worst, show(part, files, flags, &interrupt)?);
    }
    Ok(worst)
}

fn list() -> Result<Exit, Failure> {
    let lines = library::list().into_iter().map(|(name, title)| format!("{name:<26} {title}\n"));
    output::print(&lines.collect::<String>())?;
    Ok(Exit::Done)
}

fn run_plan(flags: &Lab) -> Result<RunPlan, Failure> {
    Ok(RunPlan {
        program: env::current_exe().map_err(Failure::failed)?,
        experiment: Experiment::load(&flags.experiment).map_err(Failure::usage)?,
        users: flags.users.clone(),
        step_max: flags.duration,
        engine: flags.engine.unwrap_or(engine::Model::Epoll).to_string(),
        engines: engine::Model::ALL.iter().map(ToString::to_string).collect(),
        split: if flags.share_cores { None } else { cores::split(&cores::available()) },
        seed: flags.seed,
    })
}

/// One pair of files for each work; with several, its name goes into theirs: `run-10-mb.json`.
fn files(flags: &Lab, experiment: &Experiment) -> Result<Vec<output::Files>, Failure> {
    match experiment.works.as_slice() {
        [_] => Ok(vec![output::Files::plan(&flags.output)?]),
        works => works
            .iter()
            .map(|work| output::Files::plan_part(&flags.output, &experiment::names::slug(&work.name)))
            .collect(),
    }
}

fn show(part: &Part, files: &output::Files, flags: &Lab, interrupt: &Interrupt) -> Result<Exit, Failure> {
    files.write(&part.run)?;
    output::show(&part.run, &flags.show, &files.names())?;
    Ok(output::exit_of(&part.run, &flags.show, interrupt))
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
