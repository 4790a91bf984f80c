//! What was seen of a variant on a workload, held against something that was published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Entry, Limit, Workload};
use crate::run::{Doubt, Identity, ResourceKind, known};

/// An interval of N* whose upper end is more than so many times the lower one agrees with nothing in particular.
const WIDEST: u32 = 4;

/// One measurement held against what was published.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The workload, by name.
    pub work: String,
    /// The variant, by name; empty where several are taken together, or nothing is varied.
    pub variant: String,
    /// Whether what was published is seen here; absent where that stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// What was seen.
    #[serde(default, deserialize_with = "known::or_default")]
    pub seen: Seen,
}

impl Case {
    /// A case of which nothing was measured.
    pub(super) fn not_measured() -> Self {
        Self { seen: Seen::Open { why: Open::NotMeasured }, ..Self::default() }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Seen {
    /// What stopped the system, in each run that looked for it.
    Bottleneck {
        /// One for each run.
        limits: Vec<Limit>,
    },
    /// Where throughput stopped growing.
    Saturation {
        /// N*.
        users: u32,
        /// 95 % interval of it, [lo, hi].
        ci: [u32; 2],
    },
    /// The order of variants.
    Order(PairCount),
    /// How a quantity went from one measurement to another.
    Change {
        /// The measurement with the smallest figure, or the first.
        from: String,
        /// The measurement with the largest figure, or the last.
        to: String,
        /// The second figure over the first.
        ratio: f64,
        /// Interval of it.
        ci: [f64; 2],
    },
    /// Requests that were denied, as a share of all.
    Denied {
        /// 0 to 1.
        share: f64,
    },
    /// What the systems proved.
    Proofs {
        /// How many proofs were made.
        made: u32,
        /// How many of them failed.
        failed: u32,
    },
    /// Nothing that decides.
    Open {
        /// Why.
        why: Open,
    },
}

impl Default for Seen {
    fn default() -> Self {
        Self::Open { why: Open::default() }
    }
}

/// Why something stays open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// It was not measured, or no request completed.
    NotMeasured,
    /// There are reasons not to rely on what was measured.
    InDoubt,
    /// The load generator was the limit.
    GeneratorLimit,
    /// Throughput never stopped growing.
    NotSaturated,
    /// Nothing says what stopped it.
    CauseUnknown,
    /// A single number of users shows no bottleneck.
    NotSearched,
    /// The runs disagree.
    RunsDisagree,
    /// The quantity has no interval: there were fewer than three rounds.
    NoInterval,
    /// A reason that only a newer version knows.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Pairs of variants in a published order, held against those that are in order here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairCount {
    /// How many pairs there are.
    pub pairs: u32,
    /// How many are in the same order here.
    pub agree: u32,
    /// Pairs in the opposite order here: the one that is faster here, then the other.
    pub reversed: Vec<[String; 2]>,
}

impl PairCount {
    /// Counts pairs, each with the published faster one first.
    pub(super) fn of<'a>(work: &Workload, pairs: impl Iterator<Item = [&'a str; 2]>) -> Self {
        let mut count = PairCount::default();
        for [faster, slower] in pairs {
            count.count([faster, slower], is_ahead(work, faster, slower), is_ahead(work, slower, faster));
        }
        count
    }

    /// Counts one pair, the published faster one first: whether it is ahead here, or behind.
    pub(super) fn count(&mut self, [faster, slower]: [&str; 2], is_ahead: bool, is_behind: bool) {
        self.pairs += 1;
        match (is_ahead, is_behind) {
            (true, _) => self.agree += 1,
            (_, true) => self.reversed.push([slower.to_owned(), faster.to_owned()]),
            _ => {}
        }
    }

    /// How many pairs the intervals leave open.
    pub fn open(&self) -> u32 {
        self.pairs - self.agree - self.reversed.len() as u32
    }

    /// Whether the order is the published one; `None` where nothing contradicts it and something is open.
    pub(super) fn met(&self) -> Option<bool> {
        match (self.reversed.is_empty(), self.open()) {
            (false, _) => Some(false),
            (true, 0) => (self.pairs > 0).then_some(true),
            (true, _) => None,
        }
    }
}

/// Whether one variant is certainly ahead of another: the pair is in order itself, or the places of both do not overlap, as
/// all intervals of places hold at the same time. Nothing is certain of a figure in doubt.
fn is_ahead(work: &Workload, one: &str, other: &str) -> bool {
    let place = |name: &str| {
        let entry = work.entries.iter().find(|entry| entry.variant == name)?;
        entry.place.filter(|_| !is_in_doubt(work, entry))
    };
    let (Some([_, worst]), Some([best, _])) = (place(one), place(other)) else { return false };
    worst < best || work.in_order.iter().any(|pair| *pair == [one, other])
}

/// Whether there are reasons not to rely on the figures of an entry. Where the load asks for more than can be served,
/// failures are none.
pub(super) fn is_in_doubt(work: &Workload, entry: &Entry) -> bool {
    let wanted = |doubt: &Doubt| work.overload && matches!(doubt, Doubt::ManyFailed { .. });
    entry.doubts.iter().any(|doubt| !wanted(doubt) && !doubt.is_about_the_cause())
}

