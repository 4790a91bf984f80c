//! The whole run's conclusion: N*, the verdict, laws, models and warnings from the observed steps.

pub mod mix;
mod models;
mod operational;
mod warnings;

use crate::conclude::mix::{RequestCount, mix, not_as_asked};
use crate::conclude::warnings::{IDLE, checked_by_little, warnings};
use crate::counters::{Counters, DatabaseLook};
use crate::estimate::Estimate;
use crate::laws::{little, little_gap};
use crate::resources::{StepResources, lock_use, resources};
use crate::run::{
    Generator, Host, Laws, LoadShape, Locks, Models, Resource, ResponseTime, Run, SCHEMA, Step, Verdict,
    Warning,
};
use crate::search::consistency::jump;
use crate::search::growth::{Growth, growth};
use crate::search::saturation::{Saturation, saturation};
use crate::verdict::{
    Finding, Point, Shape, Sweep, WatchedDatabase, generator_waited, judge, judge_load, locks_resource, next,
};
use crate::words::{percent, users};

/// One step: how many users, what the generator measured, what the operating system counted meanwhile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Users of the closed loop, or the step's rank in an open loop.
    pub users: u32,
    /// What the ticks showed.
    pub estimate: Estimate,
    /// Looks within the step and around it, in order of time; may be empty.
    pub counters: Vec<Counters>,
    /// What the database told of itself meanwhile, where one was watched, in order of time.
    pub database: Vec<DatabaseLook>,
}

impl Observed {
    /// Share of the users that neither waited for a response nor thought: not yet connected, or backing off after an
    /// error. Thinking users less those that the think time accounts for, X Z (Little's law), 0 to 1.
    pub(crate) fn idle_share(&self, think_us: f64) -> f64 {
        let told = self.estimate.throughput_per_s * think_us / 1e6;
        let idle = (self.estimate.mean_thinking_users - told) / f64::from(self.users.max(1));
        if idle.is_finite() { idle.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// What a conclusion needs to know beside the measurements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// How the load was made.
    pub load: LoadShape,
    /// What was asked for.
    pub experiment: Experiment,
    /// Whether the server's processes could be watched.
    pub observation: Observation,
    /// The database that was asked during the run who waits for its locks.
    pub database: Option<WatchedDatabase>,
    /// Whether the run was cut short by a signal.
    pub interrupted: bool,
    /// Whether this nstar was built without optimisation.
    pub debug_build: bool,
    /// Limits of this host that were in the way, one sentence each.
    pub host_limits: Vec<String>,
    /// Requests per second that the generator's threads could make of the cheapest kind, if that was tested.
    pub generator_ceiling_per_s: Option<f64>,
}

impl Context {
    /// Whether a fixed number of users waits for responses.
    pub fn closed(&self) -> bool {
        self.load.rate_per_s.is_none()
    }
}

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Experiment {
    /// One load: whether throughput still grows with more users is not asked.
    #[default]
    Load,
    /// A sweep over users.
    Sweep {
        /// The most users it was allowed to try.
        users_max: u32,
    },
}

/// Whether the server's processes could be watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Observation {
    /// They are on this host, and what could be read of them is in the counters.
    #[default]
    Watched,
    /// They could not be: N* stands, but its cause stays unknown (unless it is the generator, or a link
    /// of this host).
    NotPossible {
        /// Such as `the target is on another host`.
        why: String,
    },
}

/// What the steps show together.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// N* and what stops the server there.
    pub verdict: Verdict,
    /// The steps as the run file holds them, by ascending users.
    pub steps: Vec<Step>,
    /// Operational laws.
    pub laws: Laws,
    /// Fitted models.
    pub models: Models,
    /// What to distrust.
    pub warnings: Vec<Warning>,
}

/// What a run file says about itself that is not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Provenance {
    /// What was driven, without credentials.
    pub target: String,
    /// Where the generator ran.
    pub host: Host,
    /// When the run began, RFC 3339, UTC.
    pub started: String,
    /// How long the whole run took, seconds.
    pub elapsed_s: f64,
    /// Version of nstar.
    pub version: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// How the load was made.
    pub load: LoadShape,
    /// What was counted of each kind of request.
    pub requests: Vec<RequestCount>,
}

