//! The conclusion of a whole run: N*, the verdict, laws, models and warnings from its steps.

mod by_kind;
mod context;
mod from_disk;
mod laws;
pub mod mix;
mod stalls;
mod topology;
mod verdict;
mod warnings;

pub use context::{Context, OutOfSight, RunKind};

use self::mix::{RequestCount, mix, named, not_as_asked};
use crate::confirmation::confirm;
use crate::laws::little;
use crate::resources::LockUse;
use crate::run::{
    Confirmation, Generator, Host, Laws, LoadShape, Locks, Models, RequestDemand, Resource, Run, SCHEMA,
    ServerHost, Step, Topology, Verdict, Warning,
};
use crate::search::growth::{Growth, growth};
use crate::search::saturation::{Saturation, saturation};
use crate::tell_apart::Plan;
use crate::verdict::{
    Curve, Shape, Tried, bottleneck, bottleneck_of_load, generator_waited, is_told_by_pairs, locks_resource,
    to_tell_apart, undecided, uses,
};

/// Everything that the steps show together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conclusion {
    /// N* and what stops the server there.
    pub verdict: Verdict,
    /// The steps as the run file holds them, by ascending users.
    pub steps: Vec<Step>,
    /// Who talks to whom.
    pub topology: Option<Topology>,
    /// Operational laws.
    pub laws: Laws,
    /// Fitted models.
    pub models: Models,
    /// Reasons to distrust the run.
    pub warnings: Vec<Warning>,
    /// What slowing each tier said of the verdict, where that was tried.
    pub confirmation: Option<Confirmation>,
    /// An experiment that would tell the verdict from another, to be made, or gone on with, and added to the context.
    pub to_tell: Option<Plan>,
    /// What each kind of request costs, by its place in the scenario; empty where nothing is known of that.
    pub kinds: Vec<Vec<RequestDemand>>,
}

/// The parts of a run file that are not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Provenance {
    /// The server or scenario that was driven, without credentials.
    pub target: String,
    /// Where the generator ran.
    pub host: Host,
    /// The other hosts that were observed.
    pub server_hosts: Vec<ServerHost>,
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
    /// A digest of what was sent ([`Run::sent_digest`]).
    pub sent_digest: Option<String>,
    /// How long it took to look up the server's name ([`Run::name_lookup_us`]).
    pub name_lookup_us: Option<f64>,
    /// Counts of each kind of request.
    pub requests: Vec<RequestCount>,
}

impl Conclusion {
    /// The run file.
    pub fn into_run(mut self, provenance: Provenance) -> Run {
        let requests = by_kind::with_demands(mix(&provenance.requests), self.kinds);
        self.warnings.extend(not_as_asked(&requests));
        Run {
            schema: SCHEMA.to_owned(),
            target: provenance.target,
            host: provenance.host,
            server_hosts: provenance.server_hosts,
            started: provenance.started,
            elapsed_s: provenance.elapsed_s,
            version: provenance.version,
            seed: provenance.seed,
            load: provenance.load,
            sent_digest: provenance.sent_digest,
            name_lookup_us: provenance.name_lookup_us,
            requests,
            proof: None,
            confirmation: self.confirmation,
            profile: None,
            prepared: Vec::new(),
            verdict: self.verdict,
            steps: named(self.steps, &provenance.requests),
            topology: self.topology,
            laws: self.laws,
            models: self.models,
            warnings: self.warnings,
        }
    }
}

/// Concludes from steps in any order, one per number of users, whose resource usage is known where anything was watched.
/// Fills in what follows from all of them together: the gap of Little's law, resources, and how the generator fared.
pub fn conclude(mut steps: Vec<Step>, context: &Context) -> Conclusion {
    steps.sort_by_key(|step| step.users);
    steps.iter_mut().for_each(remove_non_finite);
    let (saturation, growth) = saturation_and_growth(&steps, context);
    let curve = Curve::new(steps, shape(&saturation, growth, context), context.database.clone())
        .with_rest(context.rest.clone())
        .with_experiment(context.told_apart.clone());
    let finding = match context.kind {
        RunKind::Load => bottleneck_of_load(&curve),
        RunKind::Sweep { .. } => bottleneck(&curve),
    };
    let laws = laws::laws(&curve, context);
    let models = laws::models(&curve, &laws, &saturation, context);
    let mut verdict = verdict::verdict(&curve, &finding, &saturation, context);
    let is_open = context.told_apart.is_none() || is_told_by_pairs(&verdict.bottleneck);
    let to_tell = to_tell_apart(&curve, &finding).filter(|_| is_open);
    let confirmation = context.slowed.as_ref().map(|trial| confirm(&mut verdict, trial));
    if context.kind != RunKind::Load {
        let slowed = confirmation.as_ref().is_some_and(|tested| !tested.tiers.is_empty());
        let tried = Tried { pair: context.told_apart.is_some(), slowed };
        verdict.doubts.extend(undecided(&verdict.bottleneck, tried));
    }
    Conclusion {
        topology: topology::topology(&curve, &laws, &verdict, context),
        models,
        warnings: warnings::warnings(&curve, &finding, context),
        confirmation,
        verdict,
        to_tell,
        kinds: by_kind::of_kinds(&curve, &saturation),
        steps: filled_in(curve, context),
        laws,
    }
}

