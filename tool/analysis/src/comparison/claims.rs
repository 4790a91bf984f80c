//! What a publication claims, and whether it is seen here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{Figure, Quantity, figure};
use super::seen::{self, Case, Open, PairCount, Seen, all_met, case};
use super::{Comparison, Entry, Workload};
use crate::run::{ResourceKind, Words, known};
use crate::ticks::{ErrorKind, failures};

/// Figures that differ by less are the same for a claim: a practical threshold, as statistical ones say nothing of what
/// matters.
const SAME_WITHIN: f64 = 1.15;
/// Failures by which a system turns requests away. A server that has no room resets connections, or says so.
const DENIALS: [ErrorKind; 3] = [ErrorKind::Refused, ErrorKind::Reset, ErrorKind::Unavailable];
/// Fewer denials than this share of the requests may be chance, such as a connection that the server closed as a request came.
const DENIED: f64 = 0.001;

/// Something that a publication claims.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// The claim, as the publication makes it.
    pub text: String,
    /// The workloads that it is about; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub works: Vec<String>,
    /// The variants that it is about; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// What must hold.
    #[serde(default, deserialize_with = "known::or_default")]
    pub requires: Requirement,
    /// Whether it does; absent where that stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// What was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
    /// The outcome in words.
    #[serde(default)]
    pub outcome: Words,
}

/// What must hold for a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Requirement {
    /// This is what stops the system.
    Bottleneck {
        /// The kind of resource.
        resource: ResourceKind,
        /// Other kinds that it may be as well: a server that reads from the disk what its memory does not hold waits for either.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        or: Vec<ResourceKind>,
        /// The name of the processes or the device that holds it; absent: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// Throughput stops growing within this range of users.
    Saturates {
        /// [fewest, most].
        users: [u32; 2],
    },
    /// The variants are in this order, the fastest first. Those in one list are in no order among themselves.
    Order {
        /// Lists of variants.
        variants: Vec<Vec<String>>,
    },
    /// A quantity goes this way, over variants or over workloads in their order.
    Trend {
        /// Where it goes.
        course: Trend,
        /// What goes there.
        of: Quantity,
        /// Whether it goes over workloads, for each variant; otherwise over variants, for each workload.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        over_works: bool,
    },
    /// Requests are denied: connections are refused or reset, or the server says that it is too busy.
    Denied,
    /// What the systems prove holds in every run.
    Proven,
    /// Something that only a newer version knows, in its words.
    Told {
        /// The outcome.
        text: String,
    },
}

impl Default for Requirement {
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

/// Where a quantity goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// The largest is certainly at most 15 % above the smallest.
    Flat,
    /// The last is certainly at least 15 % above the first.
    Grows,
    /// The first is certainly at least 15 % above the last.
    Falls,
}

/// Checks a claim on what was measured.
#[must_use]
pub fn checked(comparison: &Comparison, claim: &Claim) -> Claim {
    let mut cases = match &claim.requires {
        Requirement::Bottleneck { resource, or, holder } => {
            let kinds: Vec<ResourceKind> = [*resource].into_iter().chain(or.iter().copied()).collect();
            each(comparison, claim, |work, entry| seen::bottleneck(work, entry, &kinds, holder.as_deref()))
        }
        Requirement::Saturates { users } => {
            each(comparison, claim, |work, entry| seen::saturation_within(work, entry, *users))
        }
        Requirement::Order { variants } => {
            works(comparison, claim).flat_map(|work| in_order(work, variants)).collect()
        }
        Requirement::Trend { course, of, over_works: true } => over_works(comparison, claim, *course, *of),
        Requirement::Trend { course, of, over_works: false } => {
            works(comparison, claim).flat_map(|work| over_variants(work, claim, *course, *of)).collect()
        }
        Requirement::Denied => each(comparison, claim, denied),
        Requirement::Proven => each(comparison, claim, proven),
        Requirement::Told { .. } => Vec::new(),
    };
    let missing = missing_works(comparison, claim);
    cases.extend(missing.map(|name| Case { work: name.clone(), ..Case::not_measured() }));
    Claim { met: all_met(&cases), cases, ..claim.clone() }
}

/// The workloads that a claim is about and that were measured.
fn works<'a>(comparison: &'a Comparison, claim: &'a Claim) -> impl Iterator<Item = &'a Workload> {
    comparison.works.iter().filter(|work| is_about(&claim.works, &work.name))
}

fn missing_works<'a>(comparison: &'a Comparison, claim: &'a Claim) -> impl Iterator<Item = &'a String> {
    claim.works.iter().filter(|name| !comparison.works.iter().any(|work| work.name == **name))
}

/// The entries that a claim is about.
fn entries<'a>(work: &'a Workload, claim: &'a Claim) -> impl Iterator<Item = &'a Entry> {
    work.entries.iter().filter(|entry| is_about(&claim.variants, &entry.variant))
}

/// A case for each of these variants that was not measured on a workload.
fn missing_variants<'a>(
    work: &'a Workload,
    variants: impl Iterator<Item = &'a String> + 'a,
) -> impl Iterator<Item = Case> + 'a {
    let missing = variants.filter(|name| find(work, name).is_none());
    missing.map(|name| open(work, name, Open::NotMeasured))
}

fn is_about(names: &[String], name: &String) -> bool {
    names.is_empty() || names.contains(name)
}

fn find<'a>(work: &'a Workload, variant: &str) -> Option<&'a Entry> {
    work.entries.iter().find(|entry| entry.variant == variant)
}

