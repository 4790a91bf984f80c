//! `nstar load`: one load, measured.

use std::time::Duration;

use ::load::{Arrivals, Pacing, Stop};
use lab::{
    conclusion::Circumstances,
    single::{LoadPlan, load},
};
use model::search::UsersRange;

use super::plan;
use crate::{
    exit::{Exit, Failure},
    flags::Load,
    interrupt::Interrupt,
    output,
    progress::Progress,
};

/// How long a load lasts unless the caller says otherwise.
const DURATION: Duration = Duration::from_secs(10);

pub(crate) fn run(flags: &Load) -> Result<Exit, Failure> {
    let plan = load_plan(flags)?;
    let files = flags.output.as_deref().map(output::Files::plan).transpose()?;
    plan::confine(flags.target.drive.cpus.as_ref())?;
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let run = load(&plan, &interrupt.asked, &mut progress).map_err(Failure::failed)?;
    progress.finish();
    if let Some(files) = &files {
        files.write(&run)?;
    }
    output::show(&run, &flags.show, &files.map_or_else(Vec::new, |files| files.names()))?;
    Ok(output::judge(&run, &flags.show, &interrupt))
}

fn load_plan(flags: &Load) -> Result<LoadPlan, Failure> {
    let scenario = plan::scenario(&flags.target)?;
    let target = plan::title(&scenario);
    let mut load = plan::plan(&flags.target, scenario);
    if let Some(rate_per_s) = flags.rate {
        load.pacing = Pacing::Open { rate_per_s, arrivals: Arrivals::Poisson };
    }
    let wanted = UsersRange::List(vec![flags.users]);
    let (users, host_limits) = plan::users_within_limits(&wanted, &load, &flags.target.drive)?;
    Ok(LoadPlan {
        users: plan::most(&users),
        stop: stop(flags),
        load,
        circumstances: Circumstances { target, system_cpus: None, host_limits },
    })
}

fn stop(flags: &Load) -> Stop {
    match (flags.requests, flags.total) {
        (Some(each), _) => Stop::PerUser(each),
        (None, Some(total)) => Stop::Total(total),
        (None, None) => Stop::Time(flags.duration.unwrap_or(DURATION)),
    }
}
