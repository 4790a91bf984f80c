//! What users wait for while nothing is busy: explanations that compete, each with a prior and a likelihood.
//!
//! By Bayes' rule an explanation is as probable as its prior times the likelihood of all that was measured, as a share of that
//! of all explanations. Measured are the number of requests served at a time, k = X_max R(1); throughput with fewer and
//! with more users than N*; and signs such as threads that wait at one futex. The priors are plain guesses of how often
//! users of a server wait for each, and stand together in [`Cause::prior`].

mod growth;
mod served;
mod signs;

use std::collections::BTreeMap;

use self::growth::Growth;
use self::served::Served;
use self::signs::Sign;
use super::curve::Curve;
use super::finding::{Finding, SUREST};
use super::hops;
use super::waiters;
use super::waiting::{self, ABOUT_ONE};
use crate::run::{
    Explanation, HopEvidence, Identity, Probability, Processes, ResourceKind, WaitingEvidence as Seen,
};
use crate::thresholds::{DECIDED, NAMED};

/// Requests at other tiers than the one at which they queue, or held back, are told of from this number on.
const ELSEWHERE: f64 = 0.1;

/// Pools of more workers are too many to count.
const WORKERS_MOST: f64 = 4096.0;

/// Sizes of pools that are less probable by this than the most probable one, by the number served at a time, are left out.
const UNLIKELY: f64 = 1e-4;

/// What users may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// Something that serves one request at a time: a lock, or a single worker.
    One,
    /// A pool of so many workers, or another limit on requests at a time.
    Pool(u32),
    /// As many connections to a tier behind, which are among the limits that a pool stands for.
    Connections(u32),
    /// Connections that are accepted slowly.
    AcceptQueue,
    /// A limit on requests per second that delays them.
    RateLimit,
    /// A tier behind the server that is not observed.
    Upstream,
    /// Something that is not among these.
    Else,
}

impl Cause {
    /// All but pools.
    const OTHERS: [Self; 5] = [Self::One, Self::AcceptQueue, Self::RateLimit, Self::Upstream, Self::Else];

    /// Of servers whose users wait while nothing is busy, the share for which this is why; of pools that of all sizes
    /// together. Their sizes are spread evenly over the logarithm.
    fn prior(self) -> f64 {
        match self {
            Self::One | Self::Pool(_) | Self::Connections(_) => 0.40,
            Self::Else => 0.10,
            Self::RateLimit => 0.06,
            Self::AcceptQueue | Self::Upstream => 0.02,
        }
    }

    /// The same, but for pools of many workers a round number of them: throughput over users hardly tells those apart.
    fn about(self) -> Self {
        match self {
            Self::Pool(workers) => {
                let step = 1 << workers.ilog2().saturating_sub(5);
                Self::Pool(workers / step * step)
            }
            _ => self,
        }
    }

    fn kind(self) -> ResourceKind {
        match self {
            Self::One => ResourceKind::Lock,
            Self::Pool(_) => ResourceKind::WorkerPool,
            Self::Connections(_) => ResourceKind::ConnectionPool,
            Self::AcceptQueue => ResourceKind::AcceptQueue,
            Self::RateLimit => ResourceKind::RateLimit,
            Self::Upstream => ResourceKind::Upstream,
            Self::Else => ResourceKind::Unknown,
        }
    }

    /// Whether it is inside the program at which requests queue.
    fn is_inside(self) -> bool {
        matches!(self, Self::One | Self::Pool(_) | Self::Connections(_) | Self::RateLimit)
    }

    fn at_a_time(self) -> Option<u32> {
        match self {
            Self::One => Some(1),
            Self::Pool(number) | Self::Connections(number) => Some(number),
            _ => None,
        }
    }
}

/// Explanations with their probabilities, most probable first; pools of every size as one.
pub(super) struct Weighed {
    served: Served,
    causes: Vec<(Cause, f64)>,
}

/// Weighs all explanations. `None` where users do not wait for nothing, or one user was not measured.
pub(super) fn weighed(curve: &Curve) -> Option<Weighed> {
    if !waiting::waits_for_nothing_busy(curve) {
        return None;
    }
    let served = Served::of(curve)?;
    // A wait for a disk that cannot be seen to be full looks like a wait for a lock.
    if ABOUT_ONE.contains(&served.at_a_time) && waiting::alone_at_the_disk(curve).is_some() {
        return None;
    }
    let causes = weigh(&served, &Growth::of(curve, &served), &signs::all(curve))?;
    Some(Weighed { served, causes: with_tiers_behind(curve, causes) })
}

