//! Gathers what `analysis` needs to conclude, from measured steps and samples.

use std::time::{Duration, Instant, SystemTime};

use analysis::{
    conclude::mix::RequestCount,
    conclude::{Context, Provenance, RunKind, conclude},
    confirmation,
    resources::Usage,
    run::{FewerUsers, LoadShape, LoopKind, Measurement, Run, ServerHost, Step, Verdict, verdict_step},
    tell_apart,
};
use load::{Pacing, Plan, RequestTotal, Think};

use crate::{database::DatabaseWatch, driver::Told, target::Watch};

/// Facts known before the run that belong in its report.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// The server or scenario driven, for people; without credentials.
    pub target: String,
    /// Processors the systems were confined to, if this program did so.
    pub system_cpus: Option<Vec<u32>>,
    /// Whether what is sent is meant to come from a disk.
    pub cold: bool,
    /// The limit on open files, where it allows fewer users than were asked for.
    pub fewer_users: Option<FewerUsers>,
}

/// When a run began, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct RunStart {
    wall: SystemTime,
    instant: Instant,
}

impl RunStart {
    /// Now.
    pub fn now() -> Self {
        RunStart { wall: SystemTime::now(), instant: Instant::now() }
    }

    /// The time of day, RFC 3339, UTC.
    pub fn rfc3339(&self) -> String {
        humantime::format_rfc3339_seconds(self.wall).to_string()
    }

    /// Seconds that passed since.
    pub fn elapsed_s(&self) -> f64 {
        self.instant.elapsed().as_secs_f64()
    }
}

/// The measurements, and how they ended.
pub(crate) struct Measured<'a> {
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// One load, or a sweep.
    pub(crate) kind: RunKind,
    /// The samples taken meanwhile.
    pub(crate) watch: &'a Watch,
    /// A time before the load that was watched, microseconds of the monotonic clock.
    pub(crate) rest: Option<(u64, u64)>,
    /// The database's lock samples, if one was watched.
    pub(crate) database: Option<&'a DatabaseWatch>,
    /// When it began.
    pub(crate) start: RunStart,
    /// Whether the time was up before all users that were asked for were tried.
    pub(crate) out_of_time: bool,
    /// Whether it was cut short.
    pub(crate) interrupted: bool,
    /// The generator's ceiling on this host, requests per second, if that was tested.
    pub(crate) generator_ceiling_per_s: Option<f64>,
    /// What is known of several generators, if there are several.
    pub(crate) generators: Told,
    /// The status of a redirect that answered the first request and that nobody asked for.
    pub(crate) redirected: Option<u16>,
    /// How long it took to look up the server's name, where that was done here.
    pub(crate) name_lookup: Option<Duration>,
}

/// Everything that a run is concluded from.
pub(crate) struct Gathered<'a> {
    plan: &'a Plan,
    circumstances: &'a Circumstances,
    start: RunStart,
    steps: Vec<Step>,
    context: Context,
    server_hosts: Vec<ServerHost>,
    name_lookup: Option<Duration>,
}

impl<'a> Gathered<'a> {
    /// Brings measurements and samples together.
    pub(crate) fn new(plan: &'a Plan, circumstances: &'a Circumstances, measured: Measured<'_>) -> Self {
        let watch = measured.watch;
        let mut steps = measured.steps;
        for step in &mut steps {
            let window = step.measurement.window;
            let database = measured.database.map_or_else(Vec::new, |database| database.within(window));
            step.usage = watch.usage(&step.measurement, &database);
            step.processor_speed = watch.processor_speed(window);
        }
        let context = Context {
            load: shape(plan, circumstances),
            kind: measured.kind,
            unwatched: watch.unwatched.clone(),
            out_of_sight: watch.out_of_sight(),
            replaced: watch.replaced(),
            agents: watch.agent_troubles(),
            rest: measured.rest.map(|rest| usage_at_rest(watch, rest)).unwrap_or_default(),
            database: measured.database.map(DatabaseWatch::watched),
            cold: circumstances.cold,
            out_of_time: measured.out_of_time,
            interrupted: measured.interrupted,
            debug_build: cfg!(debug_assertions),
            fewer_users: circumstances.fewer_users,
            generator_ceiling_per_s: measured.generator_ceiling_per_s,
            slowed: None,
            told_apart: None,
            redirected: measured.redirected,
            generators: Vec::new(),
        };
        let server_hosts = watch.elsewhere().machines();
        let (start, name_lookup) = (measured.start, measured.name_lookup);
        let gathered = Gathered { plan, circumstances, start, steps, context, server_hosts, name_lookup };
        gathered.generated_by(measured.generators)
    }

