//! What to distrust, as typed values made with the result.

use crate::conclude::{Context, Experiment, Observation, Observed};
use crate::laws::{little, lost_in_failures};
use crate::run::{Warning, WarningKind};
use crate::sample::ErrorCounts;
use crate::verdict::{Finding, Sweep, described_errors, sharing};
use crate::words::{about, cores, count, percent, users};

/// A generator this busy somewhere, or this near to its ceiling, adds waiting of its own to the response times.
const GENERATOR_BUSY: f64 = 0.80;

/// Less steal than this is the hypervisor's ordinary rounding.
const STEAL: f64 = 0.02;

/// An interval of N*'s throughput with a half-width above this share says little.
const WIDE: f64 = 0.05;

/// Everything there is to warn of, the gravest first.
pub(crate) fn warnings(
    steps: &[&Observed],
    sweep: &Sweep,
    finding: &Finding,
    context: &Context,
) -> Vec<Warning> {
    let mut all = Vec::new();
    all.extend(context.interrupted.then(interrupted));
    all.extend(stopped_answering(steps));
    all.extend(errors(steps));
    all.extend(not_bounded(sweep, context));
    all.extend(not_observed(sweep, context));
    all.extend(database(sweep));
    all.extend(generator_busy(sweep).or_else(|| near_ceiling(sweep, context)));
    all.extend(shared_cores(sweep, finding));
    all.extend(not_steady(steps));
    all.extend(idle_users(steps, context));
    all.extend(too_short(steps, sweep));
    all.extend(little_broken(steps, context));
    all.extend(steal(sweep));
    all.extend(listen_queue(sweep));
    all.extend(context.host_limits.iter().map(|text| warning(WarningKind::HostLimit, text.clone())));
    all.extend(context.debug_build.then(debug_build));
    all
}

fn warning(kind: WarningKind, text: String) -> Warning {
    Warning { kind, text }
}

fn interrupted() -> Warning {
    warning(
        WarningKind::Interrupted,
        "The run was interrupted: it covers only what was measured until then.".to_owned(),
    )
}

fn debug_build() -> Warning {
    warning(
        WarningKind::DebugBuild,
        "This nstar was built without optimisation, so its generator is slow: build with --release."
            .to_owned(),
    )
}

/// The first step at which the server fell silent: one that comes back is not the same server.
fn stopped_answering(steps: &[&Observed]) -> Option<Warning> {
    let (step, stall) = steps.iter().find_map(|step| step.estimate.stall.map(|stall| (step, stall)))?;
    Some(warning(
        WarningKind::StoppedAnswering,
        format!(
            "At {}, after {} completed requests, the server answered nothing for the last {:.1} s of the step: it died, \
             was stopped, or hangs.",
            users(step.users),
            count(stall.completed as f64),
            stall.length_us as f64 / 1e6
        ),
    ))
}

fn errors(steps: &[&Observed]) -> Option<Warning> {
    let mut all = ErrorCounts::new();
    for step in steps {
        for counts in [&step.estimate.errors, &step.estimate.unmeasured_errors] {
            for (kind, number) in counts {
                let sum = all.entry(*kind).or_default();
                *sum = sum.saturating_add(*number);
            }
        }
    }
    let failed = |step: &&&Observed| step.estimate.errors.values().any(|number| *number > 0);
    let first = steps.iter().find(failed).map_or_else(
        || "only outside the measured part of the steps".to_owned(),
        |step| format!("first at {}", users(step.users)),
    );
    let statuses = statuses(steps);
    let any = all.values().any(|number| *number > 0);
    any.then(|| {
        warning(
            WarningKind::Errors,
            format!(
                "Requests failed, {first}: {}{statuses}. Only completed requests count.",
                described_errors(&all)
            ),
        )
    })
}

/// The unexpected statuses, most frequent first, as an aside.
fn statuses(steps: &[&Observed]) -> String {
    let mut all = std::collections::BTreeMap::<u16, u64>::new();
    for (status, number) in steps.iter().flat_map(|step| &step.estimate.unexpected_statuses) {
        let sum = all.entry(*status).or_default();
        *sum = sum.saturating_add(*number);
    }
    let mut all: Vec<(u16, u64)> = all.into_iter().collect();
    all.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let parts: Vec<String> = all
        .iter()
        .take(3)
        .map(|(status, number)| format!("{status} {} times", count(*number as f64)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" (status {})", parts.join(", ")) }
}

