//! The commands that make load: `nstar sweep` and `nstar load`.

use std::{str::FromStr, sync::atomic::AtomicBool, time::Duration};

use ::load::{
    Arrivals, CEILING_BODY_BYTES, CEILING_USERS, Ceiling, Pacing, RequestTemplate, Scenario, Stop, Url,
};
use ::sweep::{
    conclusion::Circumstances,
    database::DatabaseUrl,
    elsewhere::Observe,
    fleet::{FleetError, Generators},
    single::{self, LoadPlan},
    sweep::{self, Confirming, SweepError, SweepPlan},
};
use analysis::search::UsersRange;
use report::progress::GeneratorCeiling;

use super::{plan, repeats};
use crate::{
    ci::CiReport,
    exit::{Exit, Failure},
    flags::{Generate, Load, Sweep, Target},
    interrupt::Interrupt,
    output,
    progress::Progress,
    values::Processors,
    view::View,
};

/// How long a load lasts unless the caller says otherwise.
const DURATION: Duration = Duration::from_secs(10);

/// How long the test of what the generator can do lasts unless the caller says otherwise.
const CEILING_DURATION: Duration = Duration::from_secs(1);

/// `nstar sweep`: the main job on the caller's server.
pub(super) fn sweep(flags: &Sweep) -> Result<Exit, Failure> {
    let mut plan = sweep_plan(flags)?;
    if let Some(repeats) = flags.repeat.repeats {
        confine(&flags.target, &flags.generate)?;
        let interrupt = Interrupt::listen_at_terminal().map_err(Failure::failed)?;
        return repeats::run(flags, repeats, &plan, &interrupt);
    }
    let files = output::Files::plan(&flags.output)?;
    let mut ci = CiReport::plan(&flags.ci, &flags.show)?;
    let ready = prepare(&flags.target, &flags.generate, (&mut plan.generators, &mut plan.observe));
    ready.inspect_err(|failure| ci.fail("", failure))?;
    let (mut view, interrupt) = View::of_sweep(flags, &plan.circumstances.target)?;
    let swept = sweep::sweep(&plan, &interrupt.asked, &mut view);
    let swept = swept.map_err(|error| failed(error, &interrupt));
    let swept = swept.inspect_err(|failure| ci.fail("", failure));
    view.finish();
    let shown = swept.and_then(|swept| {
        files.write(&swept.run)?;
        output::show(&swept.run, &flags.show, &[files.names(), flags.ci.names()].concat())?;
        ci.add(&swept.run, "", &interrupt)?;
        Ok(swept.run)
    });
    match shown {
        Ok(run) => {
            view.end_with(&run)?;
            Ok(output::exit_of(&run, &flags.show, &interrupt))
        }
        Err(failure) => {
            view.end_without(&failure);
            Err(failure)
        }
    }
}

/// Why nothing was measured.
pub(super) fn failed(error: SweepError, interrupt: &Interrupt) -> Failure {
    if let Some(signal) = interrupt.signal().filter(|_| error.is_interrupted()) {
        return Failure::Interrupted(signal, "interrupted while agents were started");
    }
    match error {
        SweepError::Fleet(FleetError::Lost { name, loss })
        | SweepError::Lost(FleetError::Lost { name, loss }) => {
            Failure::Failed(report::generator_lost(&name, &loss))
        }
        other => Failure::failed(other),
    }
}

fn sweep_plan(flags: &Sweep) -> Result<SweepPlan, Failure> {
    let scenario = plan::scenario(&flags.target)?;
    let target = plan::title(&scenario);
    let load = plan::plan(&flags.target, scenario);
    let generators = flags.generate.plan(&flags.target.drive, flags.observe.by_ssh(&flags.generate)?);
    let (users, fewer_users) = plan::users(&flags.users, &load, (&flags.target.drive, &flags.generate))?;
    Ok(SweepPlan {
        search: plan::search(users, flags.duration),
        load,
        database: database(flags)?,
        observe: flags.observe.plan(&flags.generate)?,
        generators,
        profile: flags.profile.plan(),
        confirm: flags.confirm.then_some(Confirming { always: true, most: None, started_only: false }),
        circumstances: Circumstances { target, system_cpus: None, cold: false, fewer_users },
        advise: true,
    })
}

/// Readies what makes load and what observes, for one run.
fn prepare(target: &Target, generate: &Generate, to: (&mut Generators, &mut Observe)) -> Result<(), Failure> {
    confine(target, generate)?;
    // A signal ends the process while nobody listens for it.
    claim(generate, to, &AtomicBool::new(false))
}

