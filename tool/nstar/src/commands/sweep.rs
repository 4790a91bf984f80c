//! `nstar sweep`: the main job on the caller's server.

use ::sweep::{
    conclusion::Circumstances,
    database::DatabaseUrl,
    sweep::{SweepPlan, sweep},
};

use super::plan;
use crate::{
    exit::{Exit, Failure},
    flags::{Processors, Sweep},
    interrupt::Interrupt,
    output,
    progress::Progress,
};

pub(super) fn run(flags: &Sweep) -> Result<Exit, Failure> {
    let plan = sweep_plan(flags)?;
    let files = output::Files::plan(&flags.output)?;
    Processors::confine(flags.target.drive.cpus.as_ref())?;
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let run = sweep(&plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?.run;
    progress.finish();
    files.write(&run)?;
    output::show(&run, &flags.show, &files.names())?;
    Ok(output::exit_of(&run, &flags.show, &interrupt))
}

fn sweep_plan(flags: &Sweep) -> Result<SweepPlan, Failure> {
    let scenario = plan::scenario(&flags.target)?;
    let target = plan::title(&scenario);
    let load = plan::plan(&flags.target, scenario);
    let (users, fewer_users) = plan::users_within_limits(&flags.users, &load, &flags.target.drive)?;
    Ok(SweepPlan {
        search: plan::search(users, Some(flags.duration)),
        load,
        cold_folder: None,
        database: database(flags)?,
        circumstances: Circumstances { target, system_cpus: None, fewer_users },
    })
}

/// The database to ask which of its sessions wait for locks, with its password from wherever that is.
fn database(flags: &Sweep) -> Result<Option<DatabaseUrl>, Failure> {
    let Some(url) = &flags.watch_database else {
        return match flags.login.database_password_file {
            Some(_) => Err(Failure::usage("--database-password-file goes with --watch-database")),
            None => Ok(None),
        };
    };
    let password = flags.login.password("--watch-database", url.shows_password())?;
    Ok(Some(match password {
        Some(password) => url.clone().with_password(password),
        None => url.clone(),
    }))
}
