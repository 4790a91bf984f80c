//! Raises the number of users as the search asks, watches the servers, and concludes.
//!
//! The search for N* lives in [`analysis::search`] and knows no clock or socket; this driver carries it out.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use agent::StartError;
use analysis::{
    conclude::RunKind,
    confirmation,
    run::{Resource, Run},
    search::{MeasuredStep, Next, Search, SearchOptions},
};
use load::{LoadError, Plan, RequestTotal};
use observe::ObserveError;

use crate::{
    conclusion::{self, Circumstances, Gathered, Measured, RunStart},
    confirm::{Swept, confirm},
    database::{DatabaseUrl, DatabaseWatch},
    driver::{Began, DriveError, Driver, Making, Sent, Source, Told},
    elsewhere::Observe,
    fleet::{FleetError, Generators, Lost},
    following::{self, Seen},
    profiling::{AtSaturation, Profiled, ProgramTables, profile_at},
    progress::{Event, Listener},
    target::{self, FirstRequests, Watch},
    tell_apart::tell_apart,
};

/// A sweep as planned.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    /// The load; its number of users is the search's to choose.
    pub load: Plan,
    /// The numbers of users to try, and how well each is to be measured.
    pub search: SearchOptions,
    /// A database behind the server, to ask meanwhile which sessions wait for locks.
    pub database: Option<DatabaseUrl>,
    /// How to test the verdict by slowing each tier a little; `None`: it is not tested.
    pub confirm: Option<Confirming>,
    /// What reads the tables of programs, if it is to be found where processor time goes.
    pub profile: Option<ProgramTables>,
    /// Where to observe besides.
    pub observe: Observe,
    /// What makes the load, if not this process.
    pub generators: Generators,
    /// Where generator and systems run, for the report.
    pub circumstances: Circumstances,
    /// Whether to say before the load which settings of the hosts matter most.
    pub advise: bool,
}

impl SweepPlan {
    /// The same with no more users than these.
    fn with_at_most(&self, users: u32) -> Self {
        let search = SearchOptions { users: self.search.users.at_most(users), ..self.search.clone() };
        Self { search, ..self.clone() }
    }
}

/// How a verdict is tested by slowing each tier a little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirming {
    /// Whether to test it also where it is sure which tier holds the bottleneck.
    pub always: bool,
    /// Longest time; `None`: as long as it needs.
    pub most: Option<Duration>,
    /// Whether to leave processes alone that this one did not start.
    pub started_only: bool,
}

/// The outcome of a sweep or a load.
#[derive(Debug, Clone)]
pub struct Driven {
    /// The run.
    pub run: Run,
    /// Totals of every request of the scenario, including those before the load and between measurements.
    pub totals: Vec<RequestTotal>,
    /// Which of several generators was lost, if that ended the run before all was measured, or came at its very end.
    pub lost: Option<Lost>,
    /// Which of them was lost first, also where the others went on: the totals lack what it had sent.
    pub uncounted: Option<Lost>,
}

/// Reasons why a sweep could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Not even this host could be watched.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// Nothing could be observed through a command that was to be used.
    #[error("{flag}: {source}")]
    Agent {
        /// The flag that named it.
        flag: &'static str,
        /// Why not.
        source: StartError,
    },
    /// The load could not be made elsewhere.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The load could not be made elsewhere any longer, and nothing had been measured by then.
    #[error(transparent)]
    Lost(FleetError),
    /// The action before a step failed.
    #[error("before a step: {0}")]
    BeforeStep(String),
}

impl From<DriveError> for SweepError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Load(error) => Self::Load(error),
            DriveError::Again(error) | DriveError::Over(error) => Self::Lost(error),
        }
    }
}

impl SweepError {
    /// The generator or observer that was lost, where that is the reason: another, or the same once it is back, may do what
    /// this one could not. `None` where it would happen again.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self {
            Self::Lost(error) => Lost::meanwhile(error),
            Self::Fleet(error) => Lost::at_start(error),
            Self::Agent { source, .. } => Lost::before_it_began(source),
            Self::Load(_) | Self::Observe(_) | Self::BeforeStep(_) => None,
        }
    }

    /// Whether nothing was measured because somebody asked to stop while agents were started.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let (Self::Agent { source, .. } | Self::Fleet(FleetError::Start { source, .. })) = self else {
            return false;
        };
        matches!(source, StartError::Interrupted)
    }
}

