//! The verdict of a run: N* and the bottleneck, and why the answer is not to be relied on.

use super::{Context, RunKind};
use crate::laws::{idle_share, is_tested, worse_little};
use crate::run::{ConnectionEvidence, Doubt, Evidence, ResourceKind, Step, Verdict};
use crate::search::consistency::{Change, Dip, Jump, change, dip, is_awake, jump};
use crate::search::saturation::Saturation;
use crate::thresholds::{HELD_BACK, IDLE_USERS, PLATEAU};
use crate::verdict::{Curve, Finding, next};

/// A maximum that may be off by a third is none that a cause can be found for.
const HARDLY_KNOWN: f64 = 1.0 / 3.0;

pub(super) fn verdict(
    curve: &Curve,
    finding: &Finding,
    saturation: &Saturation,
    context: &Context,
) -> Verdict {
    Verdict {
        users_at_saturation: saturation.users,
        users_at_saturation_ci: saturation.users_ci,
        knee_users: saturation.knee_users,
        bounded: saturation.bounded,
        throughput_max_per_s: saturation.throughput_max_per_s,
        throughput_max_ci_per_s: saturation.throughput_max_ci_per_s,
        response_time_at_saturation_us: curve.star().map(|step| step.response_time_us).unwrap_or_default(),
        bottleneck: finding.bottleneck(),
        inconclusive: Vec::new(),
        doubts: doubts(curve, finding, saturation, context),
        next: None,
        next_limit: next(curve, finding),
    }
}

/// The doubts of the finding, and those about the steps that it rests on. A server that could not be watched is no
/// reason for doubt: N* and the throughput stand without their cause, and the bottleneck is `unknown`.
fn doubts(curve: &Curve, finding: &Finding, saturation: &Saturation, context: &Context) -> Vec<Doubt> {
    let mut doubts = finding.doubts.clone();
    doubts.iter_mut().for_each(|doubt| cut_short(doubt, context));
    if context.kind == RunKind::Load {
        // One load draws no verdict: warnings say what there is to say about the measurement.
        return doubts;
    }
    let star = curve.star();
    doubts.extend(ended_early(context));
    doubts.extend(star.and_then(stalled));
    doubts.extend(star.and_then(not_steady));
    doubts.extend(jumped(curve).filter(|_| context.load.is_closed()));
    doubts.extend(dipped(curve).filter(|_| context.load.is_closed()));
    doubts.extend(changed(curve));
    doubts.extend(star.and_then(|step| broken_law(step, context)).filter(|_| !tells_who_is_missing(finding)));
    // Whom a rate limit rejects waits before the next request, which the limit does not depend on.
    let rejected = finding.kind == ResourceKind::RateLimit;
    doubts.extend(star.and_then(|step| idle_users(step, context)).filter(|_| !rejected));
    if doubts.is_empty() {
        doubts.extend(hardly_known(saturation));
    }
    doubts
}

/// Says of throughput that never stopped growing that there was no time for more users, where that is so.
fn cut_short(doubt: &mut Doubt, context: &Context) {
    if let Doubt::NeverBounded { asked, .. } = doubt {
        *asked = context.asked_beyond_the_time();
    }
}

fn ended_early(context: &Context) -> Option<Doubt> {
    let (generator, _) = context.generators.iter().find(|(_, trouble)| trouble.ended_run())?;
    Some(Doubt::EndedEarly { generator: generator.clone() })
}

fn stalled(step: &Step) -> Option<Doubt> {
    step.measurement.stall.map(|_| Doubt::Stalled { users: step.users })
}

fn not_steady(step: &Step) -> Option<Doubt> {
    (!step.steady && step.completed > 0).then_some(Doubt::NotSteady { users: step.users })
}

fn jumped(curve: &Curve) -> Option<Doubt> {
    let Jump { from, to, factor } = jump(&curve.steps().iter().collect::<Vec<_>>())?;
    let held_back = held_back_instead(from, to);
    Some(Doubt::Jump { from_users: from.users, to_users: to.users, factor, held_back })
}

fn dipped(curve: &Curve) -> Option<Doubt> {
    let Dip { before, bottom, after } = dip(&curve.steps().iter().collect::<Vec<_>>())?;
    Some(Doubt::Dip {
        users: bottom.users,
        per_s: bottom.throughput_per_s,
        around_users: [before, after].map(|step| step.users),
        around_per_s: [before, after].map(|step| step.throughput_per_s),
        held_back: held_back_instead(bottom, after),
    })
}

/// The shares of the responses that were held back at a step of low throughput and at one of high throughput, if clearly more
/// were at the first: each takes some 40 ms longer, whatever the users.
fn held_back_instead(low: &Step, high: &Step) -> Option<[f64; 2]> {
    let shares = [low, high].map(|step| step.held_back.map_or(0.0, |seen| seen.share));
    (shares[0] - shares[1] >= HELD_BACK).then_some(shares)
}

/// Steps that ought to have the same throughput and differ widely. Where throughput still grew, that is the doubt.
fn hardly_known(saturation: &Saturation) -> Option<Doubt> {
    let [low, high] = saturation.throughput_max_ci_per_s;
    let half_width = (high - low) / 2.0 / saturation.throughput_max_per_s;
    (saturation.bounded && half_width > HARDLY_KNOWN).then_some(Doubt::MaximumUnknown { half_width })
}

fn changed(curve: &Curve) -> Option<Doubt> {
    let mut changes = curve.steps().iter().filter_map(change);
    let Change { users, before_per_s, after_per_s, course } =
        changes.find(|change| casts_doubt(curve, change))?;
    Some(Doubt::Changed { users, before_per_s, after_per_s, course })
}

/// Whether a change puts N* in doubt: at a step that ever had the maximum throughput, or where processors that fall asleep
/// between requests cannot explain it.
pub(super) fn casts_doubt(curve: &Curve, change: &Change) -> bool {
    let saturated = change.before_per_s.max(change.after_per_s) >= PLATEAU * curve.throughput_max();
    let awake = || curve.steps().iter().any(|step| step.users == change.users && is_awake(step));
    change.matters() && (saturated || awake())
}

fn broken_law(step: &Step, context: &Context) -> Option<Doubt> {
    let little = worse_little(step, context.load.think_time_us);
    let broken = is_tested(&context.load, step) && little.is_broken();
    broken.then_some(Doubt::Little { users: step.users, gap: little.gap.abs() })
}

/// Whether the finding says where the users are that the law misses: not let in yet.
fn tells_who_is_missing(finding: &Finding) -> bool {
    let outside =
        |seen: &Evidence| matches!(seen, Evidence::Connections(ConnectionEvidence::NotAdmitted { .. }));
    finding.kind == ResourceKind::AcceptQueue && finding.evidence.iter().any(outside)
}

fn idle_users(step: &Step, context: &Context) -> Option<Doubt> {
    let share = idle_share(step, context.load.think_time_us);
    let idle = context.load.is_closed() && share > IDLE_USERS;
    idle.then_some(Doubt::IdleUsers { users: step.users, share })
}
