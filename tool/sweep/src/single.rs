//! One load on one server, measured.

use std::sync::atomic::{AtomicBool, Ordering};

use analysis::{
    conclude::RunKind,
    estimate::{Precision, estimate},
};
use load::{Plan, Stop};

use crate::{
    conclusion::{Circumstances, Gathered, Measured, RunStart},
    driver::{Began, DriveError, Driver, Making, Sent, Source},
    elsewhere::Observe,
    fleet::Generators,
    profiling::{LOAD_MOST, Profiled, Profiling, ProgramTables, Sampling},
    progress::{Event, Listener},
    sweep::{Driven, SweepError},
    target::{self, Watch},
};

/// A load, and how long to make it.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The load.
    pub load: Plan,
    /// How many users (open loop: how many connections at most).
    pub users: u32,
    /// When to stop.
    pub stop: Stop,
    /// What reads the tables of programs, if it is to be found where processor time goes.
    pub profile: Option<ProgramTables>,
    /// Where to observe besides.
    pub observe: Observe,
    /// What makes the load, if not this process.
    pub generators: Generators,
    /// For the report.
    pub circumstances: Circumstances,
}

/// Makes one load and concludes from it; an interrupted one from what was measured.
pub fn load(
    plan: &LoadPlan,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Driven, SweepError> {
    let start = RunStart::now();
    let elsewhere = plan.observe.start(interrupt)?;
    let making =
        Making { plan: &plan.load, generators: &plan.generators, users_max: plan.users, with_ceiling: false };
    let Began { source: mut generator, probes, users_max: users, .. } = Source::start(&making, interrupt)?;
    let first = target::first_requests(&probes, &plan.load.scenario, listener);
    let mut watch = Watch::start((&generator.addresses(), generator.beside()), elsewhere)?;
    watch.tell_what_is_unread(listener);
    if let Some(processors) = &plan.circumstances.system_cpus {
        watch = watch.timing(processors);
    }
    watch.follow();
    listener.on(&Event::StepBegun { users, purpose: None, time: None });
    let (ticks, profiling) = loop {
        watch.sample();
        generator.set_users(users)?;
        // A number of requests is kept to: there is no load after it that could be sampled.
        let meanwhile = plan.profile.filter(|_| !matches!(plan.stop, Stop::Time(_)));
        let profiling = meanwhile.map(|tables| Profiling::of_load(&watch, tables));
        match generator.run(plan.stop, interrupt) {
            // One of several generators was lost: the others begin again.
            Err(DriveError::Again(_)) => {}
            other => break (other?, profiling),
        }
    };
    watch.sample();
    let interrupted = interrupt.load(Ordering::Relaxed);
    let step = estimate(users, &ticks, &Precision::default());
    listener.on(&Event::StepDone(Box::new(step.clone())));
    let profiled = match profiling {
        Some(profiling) => Some(profiling.finish(users, &watch)),
        None => profiled_after(plan, (users, &watch), &mut generator, interrupt, listener)?,
    };
    let (generators, name_lookup) = (generator.told(), generator.name_lookup());
    let Sent { mut totals, lost, uncounted } = generator.finish();
    let measured = Measured {
        steps: vec![step],
        kind: RunKind::Load,
        watch: &watch,
        rest: None,
        database: None,
        start,
        out_of_time: false,
        interrupted,
        generator_ceiling_per_s: None,
        generators,
        redirected: first.redirected,
        name_lookup,
    };
    let mut run = Gathered::new(&plan.load, &plan.circumstances, measured).into_run(&totals);
    if let Some(profiled) = profiled {
        profiled.add_to(&mut run, &watch, interrupt);
    }
    first.count(&mut totals);
    Ok(Driven { run, totals, lost, uncounted })
}

/// Lets a load that was measured for some time go on for as long again, 10 s at most, and samples meanwhile. `None` where nobody
/// asked for that, where the load ended with a number of requests or an interrupt, and where none can be made any longer.
fn profiled_after(
    plan: &LoadPlan,
    (users, watch): (u32, &Watch),
    generator: &mut Source,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Option<Profiled>, DriveError> {
    let (Some(tables), Stop::Time(time)) = (plan.profile, plan.stop) else { return Ok(None) };
    if interrupt.load(Ordering::Relaxed) {
        return Ok(None);
    }
    listener.on(&Event::Profiling { users });
    Sampling { users, most: time.min(LOAD_MOST), watch, tables }.under_load(generator, interrupt)
}
