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

/// Whether it is open which of two explanations holds that users at random moments tell apart.
pub(crate) fn is_told_by_pairs(bottleneck: &Bottleneck) -> bool {
    let doubt = undecided(bottleneck, Tried::default());
    matches!(doubt, Some(Doubt::Undecided { tell_apart: TellApart::PairTest, .. }))
}

/// The one measurement that would tell two explanations apart.
fn tell_apart(best: &Explanation, next: Option<&Explanation>) -> TellApart {
    use ResourceKind::{AcceptQueue, Lock, RateLimit, Upstream, WorkerPool};
    let either = |test: &dyn Fn(&Explanation) -> bool| test(best) || next.is_some_and(test);
    let waits = |of: &Explanation| matches!(of.kind, AcceptQueue | Lock | RateLimit | WorkerPool);
    let is_any = |kind: ResourceKind| either(&move |of: &Explanation| of.kind == kind);
    // Users who meet wait at a listen queue as they do at whatever else lets one through at a time.
    let wait_alike = is_any(AcceptQueue) && !is_any(WorkerPool);
    let others = |of: &Explanation| {
        matches!(of.identity, Some(Identity::Host { .. } | Identity::OtherProcesses { .. }))
    };
    let tier = |of: &Explanation| of.identity.as_ref().and_then(Identity::processes).cloned();
    match next {
        _ if either(&|of| matches!(of.identity, Some(Identity::DatabaseLocks(_)))) => {
            TellApart::WatchDatabase
        }
        _ if is_any(Upstream) => TellApart::WatchTheTier,
        // It is named without a rival where the server is out of sight.
        None if best.kind == AcceptQueue => TellApart::WatchTheTier,
        _ if either(&others) => TellApart::QuietHost,
        Some(next) if waits(best) && waits(next) && wait_alike => TellApart::MoreOfOne,
        Some(next) if waits(best) && waits(next) => TellApart::PairTest,
        Some(next) if tier(best).zip(tier(next)).is_some_and(|(one, other)| one != other) => {
            TellApart::Confirm
        }
        Some(_) => TellApart::MoreOfOne,
        None => TellApart::Confirm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_behind_is_worth_watching_only_where_there_is_one() {
        use ResourceKind::{AcceptQueue, Lock, RateLimit, Upstream, WorkerPool};
        let of = |kind| Explanation { kind, ..Explanation::default() };
        let between = |one, other| {
            let found = tell_apart(&of(one), Some(&of(other)));
            assert_eq!(found, tell_apart(&of(other), Some(&of(one))), "in either order");
            found
        };
        assert_eq!(between(Lock, AcceptQueue), TellApart::MoreOfOne);
        assert_eq!(between(RateLimit, AcceptQueue), TellApart::MoreOfOne);
        assert_eq!(between(WorkerPool, AcceptQueue), TellApart::PairTest);
        assert_eq!(between(Lock, WorkerPool), TellApart::PairTest);
        assert_eq!(between(Lock, Upstream), TellApart::WatchTheTier);
        assert_eq!(tell_apart(&of(AcceptQueue), None), TellApart::WatchTheTier, "the server is out of sight");
    }
}
