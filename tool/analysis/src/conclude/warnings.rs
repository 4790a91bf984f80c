//! What to distrust, as typed values made with the result.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::stalls::stalls;
use super::verdict::casts_doubt;
use super::{Context, OutOfSight, RunKind, from_disk};
use crate::laws::{idle_share, is_tested, worse_little};
use crate::resources::{HostUse, LeftOut, Replacement};
use crate::run::{
    Cause, GeneratorHost, ListenQueue, PERCENTILES, ResourceKind, ServerUnwatched, Step, Warning, errors,
};
use crate::search::consistency::{Change, change};
use crate::search::growth::Growth;
use crate::thresholds::{HELD_BACK, IDLE_USERS};
use crate::ticks::{add_errors, failures};
use crate::verdict::{Curve, Finding, host_limits_reached, sharing};

/// A generator this busy somewhere, or this near to its ceiling, adds waiting of its own to the response times.
const GENERATOR_BUSY: f64 = 0.80;

/// Less steal than this is the hypervisor's ordinary rounding.
const STEAL: f64 = 0.02;

/// An interval of N*'s throughput with a half-width above this share says little.
const WIDE: f64 = 0.05;

/// A step without a percentile beyond this one is nothing to warn of.
const TAIL: f64 = 0.99;

/// No more unexpected statuses than this are named.
const STATUSES: usize = 3;

/// Everything there is to warn of, the gravest first.
pub(super) fn warnings(curve: &Curve, finding: &Finding, context: &Context) -> Vec<Warning> {
    let steps = curve.steps();
    let broken = [context.interrupted.then_some(Cause::Interrupted), stalled(steps)];
    let replaced = context.replaced.iter().map(|one| replaced(steps, one));
    let unseen = [requests_failed(steps), not_bounded(curve, context), not_watched(curve, context)];
    let out_of_sight = context.out_of_sight.iter().flat_map(out_of_sight);
    let causes = [
        context.redirected.map(|status| Cause::Redirected { status }),
        addresses_left_out(steps),
        database(curve),
        curve.star().filter(|_| context.cold).and_then(from_disk::not_cold),
        generator_busy(curve)
            .or_else(|| near_ceiling(curve, context))
            .or_else(|| one_near_ceiling(curve, context)),
        shared_cores(curve, finding),
        not_steady(steps),
        idle_users(steps, context),
        held_back(steps),
        changed(curve, steps),
        stalls(curve, finding),
        too_short(curve),
        few_responses(curve),
        little_broken(steps, context),
        steal(curve),
        listen_queue(curve),
        host_limit(curve),
        context.fewer_users.map(Cause::FewerUsers),
        context.debug_build.then_some(Cause::DebugBuild),
    ];
    let agents = context.agents.iter().cloned();
    let agents = agents.map(|(host, trouble)| Cause::AgentTrouble { host, trouble });
    let generators = context.generators.iter().cloned();
    let generators = generators.map(|(generator, trouble)| Cause::GeneratorTrouble { generator, trouble });
    let first = broken.into_iter().flatten().chain(replaced);
    let second = unseen.into_iter().flatten().chain(out_of_sight).chain(causes.into_iter().flatten());
    first.chain(second).chain(generators).chain(agents).map(Warning::from).collect()
}

/// The step at which this is largest.
fn worst(curve: &Curve, read: impl Fn(&Step) -> f64) -> Option<(&Step, f64)> {
    let all = curve.steps().iter().map(|step| (step, read(step)));
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The first step at which the server stopped answering. One that answers again later is not the same server.
fn stalled(steps: &[Step]) -> Option<Cause> {
    let (step, stall) = steps.iter().find_map(|step| Some((step, step.measurement.stall?)))?;
    Some(Cause::Stalled {
        users: step.users,
        completed: stall.completed,
        stalled_s: stall.length_us as f64 / 1e6,
    })
}

/// A server, or a tier behind it, that ended and was started anew, with the step in which that was seen.
fn replaced(steps: &[Step], replacement: &Replacement) -> Cause {
    let Replacement { before, after, at_us, times } = replacement.clone();
    let end_us = |step: &&Step| step.measurement.window.1;
    let at = steps.iter().filter(|step| end_us(step) > at_us).min_by_key(end_us);
    Cause::ServerReplaced { before, after, users: at.map(|step| step.users), times }
}

fn requests_failed(steps: &[Step]) -> Option<Cause> {
    let mut errors = errors(steps);
    steps.iter().for_each(|step| add_errors(&mut errors, &step.measurement.unmeasured_errors));
    let first_users = steps.iter().find(|step| failures(&step.errors) > 0).map(|step| step.users);
    let any = failures(&errors) > 0;
    any.then(|| Cause::RequestsFailed { first_users, errors, statuses: statuses(steps) })
}

/// The unexpected statuses, most frequent first.
fn statuses(steps: &[Step]) -> Vec<(u16, u64)> {
    let mut counts = BTreeMap::<u16, u64>::new();
    for (status, number) in steps.iter().flat_map(|step| &step.measurement.unexpected_statuses) {
        let sum = counts.entry(*status).or_default();
        *sum = sum.saturating_add(*number);
    }
    let mut counts: Vec<(u16, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, number)| Reverse(*number));
    counts.truncate(STATUSES);
    counts
}