/// A case for each workload and variant that the claim is about; what it names and was not measured stays open.
fn each(comparison: &Comparison, claim: &Claim, look: impl Fn(&Workload, &Entry) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for work in works(comparison, claim) {
        cases.extend(entries(work, claim).map(|entry| look(work, entry)));
        cases.extend(missing_variants(work, claim.variants.iter()));
    }
    cases
}

fn open(work: &Workload, variant: &str, why: Open) -> Case {
    case(work, variant, None, Seen::Open { why })
}

/// Every pair of different lists, the faster first, and what was not measured of them.
fn in_order(work: &Workload, variants: &[Vec<String>]) -> Vec<Case> {
    let pairs = variants.iter().enumerate().flat_map(|(index, faster)| {
        let slower = variants.iter().skip(index + 1).flatten();
        slower.flat_map(move |slower| faster.iter().map(move |faster| [faster.as_str(), slower.as_str()]))
    });
    let pairs = PairCount::of(work, pairs);
    let mut cases = vec![case(work, "", pairs.met(), Seen::Order(pairs))];
    cases.extend(missing_variants(work, variants.iter().flatten()));
    cases
}

/// One case, or one for each variant that was not measured.
fn over_variants(work: &Workload, claim: &Claim, course: Trend, of: Quantity) -> Vec<Case> {
    let missing: Vec<Case> = missing_variants(work, claim.variants.iter()).collect();
    if !missing.is_empty() {
        return missing;
    }
    let figures = entries(work, claim).map(|entry| figure(&entry.variant, work, entry, of)).collect();
    vec![went(work, "", figures, course)]
}

/// A case for each variant, unless workloads are missing, which are the ends of the trend.
fn over_works(comparison: &Comparison, claim: &Claim, course: Trend, of: Quantity) -> Vec<Case> {
    if missing_works(comparison, claim).next().is_some() {
        return Vec::new();
    }
    let mut variants: Vec<&str> = claim.variants.iter().map(String::as_str).collect();
    if variants.is_empty() {
        let first = works(comparison, claim).next();
        variants.extend(first.iter().flat_map(|work| &work.entries).map(|entry| entry.variant.as_str()));
    }
    let over = |variant: &str| {
        let of_work = |work: &Workload| {
            let entry = find(work, variant).ok_or(Open::NotMeasured)?;
            figure(&work.name, work, entry, of)
        };
        went(&Workload::default(), variant, works(comparison, claim).map(of_work).collect(), course)
    };
    variants.into_iter().map(over).collect()
}

/// Holds the way that figures go against a course.
fn went(work: &Workload, variant: &str, figures: Vec<Result<Figure, Open>>, course: Trend) -> Case {
    let figures: Vec<Figure> = match figures.into_iter().collect() {
        Ok(figures) => figures,
        Err(why) => return open(work, variant, why),
    };
    let by_value = |a: &&Figure, b: &&Figure| a.value.total_cmp(&b.value);
    let ends = match course {
        Trend::Flat => figures.iter().min_by(by_value).zip(figures.iter().max_by(by_value)),
        Trend::Grows | Trend::Falls => figures.first().zip(figures.last()),
    };
    let Some((from, to)) = ends.filter(|_| figures.len() > 1) else {
        return open(work, variant, Open::NotMeasured);
    };
    let ci = match course {
        Trend::Flat => spread(&figures),
        Trend::Grows | Trend::Falls => over(to.ci, from.ci),
    };
    let met = match course {
        Trend::Flat => decided(ci[1] <= SAME_WITHIN, ci[0] > SAME_WITHIN),
        Trend::Grows => decided(ci[0] >= SAME_WITHIN, ci[1] < SAME_WITHIN),
        Trend::Falls => decided(ci[1] <= 1.0 / SAME_WITHIN, ci[0] > 1.0 / SAME_WITHIN),
    };
    let ratio = to.value / from.value;
    let seen = Seen::Change { from: from.name.clone(), to: to.name.clone(), ratio, ci };
    case(work, variant, met, seen)
}

/// The interval of the largest figure over the smallest, whichever those truly are.
fn spread(figures: &[Figure]) -> [f64; 2] {
    let least = |end: usize| figures.iter().map(|figure| figure.ci[end]).fold(f64::INFINITY, f64::min);
    let most = |end: usize| figures.iter().map(|figure| figure.ci[end]).fold(0.0, f64::max);
    over([most(0), most(1)], [least(0), least(1)])
}

/// The interval of a ratio, from the ends of both intervals.
fn over(to: [f64; 2], from: [f64; 2]) -> [f64; 2] {
    [to[0] / from[1], to[1] / from[0].max(f64::MIN_POSITIVE)]
}

fn decided(met: bool, not_met: bool) -> Option<bool> {
    (met || not_met).then_some(met)
}

fn denied(work: &Workload, entry: &Entry) -> Case {
    let of_kind = DENIALS.iter().filter_map(|kind| entry.errors.get(kind));
    let denied = of_kind.fold(0_u64, |sum, count| sum.saturating_add(*count));
    if entry.completed == 0 && denied == 0 {
        return open(work, &entry.variant, Open::NotMeasured);
    }
    let ended = entry.completed.saturating_add(failures(&entry.errors));
    let share = denied as f64 / ended as f64;
    case(work, &entry.variant, decided(share >= DENIED, denied == 0), Seen::Denied { share })
}

fn proven(work: &Workload, entry: &Entry) -> Case {
    let failed = entry.proofs.iter().filter(|proof| !proof.holds).count() as u32;
    let made = entry.proofs.len() as u32;
    let met = (made > 0).then_some(failed == 0);
    case(work, &entry.variant, met, Seen::Proofs { made, failed })
}
