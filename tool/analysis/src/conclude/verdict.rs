//! The verdict of a run: N* and the bottleneck, and why the answer is not to be relied on.

use super::{Context, RunKind};
use crate::laws::{idle_share, is_tested, worse_little};
use crate::run::{ConnectionEvidence, Doubt, Evidence, ResourceKind, Step, Verdict};
use crate::search::consistency::{Change, change, jump};
use crate::search::saturation::Saturation;
use crate::thresholds::{IDLE_USERS, PLATEAU};
use crate::verdict::{Curve, Finding, next};

pub(super) fn verdict(
    curve: &Curve,
    finding: &Finding,
    saturation: Saturation,
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
        doubts: doubts(curve, finding, context),
        next: None,
        next_limit: next(curve, finding),
    }
}

/// The doubts of the finding, and those about the steps that it rests on. A server that could not be watched is no
/// reason for doubt: N* and the throughput stand without their cause, and the bottleneck is `unknown`.
fn doubts(curve: &Curve, finding: &Finding, context: &Context) -> Vec<Doubt> {
    let mut doubts = finding.doubts.clone();
    if context.kind == RunKind::Load {
        // One load draws no verdict: warnings say what there is to say about the measurement.
        return doubts;
    }
    let star = curve.star();
    doubts.extend(star.and_then(stalled));
    doubts.extend(star.and_then(not_steady));
    doubts.extend(jumped(curve).filter(|_| context.load.is_closed()));
    doubts.extend(changed(curve));
    doubts.extend(star.and_then(|step| broken_law(step, context)).filter(|_| !tells_who_is_missing(finding)));
    // Whom a rate limit rejects waits before the next request, which the limit does not depend on.
    let rejected = finding.kind == ResourceKind::RateLimit;
    doubts.extend(star.and_then(|step| idle_users(step, context)).filter(|_| !rejected));
    doubts
}

fn stalled(step: &Step) -> Option<Doubt> {
    step.measurement.stall.map(|_| Doubt::Stalled { users: step.users })
}

fn not_steady(step: &Step) -> Option<Doubt> {
    (!step.steady && step.completed > 0).then_some(Doubt::NotSteady { users: step.users })
}

fn jumped(curve: &Curve) -> Option<Doubt> {
    let found = jump(&curve.steps().iter().collect::<Vec<_>>())?;
    Some(Doubt::Jump { from_users: found.from_users, to_users: found.to_users, factor: found.factor })
}

/// A change at saturation. With fewer users a server may be as fast as its processors are awake.
fn changed(curve: &Curve) -> Option<Doubt> {
    let mut changes = curve.steps().iter().filter_map(change);
    let Change { users, before_per_s, after_per_s, course } =
        changes.find(|change| change.matters() && saturated(curve, change))?;
    Some(Doubt::Changed { users, before_per_s, after_per_s, course })
}

/// Whether a step that changed ever had the maximum throughput: N* itself is in doubt then.
pub(super) fn saturated(curve: &Curve, change: &Change) -> bool {
    change.before_per_s.max(change.after_per_s) >= PLATEAU * curve.throughput_max()
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