/// Throughput that was not seen to stop growing. A single step shows nothing of growth, which the verdict says.
fn not_bounded(curve: &Curve, context: &Context) -> Option<Cause> {
    let RunKind::Sweep { users_max } = context.kind else { return None };
    let [_, .., last] = curve.steps() else { return None };
    let users = last.users;
    let asked = context.asked_beyond_the_time().filter(|_| curve.growth() == Growth::Grows);
    let cause = match asked.is_none() && users < users_max {
        true => Cause::TooUneven { users },
        false => Cause::StillGrew { users, asked },
    };
    (!curve.bounded()).then_some(cause)
}

fn not_watched(curve: &Curve, context: &Context) -> Option<Cause> {
    let unseen = || (!curve.observed()).then_some(ServerUnwatched::NoProcess);
    let reason = context.unwatched.clone().or_else(unseen)?;
    Some(Cause::NotWatched { reason })
}

/// What one observer may not see: the first namespace of which less is told than of others, with how many more there are,
/// and tiers.
fn out_of_sight(seen: &OutOfSight) -> impl Iterator<Item = Cause> {
    let OutOfSight { on, sockets, tiers } = seen;
    let sockets = sockets.split_first().map(|(first, others)| Cause::SocketsUnread {
        on: on.clone(),
        reason: first.clone(),
        others: others.len() as u64,
    });
    let tiers =
        (!tiers.is_empty()).then(|| Cause::TiersNotWatched { on: on.clone(), addresses: tiers.clone() });
    sockets.into_iter().chain(tiers)
}

/// The step at which most addresses were left out of a look at the connections.
fn addresses_left_out(steps: &[Step]) -> Option<Cause> {
    let seen = steps.iter().filter_map(|step| Some((step.users, step.usage.hops.left_out.as_ref()?)));
    let (users, LeftOut { on, addresses, of }) = seen.max_by_key(|(_, seen)| seen.addresses)?;
    Some(Cause::AddressesLeftOut { on: on.clone(), users, addresses: *addresses, of: *of })
}

/// A database that could not be watched as asked, or that seems not to be the server's.
fn database(curve: &Curve) -> Option<Cause> {
    let watched = curve.database()?;
    let database = watched.name.clone();
    if let Some(reason) = watched.trouble.clone() {
        return Some(Cause::DatabaseTrouble { database, reason });
    }
    let mut samples = curve.steps().iter().filter_map(|step| step.usage.locks).peekable();
    let idle = samples.peek().is_some() && samples.all(|seen| seen.at_work <= 0.0);
    idle.then_some(Cause::DatabaseIdle { database })
}

/// A generator that was not busy by its own account, and yet made nearly all that it can make.
fn near_ceiling(curve: &Curve, context: &Context) -> Option<Cause> {
    let ceiling_per_s = context.generator_ceiling_per_s.filter(|ceiling| *ceiling > 0.0)?;
    let (at, share) = worst(curve, |step| step.throughput_per_s / ceiling_per_s)?;
    (share > GENERATOR_BUSY).then_some(Cause::NearCeiling { users: at.users, share, ceiling_per_s })
}

fn generator_busy(curve: &Curve) -> Option<Cause> {
    let (at, busy) = worst(curve, |step| curve.generator_busy(step))?;
    let users = at.users;
    let cause = match at.busiest_generator() {
        Some(one) => Cause::OneGeneratorBusy { generator: one.name.clone(), users, busy },
        None => Cause::GeneratorBusy { users, busy },
    };
    (busy > GENERATOR_BUSY).then_some(cause)
}

/// The same for one of several generators.
fn one_near_ceiling(curve: &Curve, context: &Context) -> Option<Cause> {
    let made = |step: &Step, host: &GeneratorHost| {
        let own = step.generators.iter().find(|one| one.name == host.name)?;
        let ceiling_per_s = host.ceiling_per_s.filter(|ceiling| *ceiling > 0.0)?;
        let share = own.completed as f64 / step.elapsed_s / ceiling_per_s;
        share.is_finite().then(|| (own.name.clone(), step.users, share, ceiling_per_s))
    };
    let all =
        curve.steps().iter().flat_map(|step| context.load.generators.iter().map(move |host| (step, host)));
    let most = all.filter_map(|(step, host)| made(step, host)).max_by(|a, b| a.2.total_cmp(&b.2))?;
    let (generator, users, share, ceiling_per_s) = most;
    let cause = Cause::OneGeneratorNearCeiling { generator, users, share, ceiling_per_s };
    (share > GENERATOR_BUSY).then_some(cause)
}

