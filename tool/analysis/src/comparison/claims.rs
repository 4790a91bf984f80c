//! What a publication claims, and whether it is seen here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::seen::{self, Case, Open, PairCount, Seen, all_met, case};
use super::{Comparison, Entry, Workload};
use crate::run::{ResourceKind, Words, known};
use crate::statistics::t_95;
use crate::ticks::{failed_share, failures};

/// Figures that differ by less are the same for a claim: a practical threshold, as statistical ones say nothing of what
/// matters.
const SAME_WITHIN: f64 = 1.15;
/// With fewer rounds their scatter says nothing.
const ROUNDS_MIN: usize = 3;

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
    /// Requests are denied.
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
    /// The largest is at most 15 % above the smallest.
    Flat,
    /// The last is at least 15 % above the first.
    Grows,
    /// The first is at least 15 % above the last.
    Falls,
}

/// A quantity of a variant on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Completed requests per second.
    Throughput,
    /// Mean response time.
    ResponseTime,
    /// CPU time of the system per request.
    CpuTime,
    /// Body bytes received per second.
    Received,
}

/// Checks a claim on what was measured.
#[must_use]
pub fn checked(comparison: &Comparison, claim: &Claim) -> Claim {
    let cases = match &claim.requires {
        Requirement::Bottleneck { resource, holder } => {
            each(comparison, claim, |work, entry| seen::bottleneck(work, entry, *resource, holder.as_deref()))
        }
        Requirement::Saturates { users } => {
            each(comparison, claim, |work, entry| seen::saturation(work, entry, *users))
        }
        Requirement::Order { variants } => {
            works(comparison, claim).map(|work| in_order(work, variants)).collect()
        }
        Requirement::Trend { course, of, over_works } => trend(comparison, claim, *course, *of, *over_works),
        Requirement::Denied => each(comparison, claim, denied),
        Requirement::Proven => each(comparison, claim, proven),
        Requirement::Told { .. } => Vec::new(),
    };
    Claim { met: all_met(&cases), cases, ..claim.clone() }
}

/// The workloads that a claim is about and that were measured.
fn works<'a>(comparison: &'a Comparison, claim: &'a Claim) -> impl Iterator<Item = &'a Workload> {
    let named = |work: &&Workload| claim.works.is_empty() || claim.works.contains(&work.name);
    comparison.works.iter().filter(named)
}

/// A case for each workload and variant that the claim is about; what it names and was not measured stays open.
fn each(comparison: &Comparison, claim: &Claim, look: impl Fn(&Workload, &Entry) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for work in works(comparison, claim) {
        let named = |entry: &&Entry| claim.variants.is_empty() || claim.variants.contains(&entry.variant);
        cases.extend(work.entries.iter().filter(named).map(|entry| look(work, entry)));
        let is_missing = |name: &&String| !work.entries.iter().any(|entry| entry.variant == **name);
        cases
            .extend(claim.variants.iter().filter(is_missing).map(|name| open(work, name, Open::NotMeasured)));
    }
    let is_missing = |name: &&String| !comparison.works.iter().any(|work| work.name == **name);
    let missing = claim.works.iter().filter(is_missing);
    cases.extend(missing.map(|name| Case { work: name.clone(), ..Case::not_measured() }));
    cases
}

fn open(work: &Workload, variant: &str, why: Open) -> Case {
    case(work, variant, None, Seen::Open { why })
}

/// Every pair of different lists, the faster first.
fn in_order(work: &Workload, variants: &[Vec<String>]) -> Case {
    let pairs = variants.iter().enumerate().flat_map(|(index, faster)| {
        let slower = variants.iter().skip(index + 1).flatten();
        slower.flat_map(move |slower| faster.iter().map(move |faster| [faster.as_str(), slower.as_str()]))
    });
    let pairs = PairCount::of(work, pairs);
    case(work, "", pairs.met(), Seen::Order(pairs))
}

/// A figure with its interval, and the name of what was measured.
struct Figure {
    name: String,
    value: f64,
    ci: [f64; 2],
}