/// Holds what stopped a variant against kinds of bottleneck, of which any will do, and the name of its holder if one is given.
pub(super) fn bottleneck(
    work: &Workload,
    entry: &Entry,
    kinds: &[ResourceKind],
    holder: Option<&str>,
) -> Case {
    let limits = &entry.bottleneck;
    let fitting = limits.iter().filter(|limit| kinds.iter().any(|kind| fits(limit, *kind, holder))).count();
    let known = !entry.doubts.iter().any(Doubt::is_about_the_cause);
    let trusted = (known && !is_in_doubt(work, entry)) || kinds == [ResourceKind::Generator];
    let limited_by = |kind| limits.iter().any(|limit| limit.kind == kind);
    let open = match (limits.len(), fitting) {
        _ if entry.completed == 0 => Some(Open::NotMeasured),
        (0, _) => Some(Open::NotSearched),
        (all, fitting) if all == fitting => (!trusted).then_some(Open::InDoubt),
        _ if limited_by(ResourceKind::Generator) => Some(Open::GeneratorLimit),
        _ if limited_by(ResourceKind::None) => Some(Open::NotSaturated),
        _ if limited_by(ResourceKind::Unknown) => Some(Open::CauseUnknown),
        _ if !trusted => Some(Open::InDoubt),
        (_, 0) => None,
        _ => Some(Open::RunsDisagree),
    };
    let seen = match open {
        None => Seen::Bottleneck { limits: limits.clone() },
        Some(why) => Seen::Open { why },
    };
    case(work, &entry.variant, open.is_none().then_some(fitting > 0), seen)
}

/// One thread at the speed of a core is short of processor time as well.
fn fits(limit: &Limit, kind: ResourceKind, holder: Option<&str>) -> bool {
    let same = limit.kind == kind || (kind, limit.kind) == (ResourceKind::Cpu, ResourceKind::SingleThread);
    let name = limit.identity.as_ref().and_then(name_of);
    same && holder.is_none_or(|holder| name == Some(holder))
}

fn name_of(identity: &Identity) -> Option<&str> {
    match identity {
        Identity::Disk { name, .. } | Identity::Link { name, .. } => Some(name),
        other => other.processes().map(|processes| processes.name.as_str()),
    }
}

/// Holds where a variant saturates against a claimed range of users, [fewest, most]: met where our whole interval lies
/// within it, open where only a part does.
pub(super) fn saturation_within(work: &Workload, entry: &Entry, claimed: [u32; 2]) -> Case {
    saturation(work, entry, |ci| match ci {
        [lo, hi] if hi < claimed[0] || claimed[1] < lo => Some(false),
        [lo, hi] => (claimed[0] <= lo && hi <= claimed[1]).then_some(true),
    })
}

/// Holds where a variant saturates against a published number of users: met where our interval contains it, open where
/// the interval contains almost any number.
pub(super) fn saturation_at(work: &Workload, entry: &Entry, published: u32) -> Case {
    saturation(work, entry, |[lo, hi]| match (lo..=hi).contains(&published) {
        false => Some(false),
        true => (hi <= WIDEST.saturating_mul(lo)).then_some(true),
    })
}

fn saturation(work: &Workload, entry: &Entry, holds: impl Fn([u32; 2]) -> Option<bool>) -> Case {
    let open = match entry.users_ci {
        _ if entry.completed == 0 => Some(Open::NotMeasured),
        _ if entry.steps.is_empty() => Some(Open::NotSearched),
        _ if entry.generator_was_limit() => Some(Open::GeneratorLimit),
        None => Some(Open::NotSaturated),
        Some(_) if is_in_doubt(work, entry) => Some(Open::InDoubt),
        Some(_) if entry.lower_bound => Some(Open::NotSaturated),
        Some(_) => None,
    };
    let (Some(ci), Some(users), None) = (entry.users_ci, entry.users, open) else {
        return case(work, &entry.variant, None, Seen::Open { why: open.unwrap_or_default() });
    };
    let met = holds(ci);
    let agrees = |run: &Option<[u32; 2]>| run.and_then(&holds) == met;
    match met.is_some() && !entry.users_ci_by_run.iter().all(agrees) {
        true => case(work, &entry.variant, None, Seen::Open { why: Open::RunsDisagree }),
        false => case(work, &entry.variant, met, Seen::Saturation { users, ci }),
    }
}

pub(super) fn case(work: &Workload, variant: &str, met: Option<bool>, seen: Seen) -> Case {
    Case { work: work.name.clone(), variant: variant.to_owned(), met, seen }
}

/// Several cases taken together: met where all are, not met where one is not.
pub(super) fn all_met(cases: &[Case]) -> Option<bool> {
    if cases.iter().any(|case| case.met == Some(false)) {
        return Some(false);
    }
    (!cases.is_empty() && cases.iter().all(|case| case.met == Some(true))).then_some(true)
}