fn shared_cores(curve: &Curve, finding: &Finding) -> Option<Cause> {
    let (server, shares) = sharing(curve)?;
    let users = match curve.steps() {
        [_] => None,
        _ => Some(curve.star()?.users),
    };
    let limit = finding.demand_us.filter(|us| *us > 0.0 && finding.kind == ResourceKind::Cpu);
    let alone_per_s = limit.map(|demand_us| shares.available / demand_us * 1e6);
    Some(Cause::SharedCores { users, server, shares, alone_per_s })
}

fn not_steady(steps: &[Step]) -> Option<Cause> {
    let unsteady = steps.iter().filter(|step| !step.steady);
    let users: Vec<u32> = unsteady.map(|step| step.users).collect();
    (!users.is_empty()).then_some(Cause::NotSteady { users })
}

fn idle_users(steps: &[Step], context: &Context) -> Option<Cause> {
    let shares = steps.iter().map(|step| (step.users, idle_share(step, context.load.think_time_us)));
    let (users, share) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (context.load.is_closed() && share > IDLE_USERS).then_some(Cause::IdleUsers { users, share })
}

/// The step where the largest share of the responses was held back.
fn held_back(steps: &[Step]) -> Option<Cause> {
    let seen = steps.iter().filter_map(|step| Some((step, step.held_back?)));
    let (step, seen) = seen.max_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    (seen.share >= HELD_BACK).then_some(Cause::HeldBack {
        users: step.users,
        share: seen.share,
        pause_us: seen.mean_us,
        response_us: step.response_time_us.mean,
    })
}

/// The step that changed most, unless that is a doubt.
fn changed(curve: &Curve, steps: &[Step]) -> Option<Cause> {
    let doubted = |change: &Change| casts_doubt(curve, change);
    let changes = steps.iter().filter_map(change).filter(|change| !doubted(change));
    let most = changes.max_by(|a, b| a.share().total_cmp(&b.share()))?;
    Some(Cause::Changed { users: most.users, course: most.course })
}

/// Steps without an interval, or a wide one at N*.
fn too_short(curve: &Curve) -> Option<Cause> {
    let without = curve.steps().iter().filter(|step| step.throughput_ci_per_s.is_none());
    let users: Vec<u32> = without.map(|step| step.users).collect();
    if !users.is_empty() {
        return Some(Cause::NoInterval { users });
    }
    let star = curve.star()?;
    let half_width = star.throughput_relative_half_width()?;
    (half_width > WIDE).then_some(Cause::WideInterval { users: star.users, half_width })
}

fn few_responses(curve: &Curve) -> Option<Cause> {
    let star = curve.star()?;
    let time = &star.response_time_us;
    let unknown = PERCENTILES.iter().find(|percentile| !percentile.is_known(time))?;
    if unknown.share > TAIL {
        return None;
    }
    let (users, samples) = (star.users, time.samples);
    Some(Cause::FewResponses { users, samples, share: unknown.share, needed: unknown.samples_min() })
}

fn little_broken(steps: &[Step], context: &Context) -> Option<Cause> {
    let tested = steps.iter().filter(|step| is_tested(&context.load, step));
    let (users, little) = tested
        .map(|step| (step.users, worse_little(step, context.load.think_time_us)))
        .filter(|(_, little)| !little.holds())
        .max_by(|a, b| a.1.gap.abs().total_cmp(&b.1.gap.abs()))?;
    Some(Cause::Little { users, gap: little.gap.abs() })
}

fn steal(curve: &Curve) -> Option<Cause> {
    let (at, share) = worst(curve, |step| step.usage.hosts.iter().map(HostUse::steal).fold(0.0, f64::max))?;
    (share > STEAL).then_some(Cause::Steal { users: at.users, share })
}

/// The first of a host's limits that was reached, where it was first.
fn host_limit(curve: &Curve) -> Option<Cause> {
    let limit = curve.steps().iter().find_map(|step| host_limits_reached(step).into_iter().next())?;
    Some(Cause::LimitReached { limit })
}

fn listen_queue(curve: &Curve) -> Option<Cause> {
    let (at, overflows_per_s) = worst(curve, |step| step.usage.listening.overflows_per_s)?;
    let own = &at.usage.listening;
    // The kernel counts overflows for all servers of the host together.
    let fullest = own.fullest.filter(|_| own.full <= 0.0);
    let not_full = fullest.map(|(port, waiting, backlog)| ListenQueue { port, waiting, backlog });
    (overflows_per_s >= 1.0).then_some(Cause::ListenQueue { users: at.users, overflows_per_s, not_full })
}