fn trend(comparison: &Comparison, claim: &Claim, course: Trend, of: Quantity, over_works: bool) -> Vec<Case> {
    let named = |entry: &&Entry| claim.variants.is_empty() || claim.variants.contains(&entry.variant);
    if !over_works {
        return works(comparison, claim)
            .map(|work| {
                let entries: Vec<&Entry> = work.entries.iter().filter(named).collect();
                let figures = entries.iter().map(|entry| figure(&entry.variant, entry, of)).collect();
                went(work, "", figures, course)
            })
            .collect();
    }
    let Some(first) = works(comparison, claim).next() else { return Vec::new() };
    let over = |variant: &Entry| {
        let of_work = |work: &Workload| {
            let entry = work.entries.iter().find(|entry| entry.variant == variant.variant)?;
            figure(&work.name, entry, of)
        };
        let case = went(first, &variant.variant, works(comparison, claim).map(of_work).collect(), course);
        Case { work: String::new(), ..case }
    };
    first.entries.iter().filter(named).map(over).collect()
}

/// The figure of an entry; `None` where it is not known or only a lower bound.
fn figure(name: &str, entry: &Entry, of: Quantity) -> Option<Figure> {
    let (value, ci) = match of {
        Quantity::Throughput => (entry.throughput_per_s, Some(entry.throughput_ci_per_s)),
        Quantity::ResponseTime => (entry.response_time_us.mean, None),
        Quantity::CpuTime => over_rounds(entry)?,
        Quantity::Received => (entry.received_bytes_per_s, None),
    };
    let bound = entry.lower_bound && matches!(of, Quantity::Throughput | Quantity::Received);
    let known = value > 0.0 && value.is_finite() && !bound;
    known.then(|| Figure { name: name.to_owned(), value, ci: ci.unwrap_or([value, value]) })
}

/// CPU time per request with the interval that its rounds give; without one where there are fewer than three.
fn over_rounds(entry: &Entry) -> Option<(f64, Option<[f64; 2]>)> {
    let rounds: Vec<f64> = entry.cpu_us_per_request_by_round.iter().copied().flatten().collect();
    let count = rounds.len() as f64;
    if rounds.len() < ROUNDS_MIN {
        return Some((entry.cpu_us_per_request?, None));
    }
    let mean = rounds.iter().sum::<f64>() / count;
    let variance = rounds.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half_width = t_95(count - 1.0) * (variance / count).sqrt();
    Some((mean, Some([(mean - half_width).max(0.0), mean + half_width])))
}

/// Holds the way that figures go against a course.
fn went(work: &Workload, variant: &str, figures: Option<Vec<Figure>>, course: Trend) -> Case {
    let figures = figures.unwrap_or_default();
    let by_value = |a: &&Figure, b: &&Figure| a.value.total_cmp(&b.value);
    let ends = match course {
        Trend::Flat => figures.iter().min_by(by_value).zip(figures.iter().max_by(by_value)),
        Trend::Grows | Trend::Falls => figures.first().zip(figures.last()),
    };
    let Some((from, to)) = ends.filter(|_| figures.len() > 1) else {
        return open(work, variant, Open::NotMeasured);
    };
    let ci = [to.ci[0] / from.ci[1], to.ci[1] / from.ci[0].max(f64::MIN_POSITIVE)];
    let ratio = to.value / from.value;
    let met = match course {
        Trend::Flat => decided(ci[1] <= SAME_WITHIN, ci[0] > SAME_WITHIN),
        Trend::Grows => decided(ratio >= SAME_WITHIN && ci[0] > 1.0, ci[1] < SAME_WITHIN),
        Trend::Falls => decided(ratio <= 1.0 / SAME_WITHIN && ci[1] < 1.0, ci[0] > 1.0 / SAME_WITHIN),
    };
    let seen = Seen::Change { from: from.name.clone(), to: to.name.clone(), ratio, ci };
    case(work, variant, met, seen)
}

fn decided(met: bool, not_met: bool) -> Option<bool> {
    (met || not_met).then_some(met)
}

fn denied(work: &Workload, entry: &Entry) -> Case {
    let failed = failures(&entry.errors);
    let share = failed_share(entry.completed, failed);
    case(work, &entry.variant, Some(failed > 0), Seen::Denied { share })
}

fn proven(work: &Workload, entry: &Entry) -> Case {
    let failed = entry.proofs.iter().filter(|proof| !proof.holds).count() as u32;
    let made = entry.proofs.len() as u32;
    let met = (made > 0).then_some(failed == 0);
    case(work, &entry.variant, met, Seen::Proofs { made, failed })
}
