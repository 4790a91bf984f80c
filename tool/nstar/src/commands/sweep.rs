//! `nstar sweep`: the main job on the caller's server.

use lab::{
    conclusion::Circumstances,
    sweep::{SweepPlan, sweep},
};

use super::{database, plan};
use crate::{
    exit::{Exit, Failure},
    flags::Sweep,
    interrupt::Interrupt,
    output,
    progress::Progress,
};

pub(crate) fn run(flags: &Sweep) -> Result<Exit, Failure> {
    let plan = sweep_plan(flags)?;
    let files = output::Files::plan(&flags.output)?;
    plan::confine(flags.target.drive.cpus.as_ref())?;
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let run = sweep(&plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?.run;
    progress.finish();
    files.write(&run)?;
    output::show(&run, &flags.show, &files.names())?;
    Ok(output::judge(&run, &flags.show, &interrupt))
}

fn sweep_plan(flags: &Sweep) -> Result<SweepPlan, Failure> {
    let scenario = plan::scenario(&flags.target)?;
    let target = plan::title(&scenario);
    let load = plan::plan(&flags.target, scenario);
    let (users, host_limits) = plan::users_within_limits(&flags.users, &load, &flags.target.drive)?;
    Ok(SweepPlan {
        search: plan::search(users, Some(flags.duration)),
        load,
        cold_folder: None,
        database: database::to_watch(flags.watch_database.as_ref(), &flags.login)?,
        circumstances: Circumstances { target, system_cpus: None, host_limits },
    })
}
