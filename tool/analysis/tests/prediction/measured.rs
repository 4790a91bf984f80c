//! Run files of simulated servers, as a sweep would have left them.

use analysis::conclude::{Context, Provenance, conclude};
use analysis::prediction::{Change, Prediction, Question, predict};
use analysis::run::{
    Identity, LoadShape, Processes, Resource, ResourceKind, ResponseTime, Run, Step, Unit, Words,
};

use crate::simulated::{Seen, System};

/// A resource that the run shows: what a request costs of it, and how much of it there is.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) identity: Identity,
    pub(crate) demand_us: f64,
    pub(crate) capacity: f64,
    /// Bits per second of a link.
    pub(crate) bits_per_s: Option<f64>,
}

pub(crate) fn app() -> Processes {
    Processes { name: "app".into(), pid: Some(7), processes: 1, ..Processes::default() }
}

pub(crate) fn database() -> Processes {
    let role = analysis::counters::Role::Downstream;
    Processes { name: "db".into(), pid: Some(8), processes: 1, role, ..Processes::default() }
}

/// What stops a server.
#[derive(Debug, Clone)]
pub(crate) struct Stops {
    pub(crate) kind: ResourceKind,
    pub(crate) holder: Identity,
    pub(crate) at_a_time: Option<u32>,
}

fn step(seen: &Seen, shown: &[Shown]) -> Step {
    let rate = seen.throughput_per_s;
    let mean = seen.mean_us();
    Step {
        users: seen.users,
        elapsed_s: 2.0,
        completed: seen.response_us.len() as u64,
        throughput_per_s: rate,
        throughput_ci_per_s: Some([rate * 0.99, rate * 1.01]),
        response_time_us: ResponseTime {
            mean,
            mean_ci: Some([mean * 0.98, mean * 1.02]),
            p50: seen.quantile_us(0.5),
            p90: seen.quantile_us(0.9),
            p95: Some(seen.quantile_us(0.95)),
            p99: seen.quantile_us(0.99),
            p999: seen.quantile_us(0.999),
            max: seen.quantile_us(1.0),
            samples: seen.response_us.len() as u64,
            timed_out: 0,
        },
        steady: true,
        resources: shown.iter().map(|of| resource(of, rate)).collect(),
        ..Step::default()
    }
}

fn resource(of: &Shown, rate: f64) -> Resource {
    let busy = rate * of.demand_us / 1e6;
    let (used, capacity, unit) = match of.bits_per_s {
        Some(bits) => (busy * bits, bits, Unit::BitsPerSecond),
        None => (busy, of.capacity, Unit::Cores),
    };
    Resource {
        kind: of.identity.kind(),
        holder: Words::default(),
        identity: Some(of.identity.clone()),
        utilization: used / capacity,
        used,
        capacity,
        unit,
    }
}

/// Measures a system with these users.
pub(crate) fn sweep(system: &System, users: &[u32], shown: &[Shown], stops: &Stops) -> Run {
    let seen = users.iter().map(|&users| system.run(users, u64::from(users)));
    let steps: Vec<Step> = seen.map(|seen| step(&seen, shown)).collect();
    let load = LoadShape { threads: 1, think_time_us: system.think.mean_us(), ..LoadShape::default() };
    let provenance = Provenance { load, ..Provenance::default() };
    let mut run = conclude(Vec::new(), &Context::default()).into_run(provenance);
    let max = steps.iter().map(|step| step.throughput_per_s).fold(0.0, f64::max);
    let full = steps.iter().find(|step| step.throughput_per_s >= 0.95 * max).map(|step| step.users);
    run.verdict.users_at_saturation = full;
    run.verdict.bounded = true;
    run.verdict.doubts.clear();
    run.verdict.throughput_max_per_s = max;
    run.verdict.throughput_max_ci_per_s = [max * 0.99, max * 1.01];
    run.verdict.bottleneck.kind = stops.kind;
    run.verdict.bottleneck.identity = Some(stops.holder.clone());
    run.verdict.bottleneck.at_a_time = stops.at_a_time;
    run.steps = steps;
    run
}

/// What is predicted of a run with so many users.
pub(crate) fn predicted(run: &Run, changes: &[Change], users: u32) -> Prediction {
    let question = Question { changes: changes.to_vec(), users: Some(users), goal: None, seed: 1 };
    predict(run, &question, "1").expect("an answer")
}
