//! What makes any finding doubtful: failed requests, and work of others on the processors that server or generator need.
//!
//! Where many requests fail, the throughput of the others is not the server's capacity.
//!
//! Work of others stops throughput early. What they use in proportion to the throughput (interrupts, children too
//! short-lived to be seen) belongs to the load. The rest interferes: what they used beyond the least per request of any
//! step, or what would be left of it at no throughput at all.

use super::curve::{Curve, group, set_busy};
use super::finding::{DIRECT, Finding};
use super::generator::starved;
use super::hops;
use super::host_limits;
use super::rate_limit;
use super::shared::{busiest_tier, shares_beside};
use super::waiting::hardly_starved;
use crate::resources::Group;
use crate::run::{Doubt, GeneratorEvidence, Identity, OutcomeEvidence as Seen, ResourceKind, Step, Victim};
use crate::thresholds::{DISTURBING, LOW, PROCESSORS_FULL};
use crate::ticks::{ErrorKind, failures, many_failed};

/// Doubts a finding where many requests failed at N*. Errors only beyond N* are how an overloaded server behaves; they do
/// not touch the verdict, unless nothing else shows that throughput stopped growing.
pub(super) fn requests_failed(curve: &Curve, finding: Finding) -> Finding {
    let Some(star) = curve.star() else { return finding };
    let finding = failed_beyond(curve, stopped_answering(curve, finding));
    let share = star.failed_share();
    // What a rate limit rejects is its evidence, and the others are what it lets through.
    let rejects = finding.kind == ResourceKind::RateLimit && rate_limit::rejected_mostly(star);
    if !many_failed(share) || curve.completed() == 0 || rejects {
        return finding;
    }
    let finding = if of_our_own(star) { out_of_local_resources(star) } else { finding };
    let finding = host_limits::reached(star).into_iter().fold(finding, Finding::seeing);
    let (users, errors) = (star.users, star.errors.clone());
    finding
        .less_sure()
        .seeing(Seen::RequestsFailed { share, users, errors: errors.clone() })
        .doubting(Doubt::RequestsFailed { share, users, errors })
}

/// A server that answers nothing at all beyond N* has died, or turns everybody away. Then throughput that no longer grew
/// says nothing about its resources.
fn stopped_answering(curve: &Curve, finding: Finding) -> Finding {
    let next = curve.steps().iter().find(|step| step.users > curve.star_users());
    let Some(next) = next.filter(|next| next.completed == 0) else { return finding };
    if curve.completed() == 0 || curve.plateau().count() > 1 {
        return finding;
    }
    finding.doubting(Doubt::StoppedAnsweringBeyond { users: next.users, errors: next.errors.clone() })
}

/// A wait is inferred from throughput that stops growing. Where requests fail at every step clearly beyond N*, by answers that do
/// not ask to come back, throughput may have stopped because of that: by a limit that rejects, or a collapse.
fn failed_beyond(curve: &Curve, finding: Finding) -> Finding {
    let inferred =
        matches!(finding.kind, ResourceKind::Lock | ResourceKind::WorkerPool) && !finding.is_direct;
    let mut beyond = curve.steps().iter().filter(|step| curve.is_clearly_beyond(step)).peekable();
    let Some(first) = beyond.peek().copied().filter(|_| inferred) else { return finding };
    if !beyond.all(|step| many_failed(step.failed_share()) && failed_by_status(step)) {
        return finding;
    }
    let (share, users, errors) = (first.failed_share(), first.users, first.errors.clone());
    finding.less_sure().doubting(Doubt::RequestsFailed { share, users, errors })
}

fn failed_by_status(step: &Step) -> bool {
    step.errors.get(&ErrorKind::Status).copied().unwrap_or(0) > failures(&step.errors) / 2
}

/// Whether most failures came from this host's own lack of descriptors or ports.
fn of_our_own(step: &Step) -> bool {
    let local = step.errors.get(&ErrorKind::LocalLimit).copied().unwrap_or(0);
    local > failures(&step.errors) / 2
}

fn out_of_local_resources(step: &Step) -> Finding {
    Finding::new(ResourceKind::Generator, DIRECT)
        .held_by(Identity::Generator)
        .seeing(GeneratorEvidence::GeneratorOutOfPorts { users: step.users })
}

/// Others that took no more of full processors than this share disturbed nothing.
const LITTLE_TAKEN: f64 = DISTURBING / 3.0;

/// A disturbed step that holds this share of the throughput of undisturbed steps lost nothing by it.
const UNHARMED: f64 = 1.0 - DISTURBING / 3.0;

/// The others on a set of processors, at one step.
struct Others {
    users: u32,
    throughput_per_s: f64,
    cores: f64,
    available: f64,
    crowded: bool,
}