fn not_bounded(sweep: &Sweep, context: &Context) -> Option<Warning> {
    let Experiment::Sweep { users_max } = context.experiment else { return None };
    let most = sweep.points().last()?.users;
    let last = users(most);
    let text = if most < users_max {
        format!(
            "The steps up to {last} do not show beyond doubt where throughput stops growing, so the maximum given \
             is a lower bound. Allow longer steps (--duration), and look for what else uses the machine."
        )
    } else {
        format!(
            "Throughput still grew at {last}, so the maximum given is a lower bound. Sweep to more users."
        )
    };
    (!sweep.bounded()).then(|| warning(WarningKind::NotBounded, text))
}

fn not_observed(sweep: &Sweep, context: &Context) -> Option<Warning> {
    let why = match &context.observation {
        Observation::NotPossible { why } => why.clone(),
        Observation::Watched if !sweep.observed() => "no process was found to serve the target".to_owned(),
        Observation::Watched => return None,
    };
    Some(warning(
        WarningKind::NotObserved,
        format!(
            "The server's processes could not be watched ({why}), so N* stands but nothing of the server can be named as its cause."
        ),
    ))
}

/// A database that was to be watched, and could not be, or seems to be another than the server's.
fn database(sweep: &Sweep) -> Option<Warning> {
    let database = sweep.database()?;
    let name = &database.name;
    let looks = || sweep.points().iter().filter_map(|point| point.resources.locks);
    let text = if let Some(trouble) = &database.trouble {
        format!("Not all is known of who waited for locks in the database {name}: {trouble}.")
    } else if looks().count() > 0 && looks().all(|seen| seen.at_work <= 0.0) {
        format!(
            "No session was ever seen at work in the database {name}: is it the one that the server uses?"
        )
    } else {
        return None;
    };
    Some(warning(WarningKind::NotObserved, text))
}

/// A generator that did not say it was busy, and yet made nearly all it can make.
fn near_ceiling(sweep: &Sweep, context: &Context) -> Option<Warning> {
    let ceiling_per_s = context.generator_ceiling_per_s.filter(|ceiling| *ceiling > 0.0)?;
    let at = sweep.points().iter().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))?;
    let share = at.throughput_per_s / ceiling_per_s;
    (share > GENERATOR_BUSY).then(|| {
        warning(
            WarningKind::GeneratorBusy,
            format!(
                "The throughput at {} users is {} of what this host's generator can do at most ({} requests/s of the \
                 cheapest kind): part of the response times is its own. Give it more processors, or another host.",
                at.users,
                percent(share),
                count(ceiling_per_s)
            ),
        )
    })
}

fn generator_busy(sweep: &Sweep) -> Option<Warning> {
    let busy = |point| sweep.generator_busy(point);
    let at = sweep.points().iter().max_by(|a, b| busy(a).total_cmp(&busy(b)))?;
    (busy(at) > GENERATOR_BUSY).then(|| {
        warning(
            WarningKind::GeneratorBusy,
            format!(
                "The load generator was busy {} at {}: part of the response times is its own. Give it more processors, or another host.",
                percent(busy(at)),
                users(at.users)
            ),
        )
    })
}

fn shared_cores(sweep: &Sweep, finding: &Finding) -> Option<Warning> {
    let (server, shares) = sharing(sweep)?;
    let at = match sweep.points() {
        [_] => String::new(),
        _ => format!("at {} ", users(sweep.star()?.users)),
    };
    let limit = finding.demand_us.filter(|us| *us > 0.0 && finding.kind == crate::run::ResourceKind::Cpu);
    let alone = limit.map_or_else(String::new, |demand_us| {
        format!(" Alone on them it would reach about {} req/s.", about(shares.available / demand_us * 1e6))
    });
    Some(warning(
        WarningKind::SharedCores,
        format!(
            "Generator and server shared processors: {at}the generator used {} and {server} with its tiers {} of {} cores.{alone}",
            cores(shares.generator),
            cores(shares.tiers),
            cores(shares.available)
        ),
    ))
}

fn not_steady(steps: &[&Observed]) -> Option<Warning> {
    let unsteady: Vec<String> =
        steps.iter().filter(|step| !step.estimate.steady).map(|step| step.users.to_string()).collect();
    (!unsteady.is_empty()).then(|| {
        warning(
            WarningKind::NotSteady,
            format!(
                "No steady state at {}: allow longer steps, or look for what changes meanwhile.",
                listed(&unsteady)
            ),
        )
    })
}