/// The same where a pool may be one of connections to a tier behind, a lock a single such connection, and requests may be held up by
/// a tier that nobody observes.
fn with_tiers_behind(curve: &Curve, causes: Vec<(Cause, f64)>) -> Vec<(Cause, f64)> {
    let by_upstream = hops::by_upstream(curve);
    let mut shares: BTreeMap<Cause, f64> = BTreeMap::new();
    let mut add = |cause, share| *shares.entry(cause).or_default() += share;
    for (cause, share) in causes {
        let behind = if cause.is_inside() { share * by_upstream } else { 0.0 };
        add(Cause::Upstream, behind);
        let share = share - behind;
        let (number, by_connections) = match cause {
            Cause::Pool(number) => (number, hops::by_connections(curve, number)),
            Cause::One => (1, hops::by_single_connection(curve)),
            _ => (0, 0.0),
        };
        add(Cause::Connections(number), share * by_connections);
        add(cause, share * (1.0 - by_connections));
    }
    let mut causes: Vec<(Cause, f64)> = shares.into_iter().collect();
    causes.retain(|(_, share)| *share > 0.0);
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes
}

/// Every explanation with its probability, most probable first; pools of every size as one, named by the most probable size.
fn weigh(served: &Served, growth: &Growth, signs: &[Sign]) -> Option<Vec<(Cause, f64)>> {
    let mut by_growth: BTreeMap<Cause, f64> = BTreeMap::new();
    let mut weigh = |cause: Cause| {
        let of_growth = *by_growth.entry(cause.about()).or_insert_with_key(|about| growth.likelihood(*about));
        let of_signs: f64 = signs.iter().map(|sign| sign.ratio(cause)).product();
        (cause, cause.prior() * served.density(cause) * of_growth * of_signs)
    };
    let sizes: Vec<(Cause, f64)> = pools(served).into_iter().map(&mut weigh).collect();
    let all_sizes: f64 = sizes.iter().map(|(_, weight)| weight).sum();
    let size = sizes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut causes: Vec<(Cause, f64)> = Cause::OTHERS.map(&mut weigh).into_iter().collect();
    causes.extend(size.map(|(pool, _)| (pool, all_sizes)));
    let sum: f64 = causes.iter().map(|(_, weight)| weight).sum();
    causes.iter_mut().for_each(|(_, weight)| *weight /= sum);
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    (sum > 0.0 && sum.is_finite()).then_some(causes)
}

/// Pools of the sizes that may serve so many at a time.
fn pools(served: &Served) -> Vec<Cause> {
    let most = (served.at_a_time * 1.2).ceil().clamp(2.0, WORKERS_MOST) as u32;
    let all: Vec<Cause> = (2..=most).map(Cause::Pool).collect();
    let highest = all.iter().map(|pool| served.density(*pool)).fold(0.0, f64::max);
    all.into_iter().filter(|pool| served.density(*pool) > UNLIKELY * highest).collect()
}

/// Threads that sleep until a time: what shows that requests are delayed, or beside another cause one sign more.
fn seen_asleep(curve: &Curve, of: Option<&Processes>, cause: Cause) -> [Option<Seen>; 2] {
    let seen = of.and_then(|of| waiters::seen_asleep(curve, of));
    if cause == Cause::RateLimit { [seen, None] } else { [None, seen] }
}

/// Whether a tier has a single thread, which has nobody to share a lock with, and requests wait unread in front of it.
fn has_one_worker(curve: &Curve, of: &Processes) -> bool {
    curve.group(of).is_some_and(|group| group.threads == 1) && hops::waits_unread_at(curve, of)
}

impl Weighed {
    /// The most probable explanation as a finding, if it can be named.
    pub(super) fn finding(&self, curve: &Curve) -> Option<Finding> {
        let (cause, probability) = *self.causes.first()?;
        let probability = Probability::new(probability.min(SUREST));
        if matches!(cause, Cause::Upstream | Cause::Else) || probability < NAMED {
            return None;
        }
        let of = waiting::served_by(curve);
        let is_only_worker = cause == Cause::One && of.as_ref().is_some_and(|of| has_one_worker(curve, of));
        let kind = if is_only_worker { ResourceKind::WorkerPool } else { cause.kind() };
        let mut finding = Finding::new(kind, probability);
        finding.at_a_time = cause.at_a_time();
        let port = waiting::fullest_queue(curve).map(|queue| Identity::ListenQueue { port: queue.port });
        let finding = match (cause, port) {
            (Cause::AcceptQueue, Some(port)) => finding.held_by(port),
            _ => waiting::held_by(of.clone(), finding),
        };
        let alternatives = self.alternatives(finding.holder.as_ref(), &self.causes[1..]);
        let finding = alternatives.into_iter().fold(finding, Finding::or);
        let [delayed, asleep] = seen_asleep(curve, of.as_ref(), cause);
        let evidence = delayed.into_iter().chain(self.evidence(curve, cause));
        let finding = evidence.fold(finding, Finding::seeing);
        let finding = self.without_others(of.as_ref(), finding);
        let waiters = of.as_ref().and_then(|of| waiters::seen(curve, of));
        let threads = [waiters, asleep].into_iter().flatten();
        Some(hops::with_queue(curve, waiting::with_signs(curve, finding, threads)))
    }