/// Steps at the end that show whether throughput still grows.
const LAST: usize = 3;

fn saturation_and_growth(steps: &[Step], context: &Context) -> (Saturation, Growth) {
    let steps: Vec<&Step> = steps.iter().collect();
    let last = steps.get(steps.len().saturating_sub(LAST)..).unwrap_or_default();
    (saturation(&steps, context.load.think_time_us), growth(last))
}

fn shape(saturation: &Saturation, growth: Growth, context: &Context) -> Shape {
    Shape {
        users_at_saturation: saturation.users,
        bounded: saturation.bounded,
        growth,
        closed: context.load.is_closed(),
        throughput_max_per_s: saturation.throughput_max_per_s,
        throughput_max_ci_per_s: saturation.throughput_max_ci_per_s,
        generator_threads: context.load.threads,
        cold: context.cold,
    }
}

/// The steps with what follows from all of them together.
fn filled_in(curve: Curve, context: &Context) -> Vec<Step> {
    let found = |step: &Step| (with_locks(&curve, step), generator(&curve, step));
    let found: Vec<(Vec<Resource>, Generator)> = curve.steps().iter().map(found).collect();
    let mut steps = curve.into_steps();
    for (step, (resources, generator)) in steps.iter_mut().zip(found) {
        if context.load.is_closed() {
            step.little_gap = little(step, context.load.think_time_us).gap;
        }
        step.from_disk_share = from_disk::share(step);
        step.locks = step.usage.locks.as_ref().map(locks);
        (step.resources, step.generator) = (resources, generator);
    }
    steps
}

/// The resources of one step by falling utilisation, as far as they are known while a run goes on: from its usage alone, made
/// by a generator of so many threads.
pub fn resources_alone(step: Step, generator_threads: u32) -> Vec<Resource> {
    let shape = Shape { generator_threads, ..Shape::default() };
    let curve = Curve::new(vec![step], shape, None);
    curve.steps().iter().flat_map(|step| uses(&curve, step)).map(|seen| Resource::from(&seen)).collect()
}

/// The resources of a step, locks of a database among them in their place.
fn with_locks(curve: &Curve, step: &Step) -> Vec<Resource> {
    let mut all: Vec<Resource> = uses(curve, step).iter().map(Resource::from).collect();
    if let Some(locks) = locks_resource(curve, step) {
        let place = all.partition_point(|other| other.utilization >= locks.utilization);
        all.insert(place, locks);
    }
    all
}

fn locks(seen: &LockUse) -> Locks {
    Locks {
        waiting: seen.waiting,
        at_work: seen.at_work,
        contended: seen.contended,
        samples: seen.samples as u64,
    }
}

fn generator(curve: &Curve, step: &Step) -> Generator {
    let group = step.generator_here();
    let threads = curve.generator_threads(group);
    let stopped = group.and_then(|group| group.quota.as_ref()).map_or(0.0, |quota| quota.stopped_cores);
    Generator {
        useful_work: step.generator.useful_work.clamp(0.0, 1.0),
        run_queue_wait: generator_waited(curve, step),
        throttled: (stopped / threads).clamp(0.0, 1.0),
        ..step.generator
    }
}

/// Makes figures that are no number, or below zero, zero.
fn remove_non_finite(step: &mut Step) {
    let figures = [
        &mut step.throughput_per_s,
        &mut step.response_time_us.mean,
        &mut step.generator.useful_work,
        &mut step.generator.lag_us_p99,
    ];
    let of_kinds = step.requests.iter_mut();
    let of_kinds = of_kinds.flat_map(|of| [&mut of.throughput_per_s, &mut of.response_time_us.mean]);
    for figure in figures.into_iter().chain(of_kinds) {
        *figure = if figure.is_finite() { figure.max(0.0) } else { 0.0 };
    }
}