/// Keeps this process on the generator's processors, if it is the generator.
fn confine(target: &Target, generate: &Generate) -> Result<(), Failure> {
    if generate.is_elsewhere() { Ok(()) } else { Processors::confine(target.drive.cpus.as_ref()) }
}

/// Adds the members of a fleet to what makes load and what observes, if one was asked for, unless a signal comes meanwhile.
#[cfg(feature = "fleet")]
pub(super) fn claim(
    generate: &Generate,
    to: (&mut Generators, &mut Observe),
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    super::fleet::claim(&generate.fleet, to, interrupt)
}

#[cfg(not(feature = "fleet"))]
pub(super) fn claim(_: &Generate, _: (&mut Generators, &mut Observe), _: &AtomicBool) -> Result<(), Failure> {
    Ok(())
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

/// `nstar load`: one load, measured.
pub(super) fn load(flags: &Load) -> Result<Exit, Failure> {
    if flags.ceiling && flags.profile.plan().is_some() {
        return Err(Failure::usage(
            "--ceiling drives a server that is built in, and --profile looks at yours",
        ));
    }
    if flags.ceiling {
        return ceiling(flags);
    }
    let mut plan = load_plan(flags)?;
    let files = flags.output.as_deref().map(output::Files::plan).transpose()?;
    let mut ci = CiReport::plan(&flags.ci, &flags.show)?;
    let ready = prepare(&flags.target, &flags.generate, (&mut plan.generators, &mut plan.observe));
    ready.inspect_err(|failure| ci.fail("", failure))?;
    let interrupt = Interrupt::listen_at_terminal().map_err(Failure::failed)?;
    let mut progress = Progress::new(flags.show.no_progress);
    let loaded = single::load(&plan, &interrupt.asked, &mut progress);
    let loaded = loaded.map_err(|error| failed(error, &interrupt));
    let run = loaded.inspect_err(|failure| ci.fail("", failure))?.run;
    progress.finish();
    if let Some(files) = &files {
        files.write(&run)?;
    }
    let written = files.map_or_else(Vec::new, |files| files.names());
    output::show(&run, &flags.show, &[written, flags.ci.names()].concat())?;
    ci.add(&run, "", &interrupt)?;
    Ok(output::exit_of(&run, &flags.show, &interrupt))
}

/// `--ceiling`: what the generator can do on this host.
fn ceiling(flags: &Load) -> Result<Exit, Failure> {
    let drive = &flags.target.drive;
    Processors::confine(drive.cpus.as_ref())?;
    let nowhere = Url::from_str("http://127.0.0.1/").map_err(Failure::failed)?;
    let scenario = Scenario::single(&nowhere, RequestTemplate::default()).map_err(Failure::failed)?;
    let plan = plan::plan(&flags.target, scenario);
    let interrupt = Interrupt::listen_at_terminal().map_err(Failure::failed)?;
    let time = flags.duration.unwrap_or(CEILING_DURATION);
    let ceiling = Ceiling::measure(&plan, time, &interrupt.asked).map_err(Failure::failed)?;
    let Ceiling { requests_per_s, cpu_s, reached_per_s, threads } = ceiling;
    let (users, body_bytes) = (CEILING_USERS, CEILING_BODY_BYTES);
    let ceiling = GeneratorCeiling { requests_per_s, cpu_s, reached_per_s, threads, users, body_bytes };
    output::print(&ceiling.text())?;
    Ok(Exit::Done)
}

fn load_plan(flags: &Load) -> Result<LoadPlan, Failure> {
    let scenario = plan::scenario(&flags.target)?;
    let target = plan::title(&scenario);
    let mut load = plan::plan(&flags.target, scenario);
    if let Some(rate_per_s) = flags.rate {
        load.pacing = Pacing::Open { rate_per_s, arrivals: Arrivals::Poisson };
    }
    let wanted = UsersRange::List(vec![flags.users]);
    let generators = flags.generate.plan(&flags.target.drive, flags.observe.by_ssh(&flags.generate)?);
    let (users, fewer_users) = plan::users(&wanted, &load, (&flags.target.drive, &flags.generate))?;
    Ok(LoadPlan {
        users: users.most(),
        stop: stop(flags),
        profile: flags.profile.plan(),
        observe: flags.observe.plan(&flags.generate)?,
        generators,
        load,
        circumstances: Circumstances { target, system_cpus: None, cold: false, fewer_users },
    })
}

fn stop(flags: &Load) -> Stop {
    match (flags.requests, flags.total) {
        (Some(each), _) => Stop::PerUser(each),
        (None, Some(total)) => Stop::Total(total),
        (None, None) => Stop::Time(flags.duration.unwrap_or(DURATION)),
    }
}