impl Conclusion {
    /// The run file.
    pub fn into_run(mut self, provenance: Provenance) -> Run {
        let requests = mix(&provenance.requests);
        self.warnings.extend(not_as_asked(&requests));
        Run {
            schema: SCHEMA.to_owned(),
            target: provenance.target,
            host: provenance.host,
            started: provenance.started,
            elapsed_s: provenance.elapsed_s,
            version: provenance.version,
            seed: provenance.seed,
            load: provenance.load,
            requests,
            proof: None,
            verdict: self.verdict,
            steps: self.steps,
            laws: self.laws,
            models: self.models,
            warnings: self.warnings,
        }
    }
}

/// Concludes from steps in any order, one per number of users.
pub fn conclude(steps: &[Observed], context: &Context) -> Conclusion {
    let mut steps: Vec<&Observed> = steps.iter().collect();
    steps.sort_by_key(|step| step.users);
    let estimates: Vec<(u32, &Estimate)> = steps.iter().map(|step| (step.users, &step.estimate)).collect();
    let saturation = saturation(&estimates, context.load.think_time_us);
    let last = estimates.get(estimates.len().saturating_sub(LAST)..).unwrap_or_default();
    let shape = shape(&saturation, growth(last), context);
    let points = steps.iter().copied().map(point).collect();
    let sweep = Sweep::new(points, shape).beside(context.database.clone());
    let finding = match context.experiment {
        Experiment::Load => judge_load(&sweep),
        Experiment::Sweep { .. } => judge(&sweep),
    };
    let laws = operational::laws(&steps, &sweep, context);
    Conclusion {
        models: models::models(&estimates, &sweep, &laws, &saturation, context),
        warnings: warnings(&steps, &sweep, &finding, context),
        verdict: verdict(&steps, &sweep, &finding, saturation, context),
        steps: steps
            .iter()
            .zip(sweep.points())
            .map(|(step, point)| run_step(step, point, &sweep, context))
            .collect(),
        laws,
    }
}

/// Steps at the end that show whether throughput still grows.
const LAST: usize = 3;

fn shape(saturation: &Saturation, growth: Growth, context: &Context) -> Shape {
    Shape {
        users_at_saturation: saturation.users,
        bounded: saturation.bounded,
        growth,
        closed: context.closed(),
        generator_threads: context.load.threads,
    }
}

fn point(step: &Observed) -> Point {
    Point {
        users: step.users,
        throughput_per_s: finite(step.estimate.throughput_per_s),
        response_mean_us: finite(step.estimate.response_time_us.mean),
        completed: step.estimate.completed,
        errors: step.estimate.errors.clone(),
        useful_work: finite(step.estimate.useful_work),
        lag_us_p99: finite(step.estimate.lag_us_p99),
        resources: StepResources {
            locks: lock_use(&step.database, step.estimate.window),
            ..resources(&step.counters, step.estimate.window)
        },
    }
}

fn run_step(step: &Observed, point: &Point, sweep: &Sweep, context: &Context) -> Step {
    let estimate = &step.estimate;
    Step {
        users: step.users,
        elapsed_s: estimate.measured_us as f64 / 1e6,
        warmup_s: estimate.warmup_us as f64 / 1e6,
        completed: estimate.completed,
        throughput_per_s: estimate.throughput_per_s,
        throughput_ci_per_s: estimate.throughput_ci_per_s,
        response_time_us: estimate.response_time_us,
        errors: estimate.errors.clone(),
        errors_per_s: estimate.errors_per_s.clone(),
        steady: estimate.steady,
        little_gap: if context.closed() {
            little_gap(step.users, estimate, context.load.think_time_us)
        } else {
            0.0
        },
        received_bytes_per_s: estimate.received_bytes_per_s,
        sent_bytes_per_s: estimate.sent_bytes_per_s,
        resources: with_locks(sweep, point),
        locks: point.resources.locks.map(|seen| Locks {
            waiting: seen.waiting,
            at_work: seen.at_work,
            contended: seen.contended,
            looks: seen.looks as u64,
        }),
        generator: generator(point, sweep),
    }
}

