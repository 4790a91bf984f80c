//! Whether one explanation is probable enough to be relied on, and what would tell it from the next.

use crate::run::{Bottleneck, Doubt, Explanation, Identity, ResourceKind, TellApart};
use crate::thresholds::DECIDED;

/// Experiments that were made already, and need not be advised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    /// A pair of users at random moments.
    pub(crate) pair: bool,
    /// Each tier slowed.
    pub(crate) slowed: bool,
}

/// The doubt about a bottleneck that is named, or might be, and is not probable enough.
pub(crate) fn undecided(bottleneck: &Bottleneck, tried: Tried) -> Option<Doubt> {
    use ResourceKind::{None, Unknown};
    if bottleneck.kind == None || bottleneck.confidence >= DECIDED {
        return Option::None;
    }
    let said = (bottleneck.kind != Unknown).then(|| Explanation {
        kind: bottleneck.kind,
        identity: bottleneck.identity.clone(),
        at_a_time: bottleneck.at_a_time,
        probability: bottleneck.confidence,
        ..Explanation::default()
    });
    let mut all = said.into_iter().chain(bottleneck.alternatives.iter().cloned());
    let (best, next) = (all.next()?, all.next());
    let tell_apart = match tell_apart(&best, next.as_ref()) {
        TellApart::PairTest if tried.pair => TellApart::MoreOfOne,
        TellApart::Confirm if tried.slowed => TellApart::MoreOfOne,
        other => other,
    };
    Some(Doubt::Undecided { best, next, tell_apart })
}

/// The one measurement that would tell two explanations apart.
fn tell_apart(best: &Explanation, next: Option<&Explanation>) -> TellApart {
    use ResourceKind::{AcceptQueue, Lock, RateLimit, Upstream, WorkerPool};
    let either = |test: &dyn Fn(&Explanation) -> bool| test(best) || next.is_some_and(test);
    let waits = |of: &Explanation| matches!(of.kind, Lock | RateLimit | WorkerPool);
    let behind = |of: &Explanation| matches!(of.kind, AcceptQueue | Upstream);
    let others = |of: &Explanation| {
        matches!(of.identity, Some(Identity::Host { .. } | Identity::OtherProcesses { .. }))
    };
    let tier = |of: &Explanation| of.identity.as_ref().and_then(Identity::processes).cloned();
    match next {
        _ if either(&|of| matches!(of.identity, Some(Identity::DatabaseLocks(_)))) => {
            TellApart::WatchDatabase
        }
        _ if either(&behind) => TellApart::WatchTheTier,
        _ if either(&others) => TellApart::QuietHost,
        Some(next) if waits(best) && waits(next) => TellApart::PairTest,
        Some(next) if tier(best).zip(tier(next)).is_some_and(|(one, other)| one != other) => {
            TellApart::Confirm
        }
        Some(_) => TellApart::MoreOfOne,
        None => TellApart::Confirm,
    }
}