/// Sweeps a server from few users to saturation and beyond. A sweep that is interrupted, or loses what makes its load,
/// concludes from the steps that are complete.
///
/// # Errors
/// If the load cannot be made, was lost before a step was complete, or the servers cannot be watched.
pub fn sweep(
    plan: &SweepPlan,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Driven, SweepError> {
    sweep_with(plan, &mut || Ok(()), interrupt, listener)
}

/// The same, doing something before each step, such as emptying a cache.
///
/// # Errors
/// The same, and [`SweepError::BeforeStep`] with what that says.
pub fn sweep_with(
    plan: &SweepPlan,
    before_step: &mut dyn FnMut() -> Result<(), String>,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Driven, SweepError> {
    let (mut source, started) = begin(plan, interrupt, listener)?;
    let Started { plan, watch, .. } = &started;
    let threads = u32::try_from(plan.load.threads).unwrap_or(u32::MAX);
    let mut stage = Stage {
        follow: &|| watch.follow(),
        sample: &|| watch.sample(),
        look_closely: &|closely| watch.look_closely(closely),
        resources: &|measured| following::resources(watch, measured, threads),
        think_us: conclusion::mean_us(conclusion::think(&plan.load)),
        before_step,
        listener,
    };
    let searched = search(&mut source, plan.search.clone(), interrupt, &mut stage)?;
    stage.listener.on(&Event::Searched);
    let searched_us = searched.measured_us();
    let gathered = gather(&started, searched, source.told(), interrupt.load(Ordering::Relaxed));
    let (gathered, profiled) =
        experiment(gathered, searched_us, &started, &mut source, interrupt, &mut stage)?;
    Ok(finish(&started, source, gathered, profiled, interrupt))
}

/// A sweep whose load and observers have begun.
struct Started {
    start: RunStart,
    /// With no more users than the generators can make.
    plan: SweepPlan,
    first: FirstRequests,
    ceiling_per_s: Option<f64>,
    /// How long it took to look up the server's name, where that was done here.
    name_lookup: Option<Duration>,
    /// A time before the load that was watched, microseconds of the monotonic clock.
    rest: (u64, u64),
    database: Option<DatabaseWatch>,
    watch: Watch,
}

/// Starts what makes the load and what watches the servers, and watches them at rest.
fn begin(
    plan: &SweepPlan,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<(Source, Started), SweepError> {
    let start = RunStart::now();
    let elsewhere = plan.observe.start(interrupt)?;
    let making = Making {
        plan: &plan.load,
        generators: &plan.generators,
        users_max: plan.search.users.most(),
        with_ceiling: true,
    };
    let Began { source, probes, ceiling_per_s, users_max } = Source::start(&making, interrupt)?;
    let plan = plan.with_at_most(users_max);
    let first = target::first_requests(&probes, &plan.load.scenario, listener);
    let watch = Watch::start((&source.addresses(), source.beside()), elsewhere)?;
    watch.tell_what_is_unread(listener);
    if plan.advise {
        watch.advise(source.is_here(), interrupt, listener);
    }
    let rest = watch.rest();
    let database = plan.database.as_ref().map(|server| DatabaseWatch::start(server, listener));
    let name_lookup = source.name_lookup();
    Ok((source, Started { start, plan, first, ceiling_per_s, name_lookup, rest, database, watch }))
}

/// Brings together what the search measured and what was seen meanwhile.
fn gather(started: &Started, searched: Searched, generators: Told, interrupted: bool) -> Gathered<'_> {
    let Started { plan, watch, .. } = started;
    let measured = Measured {
        steps: searched.steps.into_iter().map(|measured| measured.step).collect(),
        kind: RunKind::Sweep { users_max: plan.search.users.most() },
        watch,
        rest: Some(started.rest),
        database: started.database.as_ref(),
        start: started.start,
        out_of_time: searched.out_of_time,
        interrupted,
        generator_ceiling_per_s: started.ceiling_per_s,
        generators,
        redirected: started.first.redirected,
        name_lookup: started.name_lookup,
    };
    Gathered::new(&plan.load, &plan.circumstances, measured)
}

/// Makes the experiments that the steps leave open, as long as load can be made: the profile, the pair test, and slowing each
/// tier. Returns what is known then, and the profile.
fn experiment<'a>(
    mut gathered: Gathered<'a>,
    searched_us: u64,
    Started { plan, watch, .. }: &Started,
    source: &mut Source,
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<(Gathered<'a>, Option<Profiled>), SweepError> {
    let is_over = |source: &Source| interrupt.load(Ordering::Relaxed) || source.told().is_over();
    let mut profiled = None;
    if !is_over(source) {
        profiled = why(&gathered, plan, (&mut *source, watch), interrupt, stage)?;
    }
    if let Some(wanted) = gathered.to_tell().filter(|_| !is_over(source)) {
        stage.listener.on(&Event::TellingApart { users: wanted.users });
        let is_open = |trial: &analysis::tell_apart::Trial| gathered.is_open_after(trial);
        let trial = unless_lost(tell_apart(source, wanted, searched_us, interrupt, &is_open))?;
        gathered = gathered.told_apart(trial, interrupt.load(Ordering::Relaxed));
    }
    if !is_over(source) {
        let trial = test(&gathered, plan, (&mut *source, watch), interrupt, stage)?;
        gathered = gathered.confirmed(trial, interrupt.load(Ordering::Relaxed));
    }
    Ok((gathered, profiled))
}

/// Ends the load, and makes the run of all that was gathered.
fn finish(
    started: &Started,
    source: Source,
    gathered: Gathered<'_>,
    profiled: Option<Profiled>,
    interrupt: &AtomicBool,
) -> Driven {
    let told = source.told();
    let Sent { mut totals, lost, uncounted } = source.finish();
    let mut run = gathered.generated_by(told).into_run(&totals);
    if let Some(profiled) = profiled {
        profiled.add_to(&mut run, &started.watch, interrupt);
    }
    started.first.count(&mut totals);
    Driven { run, totals, lost, uncounted }
}

/// What a trial showed; nothing where a generator was lost meanwhile: the steps stand without it.
fn unless_lost<T>(trial: Result<Option<T>, DriveError>) -> Result<Option<T>, SweepError> {
    match trial {
        Err(DriveError::Again(_) | DriveError::Over(_)) => Ok(None),
        other => Ok(other?),
    }
}

/// Samples where processor time goes at N*, or with the most users where there is none, if that is asked for.
fn why(
    gathered: &Gathered<'_>,
    plan: &SweepPlan,
    (driver, watch): (&mut impl Driver, &Watch),
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Option<Profiled>, SweepError> {
    let Some((tables, users)) = plan.profile.zip(gathered.users_of_verdict()) else { return Ok(None) };
    let at = AtSaturation { users, think: conclusion::think(&plan.load), watch, tables };
    profile_at(&at, driver, interrupt, stage)
}

/// Tests the verdict by slowing each tier, where that is asked for and may change what is said.
fn test(
    gathered: &Gathered<'_>,
    plan: &SweepPlan,
    (driver, watch): (&mut impl Driver, &Watch),
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Option<confirmation::Trial>, SweepError> {
    let Some(how) = plan.confirm else { return Ok(None) };
    let bottleneck = gathered.verdict().bottleneck;
    if !how.always && !confirmation::is_called_for(&bottleneck) {
        return Ok(None);
    }
    let swept = Swept {
        steps: gathered.steps(),
        bottleneck: &bottleneck,
        think: conclusion::think(&plan.load),
        users_max: plan.search.users.most(),
        tiers: &|| watch.tiers(),
        elsewhere: watch.tiers_elsewhere(),
        topology: watch.topology(),
    };
    confirm(driver, &swept, how, interrupt, stage)
}

/// The surroundings of each step.
pub(crate) struct Stage<'a> {
    /// Looks for the other ends of connections that were seen, before a step.
    follow: &'a dyn Fn(),
    /// Samples the servers, so that a sample lies at each border of a measurement.
    sample: &'a dyn Fn(),
    /// Starts or stops closer looks at the servers' threads, for replicates.
    look_closely: &'a dyn Fn(bool),
    /// The resources while these ticks were counted, or while this step was measured; `None` where they would have to be
    /// waited for.
    pub(crate) resources: &'a dyn Fn(Seen<'_>) -> Option<Vec<Resource>>,
    /// Mean think time, microseconds.
    pub(crate) think_us: f64,
    before_step: &'a mut dyn FnMut() -> Result<(), String>,
    pub(crate) listener: &'a mut dyn Listener,
}

impl Stage<'_> {
    /// Does what is to be done before a step. Whether it was done, and not interrupted.
    pub(crate) fn prepare(&mut self, interrupt: &AtomicBool) -> Result<bool, SweepError> {
        match (self.before_step)() {
            Ok(()) => Ok(true),
            // Cut short like the sweep itself, which keeps what was measured.
            Err(_) if interrupt.load(Ordering::Relaxed) => Ok(false),
            Err(why) => Err(SweepError::BeforeStep(why)),
        }
    }
}

/// The outcome of a search.
struct Searched {
    /// The complete steps, by ascending users.
    steps: Vec<MeasuredStep>,
    /// Whether the time was up before all users that were asked for were tried.
    out_of_time: bool,
}

impl Searched {
    /// How long was measured, the replicates included, microseconds.
    fn measured_us(&self) -> u64 {
        let ticks = self.steps.iter().flat_map(|step| &step.measured).flat_map(|measured| &measured.ticks);
        ticks.map(|tick| tick.length_us).sum()
    }
}

/// Carries out the search until it is finished or interrupted, or no load can be made any longer.
fn search(
    driver: &mut impl Driver,
    options: SearchOptions,
    interrupt: &AtomicBool,
    stage: &mut Stage<'_>,
) -> Result<Searched, SweepError> {
    let mut search = Search::new(options);
    while let Next::WarmUp { users, for_us } = search.next() {
        driver.set_users(users)?;
        match driver.collect(for_us, interrupt) {
            Ok(ticks) => search.add(&ticks),
            // The others begin again.
            Err(DriveError::Again(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    while !interrupt.load(Ordering::Relaxed) {
        let for_us = match search.next() {
            Next::Finished | Next::WarmUp { .. } => break,
            Next::Extend { for_us } => for_us,
            Next::Begin { users, for_us } => {
                if !stage.prepare(interrupt)? {
                    break;
                }
                (stage.follow)();
                (stage.look_closely)(search.is_replicating());
                let (purpose, time) = (Some(search.purpose()), Some(search.time(0)));
                stage.listener.on(&Event::StepBegun { users, purpose, time });
                driver.set_users(users)?;
                (stage.sample)();
                for_us
            }
        };
        let ticks = match following::collect(driver, for_us, interrupt, &search, stage) {
            Ok(ticks) => ticks,
            Err(DriveError::Again(_)) => {
                search.begin_again();
                continue;
            }
            Err(DriveError::Over(error)) => {
                search.begin_again();
                if search.steps().is_empty() {
                    return Err(SweepError::Lost(error));
                }
                break;
            }
            Err(error) => return Err(error.into()),
        };
        (stage.sample)();
        search.add(&ticks);
        let over = !matches!(search.next(), Next::Extend { .. });
        if let Some(step) = search.latest().filter(|_| over) {
            stage.listener.on(&Event::StepDone(Box::new(step.clone())));
            following::step_done(&search, step, stage);
        }
    }
    (stage.look_closely)(false);
    Ok(Searched { out_of_time: search.is_out_of_time(), steps: search.into_steps() })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use analysis::{
        run::GeneratorLoss,
        search::{UsersRange, saturation::saturation},
        ticks::Tick,
    };
    use load::Think;

    use super::*;

    /// A server that takes 10 ms for each request and serves four at a time, in virtual time: X(N) = min(N, 4) / 10 ms.
    #[derive(Default)]
    struct FourServers {
        users: u32,
        now_us: u64,
        asked: Vec<u32>,
        collected: usize,
        /// The collections at which one of several generators is lost, ascending.
        losses: Vec<usize>,
        /// The collection at which the last one is lost.
        over: Option<usize>,
    }

    impl Driver for FourServers {
        fn set_users(&mut self, users: u32) -> Result<(), DriveError> {
            self.users = users;
            self.asked.push(users);
            Ok(())
        }

        fn set_think(&mut self, _: Think) {}

        fn collect(&mut self, for_us: u64, interrupt: &AtomicBool) -> Result<Vec<Tick>, DriveError> {
            self.collected += 1;
            let lost = || FleetError::Lost { name: "web".into(), loss: GeneratorLoss::Malformed };
            if self.losses.contains(&self.collected) {
                return Err(DriveError::Again(lost()));
            }
            if self.over.is_some_and(|over| over <= self.collected) {
                return Err(DriveError::Over(lost()));
            }
            let per_slice = u64::from(self.users.min(4)) * 2;
            let response_ns = u64::from(self.users.max(4)) * 2_500_000;
            if self.asked.len() == 4 && self.now_us > 1_000_000_000 {
                interrupt.store(true, Ordering::Relaxed);
            }
            let ticks = (0..for_us / 20_000).map(|slice| Tick {
                start_us: self.now_us + slice * 20_000,
                length_us: 20_000,
                completed: per_slice,
                response_time_ns_sum: per_slice * response_ns,
                ..Tick::default()
            });
            let ticks = ticks.collect();
            self.now_us += for_us;
            Ok(ticks)
        }
    }

    /// How many events were heard.
    #[derive(Default)]
    struct Heard(usize);

    impl Listener for Heard {
        fn on(&mut self, _: &Event) {
            self.0 += 1;
        }
    }

    fn drive(driver: &mut FourServers, interrupt: &AtomicBool) -> (Vec<MeasuredStep>, usize, u32) {
        let (samples, mut heard, prepared) = (Cell::new(0), Heard::default(), Cell::new(0));
        let closely = std::cell::RefCell::new(Vec::new());
        let mut before_step = || {
            prepared.set(prepared.get() + 1);
            Ok(())
        };
        let mut stage = Stage {
            follow: &|| {},
            sample: &|| samples.set(samples.get() + 1),
            look_closely: &|on| closely.borrow_mut().push(on),
            resources: &|_| None,
            think_us: 0.0,
            before_step: &mut before_step,
            listener: &mut heard,
        };
        let options =
            SearchOptions { users: UsersRange::Range { lo: 1, hi: 64 }, ..SearchOptions::default() };
        let Searched { steps, out_of_time } = search(driver, options, interrupt, &mut stage).expect("steps");
        assert!(!out_of_time, "all that was asked for");
        assert!(samples.get() >= 2 * prepared.get() as usize, "a sample at each border");
        let measured = driver.asked.len() - 1;
        assert_eq!(prepared.get() as usize, measured, "every step is prepared once, the warm-up is not");
        let replicates = prepared.get() as usize - steps.len();
        let looked = closely.borrow().iter().filter(|on| **on).count();
        assert_eq!(
            (looked, closely.borrow().last()),
            (replicates, Some(&false)),
            "closer looks at replicates"
        );
        (steps, heard.0, prepared.get())
    }

    /// The steps of a sweep over 1, 2, 4 and 8 users.
    fn of_four_loads(driver: &mut FourServers) -> Result<Vec<MeasuredStep>, SweepError> {
        let (mut heard, mut before_step) = (Heard::default(), || Ok(()));
        let mut stage = Stage {
            follow: &|| {},
            sample: &|| {},
            look_closely: &|_| {},
            resources: &|_| None,
            think_us: 0.0,
            before_step: &mut before_step,
            listener: &mut heard,
        };
        let options = SearchOptions { users: UsersRange::List(vec![1, 2, 4, 8]), ..SearchOptions::default() };
        search(driver, options, &AtomicBool::new(false), &mut stage).map(|searched| searched.steps)
    }

    /// What was being measured when the last generator was lost is worth nothing, and the steps before it stand.
    #[test]
    fn the_steps_before_the_last_generator_is_lost_are_kept() {
        let measured = |over: usize| {
            let mut driver = FourServers { over: Some(over), ..FourServers::default() };
            let steps = of_four_loads(&mut driver)?;
            Ok::<_, SweepError>(steps.iter().map(|step| step.step.users).collect::<Vec<_>>())
        };
        for in_the_first_step in [1, 2, 3] {
            let error = measured(in_the_first_step).expect_err("nothing was measured");
            assert!(matches!(error, SweepError::Lost(FleetError::Lost { .. })), "{error}");
        }
        let found: Vec<_> = (4..40).map(|over| measured(over).expect("steps")).collect();
        assert!(found.is_sorted_by_key(Vec::len), "{found:?}");
        assert_eq!((found.first(), found.last()), (Some(&vec![1]), Some(&vec![1, 2, 4, 8])));
    }

    /// Whenever a generator is lost, what was being measured is measured again as if nothing had been.
    #[test]
    fn a_step_is_begun_again_where_a_generator_is_lost() {
        let measured = |losses: Vec<usize>| {
            let mut driver = FourServers { losses, ..FourServers::default() };
            let steps = of_four_loads(&mut driver).expect("steps");
            let counts = |step: &MeasuredStep| (step.step.users, step.measured.len(), step.step.completed);
            (steps.iter().map(counts).collect::<Vec<_>>(), driver.asked)
        };
        let (whole, _) = measured(Vec::new());
        assert_eq!(whole.iter().map(|(users, ..)| *users).collect::<Vec<_>>(), [1, 2, 4, 8]);
        // In the warm-up, at the beginning of a step, and when it was to go on.
        let (found, asked) = measured(vec![1, 3, 6]);
        assert_eq!(asked[..6], [1, 1, 1, 1, 2, 2], "the warm-up, then each step twice");
        let counts =
            |all: &[(u32, usize, u64)]| all.iter().map(|(users, n, _)| (*users, *n)).collect::<Vec<_>>();
        assert_eq!(counts(&found), counts(&whole), "nothing of what was lost is kept");
        assert_eq!(found[0].2, whole[0].2, "nor counted");
    }

    #[test]
    fn the_driver_carries_out_the_search_to_its_end() {
        let mut driver = FourServers::default();
        let (steps, heard, prepared) = drive(&mut driver, &AtomicBool::new(false));
        assert_eq!(driver.asked[..5], [1, 1, 2, 4, 8], "a warm-up, then the ladder");
        assert_eq!(driver.asked[driver.asked.len() - 3..], [8, 4, 1], "then back");
        let steps: Vec<_> = steps.iter().map(|measured| &measured.step).collect();
        let found = saturation(&steps, 0.0);
        assert_eq!((found.users, found.bounded), (Some(4), true));
        assert!((found.throughput_max_per_s - 400.0).abs() < 1.0, "{found:?}");
        assert_eq!(heard, 2 * prepared as usize, "each step is told when it begins and when it is done");
    }

    /// What is told of measurements, and of what they come to.
    #[derive(Default)]
    struct Follower {
        events: Vec<Event>,
    }

    impl Listener for Follower {
        fn on(&mut self, event: &Event) {
            self.events.push(event.clone());
        }

        fn follows_closely(&self) -> bool {
            true
        }
    }

    fn followed(driver: &mut FourServers, listener: &mut dyn Listener) -> Vec<MeasuredStep> {
        let mut stage = Stage {
            follow: &|| {},
            sample: &|| {},
            look_closely: &|_| {},
            resources: &|_| Some(Vec::new()),
            think_us: 0.0,
            before_step: &mut || Ok(()),
            listener,
        };
        let options =
            SearchOptions { users: UsersRange::Range { lo: 1, hi: 64 }, ..SearchOptions::default() };
        search(driver, options, &AtomicBool::new(false), &mut stage).expect("steps").steps
    }

    #[test]
    fn who_follows_closely_changes_nothing_that_is_measured() {
        let (mut plain, mut close) = (FourServers::default(), FourServers::default());
        let mut follower = Follower::default();
        let measured = followed(&mut plain, &mut Heard::default());
        assert_eq!(followed(&mut close, &mut follower), measured);
        assert_eq!((close.asked, close.now_us), (plain.asked, plain.now_us));
        assert!(close.collected > plain.collected, "in more parts");
    }

    #[test]
    fn who_follows_closely_is_told_how_each_measurement_comes_along() {
        let mut follower = Follower::default();
        let measured = followed(&mut FourServers::default(), &mut follower);
        let mut users_now = 0;
        let (mut told, mut settled_us) = (0, 0);
        for event in &follower.events {
            match event {
                Event::StepBegun { users, purpose, time } => {
                    assert!(purpose.is_some() && time.is_some_and(|time| time.left_us_max.is_some()));
                    (users_now, settled_us) = (*users, 0);
                }
                Event::UnderWay(now) => {
                    assert_eq!(now.settling.users, users_now);
                    assert!(now.settling.measured_us > settled_us, "it goes on");
                    (settled_us, told) = (now.settling.measured_us, told + 1);
                }
                Event::StepDone(step) => assert_eq!(step.users, users_now),
                Event::SoFar(found) => assert!(found.steps.iter().any(|step| step.users == users_now)),
                _ => {}
            }
        }
        let done = follower.events.iter().filter(|event| matches!(event, Event::StepDone(_))).count();
        assert!(told >= 2 * done, "{told} times in {done} measurements");
        let last = follower.events.iter().rev().find_map(|event| match event {
            Event::SoFar(found) => Some(found),
            _ => None,
        });
        let last = last.expect("what was found");
        assert_eq!(last.saturation.users, Some(4));
        assert_eq!(last.steps.len(), measured.len());
    }

    #[test]
    fn an_interrupted_search_keeps_what_was_measured() {
        let mut driver = FourServers { now_us: 1_000_000_001, ..FourServers::default() };
        let (steps, ..) = drive(&mut driver, &AtomicBool::new(false));
        assert_eq!(driver.asked, [1, 1, 2, 4]);
        assert_eq!(steps.len(), 3);
    }
}