/// The resources of a step, locks of a database among them in their place.
fn with_locks(sweep: &Sweep, point: &Point) -> Vec<Resource> {
    let mut all = sweep.resources(point);
    if let Some(locks) = locks_resource(sweep, point) {
        let place = all.partition_point(|other| other.utilization >= locks.utilization);
        all.insert(place, locks);
    }
    all
}

fn generator(point: &Point, sweep: &Sweep) -> Generator {
    let group = point.resources.generator();
    let threads = sweep.generator_threads(group);
    let stopped = group.and_then(|group| group.quota.as_ref()).map_or(0.0, |quota| quota.stopped_cores);
    Generator {
        useful_work: point.useful_work.clamp(0.0, 1.0),
        lag_us_p99: point.lag_us_p99,
        run_queue_wait: generator_waited(sweep, point),
        throttled: (stopped / threads).clamp(0.0, 1.0),
    }
}

fn verdict(
    steps: &[&Observed],
    sweep: &Sweep,
    finding: &Finding,
    saturation: Saturation,
    context: &Context,
) -> Verdict {
    let star = sweep.star().map_or(0, |point| point.users);
    let at_star = steps.iter().find(|step| step.users == star);
    Verdict {
        users_at_saturation: saturation.users,
        users_at_saturation_ci: saturation.users_ci,
        knee_users: saturation.knee_users,
        bounded: saturation.bounded,
        throughput_max_per_s: saturation.throughput_max_per_s,
        throughput_max_ci_per_s: saturation.throughput_max_ci_per_s,
        response_time_at_saturation_us: at_star
            .map_or_else(ResponseTime::default, |step| step.estimate.response_time_us),
        bottleneck: finding.bottleneck(),
        inconclusive: inconclusive(steps, at_star.copied(), finding, context),
        next: next(sweep, finding),
    }
}

/// Why the answer is not to be relied on. That the server could not be watched is no reason: N* and
/// the throughput stand without its cause, and the bottleneck says `unknown` itself.
fn inconclusive(
    steps: &[&Observed],
    at_star: Option<&Observed>,
    finding: &Finding,
    context: &Context,
) -> Vec<String> {
    let mut reasons = finding.inconclusive.clone();
    if context.experiment == Experiment::Load {
        // One load draws no verdict: warnings say what is to be said of the measurement.
        return reasons;
    }
    reasons.extend(at_star.filter(|step| step.estimate.stall.is_some()).map(|step| {
        format!("At {}, where the verdict is drawn, the server stopped answering.", users(step.users))
    }));
    reasons.extend(at_star.filter(|step| !step.estimate.steady && step.estimate.completed > 0).map(|step| {
        format!(
            "No steady state was reached at {}, where the verdict is drawn: allow longer steps.",
            users(step.users)
        )
    }));
    let estimates: Vec<(u32, &Estimate)> = steps.iter().map(|step| (step.users, &step.estimate)).collect();
    reasons.extend(jump(&estimates).filter(|_| context.closed()).map(|found| {
        format!(
            "Each of {} users got {:.1} times the throughput that each of {} users got, which more users cannot cause: the \
             machine or the server changed between these steps. Sweep again when nothing else uses the machine, or with \
             longer steps.",
            found.to_users, found.factor, found.from_users
        )
    }));
    reasons.extend(at_star.and_then(|step| broken_law(step, context)));
    let idle = |step: &&Observed| context.closed() && step.idle_share(context.load.think_time_us) > IDLE;
    reasons.extend(at_star.filter(idle).map(|step| {
        format!(
            "At {}, where the verdict is drawn, {} of them were idle: not yet connected, or backing off after errors.",
            users(step.users),
            percent(step.idle_share(context.load.think_time_us))
        )
    }));
    reasons
}

/// A gap of Little's law that no rounding explains: some of the users got no answer, or the figures are wrong.
const BROKEN: f64 = 0.10;

fn broken_law(step: &Observed, context: &Context) -> Option<String> {
    let little = little(step.users, &step.estimate, context.load.think_time_us);
    let broken = checked_by_little(step, context) && !little.holds() && little.gap.abs() > BROKEN;
    broken.then(|| {
        format!(
            "At {}, where the verdict is drawn, Little's law is off by {}: throughput times response time accounts for \
             fewer or more users than there were.",
            users(step.users),
            percent(little.gap.abs())
        )
    })
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}