    /// The same with what is known by now of several generators.
    pub(crate) fn generated_by(mut self, told: Told) -> Self {
        if !told.hosts.is_empty() {
            self.context.load.threads =
                told.hosts.iter().map(|host| host.threads).fold(0, u32::saturating_add);
        }
        (self.context.load.generators, self.context.generators) = (told.hosts, told.troubles);
        self
    }

    /// The experiment that would tell the verdict from another, if there is one.
    pub(crate) fn to_tell(&self) -> Option<tell_apart::Plan> {
        conclude(self.steps.clone(), &self.context).to_tell
    }

    /// Whether the verdict is still between explanations that the experiment tells apart, with what it showed so far.
    pub(crate) fn is_open_after(&self, trial: &tell_apart::Trial) -> bool {
        let told = Context { told_apart: Some(trial.clone()), ..self.context.clone() };
        conclude(self.steps.clone(), &told).to_tell.is_some()
    }

    /// The same with what that experiment showed.
    pub(crate) fn told_apart(mut self, trial: Option<tell_apart::Trial>, interrupted: bool) -> Self {
        self.context.told_apart = trial;
        self.context.interrupted |= interrupted;
        self
    }

    /// The same with what slowing each tier showed.
    pub(crate) fn confirmed(mut self, trial: Option<confirmation::Trial>, interrupted: bool) -> Self {
        self.context.slowed = trial;
        self.context.interrupted |= interrupted;
        self
    }

    /// The verdict so far.
    pub(crate) fn verdict(&self) -> Verdict {
        conclude(self.steps.clone(), &self.context).verdict
    }

    /// The users of the step that the verdict so far is about.
    pub(crate) fn users_of_verdict(&self) -> Option<u32> {
        let saturated = self.verdict().users_at_saturation;
        verdict_step(&self.steps, saturated).map(|step| step.users)
    }

    /// The steps.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The run that all this makes, with the generator's totals of each kind of request.
    pub(crate) fn into_run(self, totals: &[RequestTotal]) -> Run {
        let load = self.context.load.clone();
        conclude(self.steps, &self.context).into_run(Provenance {
            target: self.circumstances.target.clone(),
            host: observe::host(),
            server_hosts: self.server_hosts,
            started: self.start.rfc3339(),
            elapsed_s: self.start.elapsed_s(),
            version: env!("CARGO_PKG_VERSION").into(),
            seed: self.plan.seed,
            load,
            sent_digest: Some(self.plan.digest()),
            name_lookup_us: self.name_lookup.map(|took| took.as_secs_f64() * 1e6),
            requests: totals.iter().map(request_count).collect(),
        })
    }
}

/// The use of every resource within a window in which nothing was measured.
fn usage_at_rest(watch: &Watch, window: (u64, u64)) -> Usage {
    watch.usage(&Measurement { window, ..Measurement::default() }, &[])
}

fn request_count(total: &RequestTotal) -> RequestCount {
    RequestCount {
        name: total.name.clone(),
        asked_share: total.asked_share,
        completed: total.completed,
        replaced: total.replaced,
    }
}

fn shape(plan: &Plan, circumstances: &Circumstances) -> LoadShape {
    let (loop_kind, rate_per_s) = match plan.pacing {
        Pacing::Closed { .. } => (LoopKind::Closed, None),
        Pacing::Open { rate_per_s, .. } => (LoopKind::Open, Some(rate_per_s)),
    };
    LoadShape {
        loop_kind,
        rate_per_s,
        think_time_us: mean_us(think(plan)),
        connections: plan.connections,
        threads: u32::try_from(plan.threads).unwrap_or(u32::MAX),
        generator_cpus: plan.cpus.as_deref().map(numbers),
        system_cpus: circumstances.system_cpus.clone(),
        generators: Vec::new(),
    }
}

/// The mean time that a user thinks between a response and its next request, microseconds.
pub(crate) fn mean_us(think: Think) -> f64 {
    match think {
        Think::None => 0.0,
        Think::Constant(mean) | Think::Exponential(mean) => mean.as_secs_f64() * 1e6,
    }
}

/// What users of a plan do between a response and the next request.
pub(crate) fn think(plan: &Plan) -> Think {
    match plan.pacing {
        Pacing::Open { .. } => Think::None,
        Pacing::Closed { think } => think,
    }
}

/// Processor numbers as the run file has them.
pub fn numbers(processors: &[usize]) -> Vec<u32> {
    processors.iter().filter_map(|number| u32::try_from(*number).ok()).collect()
}
