//! The conclusion of a whole run: N*, the verdict, laws, models and warnings from the observed steps.

mod doubts;
pub mod mix;
mod models;
mod observed;
mod operational;
mod warnings;

pub use observed::{Context, Experiment, Observation, Observed};

use self::mix::{RequestCount, mix, not_as_asked};
use crate::estimate::Estimate;
use crate::laws::little_gap;
use crate::resources::{StepResources, lock_use, resources};
use crate::run::{
    Generator, Host, Laws, LoadShape, Locks, Models, Resource, ResponseTime, Run, SCHEMA, Step, Verdict,
    Warning,
};
use crate::search::growth::{Growth, growth};
use crate::search::saturation::{Saturation, saturation};
use crate::verdict::{
    Finding, Point, Shape, Sweep, bottleneck, bottleneck_of_load, generator_waited, locks_resource, next,
    uses,
};

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
        Experiment::Load => bottleneck_of_load(&sweep),
        Experiment::Sweep { .. } => bottleneck(&sweep),
    };
    let laws = operational::laws(&steps, &sweep, context);
    Conclusion {
        models: models::models(&estimates, &sweep, &laws, &saturation, context),
        warnings: warnings::warnings(&steps, &sweep, &finding, context),
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
    let mut all: Vec<Resource> = uses(sweep, point).iter().map(Resource::from).collect();
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
        inconclusive: Vec::new(),
        doubts: doubts::doubts(steps, at_star.copied(), finding, context),
        next: None,
        next_limit: next(sweep, finding),
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}