/// `8, 16 users`; `1 user`.
fn listed(numbers: &[String]) -> String {
    format!("{} {}", numbers.join(", "), if numbers == ["1"] { "user" } else { "users" })
}

/// With more users idle than this, a step measures fewer users than it says.
pub(super) const IDLE: f64 = 0.05;

fn idle_users(steps: &[&Observed], context: &Context) -> Option<Warning> {
    let idle = |step: &&Observed| step.idle_share(context.load.think_time_us);
    let worst = steps.iter().max_by(|a, b| idle(a).total_cmp(&idle(b)))?;
    (context.closed() && idle(worst) > IDLE).then(|| {
        warning(
            WarningKind::NotSteady,
            format!(
                "At {}, {} of them were idle on average: not yet connected, because the server accepts slowly, or \
                 backing off after errors. That step measures fewer users than it says.",
                users(worst.users),
                percent(idle(worst))
            ),
        )
    })
}

/// Steps without an interval, and a wide one at N*.
fn too_short(steps: &[&Observed], sweep: &Sweep) -> Option<Warning> {
    let without: Vec<String> = steps
        .iter()
        .filter(|step| step.estimate.throughput_ci_per_s.is_none())
        .map(|step| step.users.to_string())
        .collect();
    if !without.is_empty() {
        let text = format!("Too short for a 95 % interval at {}: allow longer steps.", listed(&without));
        return Some(warning(WarningKind::TooShort, text));
    }
    let star = sweep.star()?.users;
    let width = steps.iter().find(|step| step.users == star)?.estimate.throughput_relative_half_width()?;
    (width > WIDE).then(|| {
        warning(
            WarningKind::TooShort,
            format!(
                "The throughput at {} is known only to {} either way: allow longer steps.",
                users(star),
                percent(width)
            ),
        )
    })
}

fn little_broken(steps: &[&Observed], context: &Context) -> Option<Warning> {
    let worst = steps
        .iter()
        .filter(|step| checked_by_little(step, context))
        .map(|step| (step.users, little(step.users, &step.estimate, context.load.think_time_us)))
        .filter(|(_, little)| !little.holds())
        .max_by(|a, b| a.1.gap.abs().total_cmp(&b.1.gap.abs()))?;
    Some(warning(
        WarningKind::Little,
        format!(
            "Little's law, N = X (R + Z), is off by {} at {}, more than the intervals explain: do not rely on that step.",
            percent(worst.1.gap.abs()),
            users(worst.0)
        ),
    ))
}

/// Whether Little's law can be checked at this step: a closed loop in a steady state, and users that
/// spend their time in requests that complete.
pub(crate) fn checked_by_little(step: &Observed, context: &Context) -> bool {
    context.closed()
        && step.estimate.steady
        && !lost_in_failures(step.estimate.completed, &step.estimate.errors)
}

fn steal(sweep: &Sweep) -> Option<Warning> {
    let taken = |point: &&crate::verdict::Point| point.resources.host.steal();
    let at = sweep.points().iter().max_by(|a, b| taken(a).total_cmp(&taken(b)))?;
    (taken(&at) > STEAL).then(|| {
        warning(
            WarningKind::Steal,
            format!(
                "The hypervisor took {} of the processor time at {}; busy shares count against what was left.",
                percent(taken(&at)),
                users(at.users)
            ),
        )
    })
}

fn listen_queue(sweep: &Sweep) -> Option<Warning> {
    let overflows = |point: &&crate::verdict::Point| point.resources.listening.overflows_per_s;
    let at = sweep.points().iter().max_by(|a, b| overflows(a).total_cmp(&overflows(b)))?;
    let own = &at.resources.listening;
    let whose = match own.fullest {
        // The kernel counts for all servers of the host together.
        Some((port, waiting, backlog)) if own.full <= 0.0 => format!(
            "though never more than {} of {} places in the queue of port {port} were seen taken: it is another server's, \
             or was full for moments only",
            count(waiting as f64),
            count(backlog as f64)
        ),
        _ => "of which the smaller of net.core.somaxconn and the server's backlog is the limit".to_owned(),
    };
    (overflows(&at) >= 1.0).then(|| {
        let found = format!(
            "{} connections per second found a listen queue of this host full at {}, {whose}.",
            count(overflows(&at)),
            users(at.users)
        );
        warning(WarningKind::HostLimit, found)
    })
}