    /// Adds which of the requests under way are not served where they queue.
    fn without_others(&self, of: Option<&Processes>, finding: Finding) -> Finding {
        let Served { elsewhere, held_back, at_a_time, .. } = self.served;
        let elsewhere = of.filter(|_| elsewhere >= ELSEWHERE).map(|of| {
            let of = of.clone();
            HopEvidence::ServedElsewhere { of, elsewhere, at_a_time }
        });
        let held_back = (held_back >= ELSEWHERE).then_some(Seen::HeldBack { held_back, at_a_time });
        let finding = elsewhere.into_iter().fold(finding, Finding::seeing);
        held_back.into_iter().fold(finding, Finding::seeing)
    }

    /// Adds the explanations that can be named to a finding that names none, where it is one of them.
    pub(super) fn undecided(&self, finding: Finding) -> Finding {
        let named: f64 =
            self.causes.iter().filter(|(cause, _)| *cause != Cause::Else).map(|(_, share)| share).sum();
        if Probability::new(named) < DECIDED {
            return finding;
        }
        self.alternatives(None, &self.causes).into_iter().fold(finding, Finding::or)
    }

    /// Explanations that can be named. What is inside a program is so whichever it is.
    fn alternatives(&self, holder: Option<&Identity>, causes: &[(Cause, f64)]) -> Vec<Explanation> {
        let named = causes.iter().filter(|(cause, _)| *cause != Cause::Else);
        named
            .map(|&(cause, share)| Explanation {
                kind: cause.kind(),
                identity: holder.filter(|_| cause.is_inside()).cloned(),
                at_a_time: cause.at_a_time(),
                probability: Probability::new(share),
                ..Explanation::default()
            })
            .collect()
    }

    /// How many are served at a time, and how throughput goes on beyond N*.
    fn evidence(&self, curve: &Curve, cause: Cause) -> Vec<Seen> {
        let about_one = ABOUT_ONE.contains(&self.served.at_a_time);
        let by_little = waiting::by_little(curve, self.served.in_all());
        let number = match (cause, waiting::fall(curve)) {
            (Cause::One, Some(fell)) => {
                return [fell].into_iter().chain(by_little.filter(|_| about_one)).collect();
            }
            (Cause::RateLimit | Cause::AcceptQueue, _) => {
                return waiting::tested_by(curve, None).into_iter().chain(by_little).collect();
            }
            (Cause::Pool(number) | Cause::Connections(number), _) => {
                Seen::SeveralServed { at_a_time: number.into() }
            }
            _ if about_one => Seen::OneServed,
            _ => Seen::OneServedBeside { at_a_time: self.served.at_a_time },
        };
        [number].into_iter().chain(waiting::tested_by(curve, cause.at_a_time())).chain(by_little).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities of a lock and of a pool, and its size, where so many are served at a time and nothing else is known.
    fn by_number(at_a_time: f64, error: f64) -> (f64, f64, u32) {
        let served = Served { at_a_time, elsewhere: 0.0, held_back: 0.0, error };
        let causes = weigh(&served, &Growth::default(), &[]).expect("something is probable");
        let total: f64 = causes.iter().map(|(_, share)| share).sum();
        assert!((total - 1.0).abs() < 1e-9, "{causes:?}");
        let share = |test: fn(&Cause) -> bool| {
            causes.iter().filter(|(cause, _)| test(cause)).map(|(_, share)| share).sum::<f64>()
        };
        let size = causes
            .iter()
            .find_map(|(cause, _)| if let Cause::Pool(size) = cause { Some(*size) } else { None });
        (
            share(|cause| *cause == Cause::One),
            share(|cause| matches!(cause, Cause::Pool(_))),
            size.unwrap_or(0),
        )
    }

    #[test]
    fn close_to_a_whole_number_is_a_pool_of_that_size() {
        for (at_a_time, size) in [(4.0, 4), (2.01, 2), (8.1, 8)] {
            let (_, pool, found) = by_number(at_a_time, 0.011);
            assert!((0.75..0.93).contains(&pool) && found == size, "{at_a_time}: {pool}, {found}");
        }
    }

    #[test]
    fn close_to_one_is_a_lock() {
        for at_a_time in [0.99, 1.02, 1.08] {
            let (lock, pool, _) = by_number(at_a_time, 0.011);
            assert!(lock > 0.65 && pool < 0.01, "{at_a_time}: {lock}, {pool}");
        }
    }

    #[test]
    fn between_whole_numbers_it_is_open() {
        for at_a_time in [2.25, 2.6, 3.5] {
            let (lock, pool, _) = by_number(at_a_time, 0.011);
            assert!(lock < 0.6 && pool < 0.6, "{at_a_time}: {lock}, {pool}");
        }
    }

    #[test]
    fn an_imprecise_number_names_no_pool_for_sure() {
        let (_, pool, _) = by_number(4.0, 0.2);
        assert!(pool < 0.75, "{pool}");
    }
}