/// Doubts a finding where others took part of the processors at N* and beyond.
pub(super) fn interference(curve: &Curve, mut finding: Finding) -> Finding {
    // What is not charged to a process looks like work of others.
    let named = matches!(finding.holder, Some(Identity::OtherProcesses { .. }))
        || finding.kind == ResourceKind::Softirq;
    if named || curve.completed() == 0 || waits_for_no_processor(curve, &finding) {
        return finding;
    }
    let tier = busiest_tier(curve);
    let of_tier = taken(curve, Victim::Server, |step| group(step, tier.as_ref()?));
    let waits = curve.mean(|step| Some(starved(curve, step))).is_some_and(|share| share >= DISTURBING);
    let of_generator =
        waits.then(|| taken(curve, Victim::Generator, |step| step.usage.generator())).flatten();
    if finding.kind == ResourceKind::Generator && of_generator.as_ref().is_some_and(Taken::disturbs) {
        // The generator has enough processors, but others use them.
        finding.doubts.retain(|doubt| *doubt != Doubt::GeneratorLimit);
    }
    let worst = [of_tier, of_generator].into_iter().flatten().max_by(|a, b| a.share().total_cmp(&b.share()));
    let Some(taken) = worst.filter(Taken::disturbs) else { return finding };
    // It comes first because it explains the other doubts, such as a generator kept waiting.
    finding.doubts.insert(0, taken.doubt());
    finding
}

/// Whether the finding is a wait for something else than a processor, which others cannot cause. A limit that is used
/// whole lets no more through, whoever has the processors.
fn waits_for_no_processor(curve: &Curve, finding: &Finding) -> bool {
    use ResourceKind::{AcceptQueue, ConnectionPool, Lock, RateLimit, Upstream, WorkerPool};
    if finding.about.iter().any(|resource| matches!(resource, Identity::IoLimit(_))) {
        return true;
    }
    matches!(finding.kind, AcceptQueue | ConnectionPool | Lock | RateLimit | Upstream | WorkerPool)
        && (hardly_starved(curve) || hops::waits_for_no_processor(curve))
}

/// Cores that others took, of those there were, on average over N* and the steps beyond.
struct Taken {
    victim: Victim,
    cores: f64,
    available: f64,
}

impl Taken {
    fn share(&self) -> f64 {
        self.cores / self.available
    }

    fn disturbs(&self) -> bool {
        self.share() >= DISTURBING
    }

    fn doubt(&self) -> Doubt {
        Doubt::Interference { victim: self.victim, cores: self.cores, available: self.available }
    }
}

fn taken<'a>(curve: &'a Curve, victim: Victim, of: impl Fn(&'a Step) -> Option<&'a Group>) -> Option<Taken> {
    let all: Vec<Others> = curve.steps().iter().filter_map(|step| others(step, of(step)?)).collect();
    let beyond: Vec<&Others> = all.iter().filter(|others| others.users >= curve.star_users()).collect();
    if beyond.is_empty() {
        return None;
    }
    let undisturbed = beyond.iter().filter(|step| !disturbed(step, &all)).map(|step| step.throughput_per_s);
    let undisturbed = undisturbed.fold(0.0, f64::max);
    let harmed = |step: &Others| undisturbed <= 0.0 || step.throughput_per_s < UNHARMED * undisturbed;
    let crowded = beyond.iter().filter(|step| step.crowded && harmed(step));
    let mean = |sum: f64| sum / beyond.len() as f64;
    Some(Taken {
        victim,
        cores: mean(crowded.map(|others| out_of_proportion(others, &all)).sum()),
        available: mean(beyond.iter().map(|others| others.available).sum()),
    })
}

fn others(step: &Step, group: &Group) -> Option<Others> {
    let shares = shares_beside(step, group)?;
    let usable = step.throughput_per_s > 0.0 && shares.available > 0.0 && shares.others.is_finite();
    usable.then(|| Others {
        users: step.users,
        throughput_per_s: step.throughput_per_s,
        cores: shares.others,
        available: shares.available,
        crowded: set_busy(step, group).is_some_and(|busy| busy >= PROCESSORS_FULL),
    })
}

/// Whether others took part of full processors at one step.
fn disturbed(step: &Others, all: &[Others]) -> bool {
    step.crowded && out_of_proportion(step, all) > LITTLE_TAKEN * step.available
}

/// Cores that others used at one step, beyond what is in proportion to the throughput.
fn out_of_proportion(now: &Others, all: &[Others]) -> f64 {
    let came = |then: &Others| now.cores - then.cores / then.throughput_per_s * now.throughput_per_s;
    let stayed = |then: &Others| {
        let slower = then.throughput_per_s <= LOW * now.throughput_per_s;
        let rise = now.throughput_per_s - then.throughput_per_s;
        slower.then(|| (then.cores * now.throughput_per_s - now.cores * then.throughput_per_s) / rise)
    };
    let came = all.iter().map(came).fold(0.0, f64::max);
    let stayed = all.iter().filter_map(stayed).fold(f64::INFINITY, f64::min);
    came.max(if stayed.is_finite() { stayed } else { 0.0 }).clamp(0.0, now.cores)
}
