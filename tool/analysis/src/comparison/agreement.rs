//! How far what was published agrees with what was measured: in order, in shape, in what stops the system, and in where it
//! saturates. Figures are never held against each other: the hardware differs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::figure;
use super::seen::{self, Case, PairCount, Seen, all_met, case};
use super::shape::{self, Course, Gap};
use super::{AtUsers, Comparison, Entry, Published, PublishedFigure, Workload};
use crate::run::ResourceKind;
use crate::statistics::mean::mean;

/// Published figures closer than this are no order: nothing is known of their scatter.
const ALIKE: f64 = 0.05;

/// One respect in which what was published and what was measured agree or do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AgreementFinding {
    /// The order of variants.
    Order {
        /// Whether it is the same; absent where that stays open.
        agrees: Option<bool>,
        /// The pairs.
        pairs: PairCount,
    },
    /// The order of this workload and others of the same publication, for one variant.
    Workloads {
        /// Whether it is the same; absent where that stays open.
        agrees: Option<bool>,
        /// The variant.
        variant: String,
        /// The pairs of workloads.
        pairs: PairCount,
    },
    /// The course of throughput.
    Shape {
        /// Whether it is the same; absent where that stays open.
        agrees: Option<bool>,
        /// The variant; empty where the variants are what the curve goes over, or nothing is varied.
        variant: String,
        /// The published course.
        published: Course,
        /// Ours.
        measured: Course,
        /// Where they are furthest apart.
        gap: Option<Gap>,
    },
    /// What stops the system.
    Bottleneck {
        /// Whether it is the same; absent where that stays open.
        agrees: Option<bool>,
        /// The published kind.
        published: ResourceKind,
        /// What was seen, by variant.
        cases: Vec<Case>,
    },
    /// Where throughput stops growing.
    Saturation {
        /// Whether the published number of users lies within our interval; absent where that stays open.
        agrees: Option<bool>,
        /// The published number of users.
        published: u32,
        /// What was seen, by variant.
        cases: Vec<Case>,
    },
    /// It has nothing that was measured here as well.
    Nothing,
    /// Words of a newer version.
    Told {
        /// The words.
        text: String,
    },
}

impl AgreementFinding {
    /// Whether both agree; `None` where that stays open.
    pub fn agrees(&self) -> Option<bool> {
        match self {
            Self::Order { agrees, .. }
            | Self::Workloads { agrees, .. }
            | Self::Shape { agrees, .. }
            | Self::Bottleneck { agrees, .. }
            | Self::Saturation { agrees, .. } => *agrees,
            Self::Nothing | Self::Told { .. } => None,
        }
    }
}

impl Default for AgreementFinding {
    /// Known by words alone.
    fn default() -> Self {
        Self::Told { text: String::new() }
    }
}

/// Holds a publication against what was measured: everything that both tell. Its workload is also held against those of
/// `all` publications that were measured together with it. Empty where it is of no workload measured.
pub fn agreement(comparison: &Comparison, published: &Published, all: &[Published]) -> Vec<AgreementFinding> {
    let work = comparison.works.iter().find(|work| comparison.is_of(published, work));
    let Some(work) = work else { return Vec::new() };
    let is_alike = |variant: &str| published.variant.as_ref().is_none_or(|alike| alike == variant);
    let entries: Vec<&Entry> = work.entries.iter().filter(|entry| is_alike(&entry.variant)).collect();
    let missing: Vec<&str> = comparison.missing_from(work).filter(|variant| is_alike(variant)).collect();
    let mut findings: Vec<AgreementFinding> = order(comparison, work, published).into_iter().collect();
    let others: Vec<(&Published, &Workload)> = measured_together(comparison, published, all).collect();
    findings.extend(published.figures.iter().filter_map(|one| workloads(work, published, one, &others)));
    findings.extend(shape_over_variants(work, published));
    findings.extend(entries.iter().filter_map(|entry| shape_over_users(work, entry, published)));
    findings.extend(published.bottleneck.map(|kind| {
        let cases = entries.iter().map(|entry| seen::bottleneck(work, entry, &[kind], None));
        let cases = with_missing(work, cases.collect(), &missing);
        AgreementFinding::Bottleneck { agrees: all_met(&cases), published: kind, cases }
    }));
    findings.extend(published.users_at_saturation.map(|users| {
        let cases = entries.iter().map(|entry| seen::saturation_at(work, entry, users));
        let cases = with_missing(work, cases.collect(), &missing);
        AgreementFinding::Saturation { agrees: all_met(&cases), published: users, cases }
    }));
    if findings.is_empty() {
        findings.push(AgreementFinding::Nothing);
    }
    findings
}

/// The cases, and one for each variant that was asked for and not measured.
fn with_missing(work: &Workload, mut cases: Vec<Case>, missing: &[&str]) -> Vec<Case> {
    let why = seen::Open::NotMeasured;
    cases.extend(missing.iter().map(|variant| case(work, variant, None, Seen::Open { why })));
    cases
}

/// The order of the variants that both have, by every pair whose published figures differ. Pairs with one that was asked for and
/// not measured stay open.
fn order(comparison: &Comparison, work: &Workload, published: &Published) -> Option<AgreementFinding> {
    let is_measured = |variant: &str| work.entries.iter().any(|entry| entry.variant == variant);
    let here =
        |variant: &str| is_measured(variant) || comparison.missing_from(work).any(|name| name == variant);
    let mut figures: Vec<_> = published.figures.iter().filter(|figure| here(&figure.variant)).collect();
    figures.sort_by(|a, b| b.value.total_cmp(&a.value));
    if published.smaller_is_better {
        figures.reverse();
    }
    let pairs = figures.iter().enumerate().flat_map(|(index, better)| {
        let worse = figures.iter().skip(index + 1);
        worse
            .filter(move |worse| are_apart(better.value, worse.value))
            .map(|worse| [better.variant.as_str(), worse.variant.as_str()])
    });
    let pairs = PairCount::of(work, pairs);
    (pairs.pairs > 0).then(|| AgreementFinding::Order { agrees: pairs.met(), pairs })
}

/// The other publications of the same quantity on the same hardware, each with the workload measured here that it is of.
fn measured_together<'a>(
    comparison: &'a Comparison,
    published: &'a Published,
    all: &'a [Published],
) -> impl Iterator<Item = (&'a Published, &'a Workload)> {
    let source = |of: &Published| (of.hardware.clone(), of.year, of.of, of.smaller_is_better);
    let like = all.iter().filter(move |other| source(other) == source(published));
    let other_work = like.filter(|other| other.work != published.work);
    other_work.filter_map(|other| {
        Some((other, comparison.works.iter().find(|work| comparison.is_of(other, work))?))
    })
}

/// Whether a workload has the published place among the others, for the variant of one figure.
fn workloads(
    work: &Workload,
    published: &Published,
    one: &PublishedFigure,
    others: &[(&Published, &Workload)],
) -> Option<AgreementFinding> {
    let of = published.of?;
    let measured = |work: &Workload| {
        let entry = work.entries.iter().find(|entry| entry.variant == one.variant)?;
        figure(&work.name, work, entry, of).ok()
    };
    let smaller_is_better = published.smaller_is_better;
    let is_ahead = |ahead: &Workload, behind: &Workload| {
        let (more, less) = if smaller_is_better { (behind, ahead) } else { (ahead, behind) };
        measured(more).zip(measured(less)).is_some_and(|(more, less)| more.ci[0] > less.ci[1])
    };
    let mut pairs = PairCount::default();
    for (other, other_work) in others {
        let Some(theirs) = other.figures.iter().find(|figure| figure.variant == one.variant) else {
            continue;
        };
        if !are_apart(one.value, theirs.value) {
            continue;
        }
        let this_first = (one.value > theirs.value) != smaller_is_better;
        let (ahead, behind) = if this_first { (work, *other_work) } else { (*other_work, work) };
        pairs.count([&ahead.name, &behind.name], is_ahead(ahead, behind), is_ahead(behind, ahead));
    }
    let variant = one.variant.clone();
    (pairs.pairs > 0).then(|| AgreementFinding::Workloads { agrees: pairs.met(), variant, pairs })
}

/// Whether two published figures differ.
fn are_apart(a: f64, b: f64) -> bool {
    (a - b).abs() > ALIKE * a.abs().max(b.abs())
}

/// The course over variants that are numbers, such as workers.
fn shape_over_variants(work: &Workload, published: &Published) -> Option<AgreementFinding> {
    let number = |variant: &str| variant.parse::<f64>().ok();
    let theirs: Option<Vec<(f64, f64)>> =
        published.figures.iter().map(|figure| Some((number(&figure.variant)?, figure.value))).collect();
    let entries = || work.entries.iter().filter(|entry| entry.completed > 0);
    let ours: Option<Vec<(f64, f64)>> =
        entries().map(|entry| Some((number(&entry.variant)?, entry.throughput_per_s))).collect();
    let trusted = entries().all(|entry| is_trusted(work, entry));
    let (theirs, ours) = (ascending(theirs?), ascending(ours?));
    let others: Vec<_> = without_each_round(&entries().collect::<Vec<_>>());
    (!published.smaller_is_better).then(|| shape_of("", &theirs, &ours, &others, trusted))?
}

/// The figures of variants that are numbers, with each round left out in turn: whether a course hangs on a single round.
fn without_each_round(entries: &[&Entry]) -> Vec<Vec<(f64, f64)>> {
    let rounds = entries.iter().map(|entry| entry.throughput_by_round_per_s.len()).max().unwrap_or(0);
    let without = |left_out: usize| -> Option<Vec<(f64, f64)>> {
        let point = |entry: &&Entry| {
            let kept =
                entry.throughput_by_round_per_s.iter().enumerate().filter(|(round, _)| *round != left_out);
            let logs: Vec<f64> = kept.filter_map(|(_, figure)| *figure).map(f64::ln).collect();
            let number = entry.variant.parse::<f64>().ok()?;
            (!logs.is_empty()).then(|| (number, mean(&logs).exp()))
        };
        entries.iter().map(point).collect::<Option<Vec<_>>>().map(ascending)
    };
    (0..rounds).filter_map(without).collect()
}

/// The course over users.
fn shape_over_users(work: &Workload, entry: &Entry, published: &Published) -> Option<AgreementFinding> {
    let theirs = ascending(shape::published_by_users(published));
    let of_run = |steps: &Vec<AtUsers>| ascending(shape::by_users(steps));
    let others: Vec<_> = entry.steps_by_run.iter().map(of_run).collect();
    shape_of(&entry.variant, &theirs, &of_run(&entry.steps), &others, is_trusted(work, entry))
}

/// Whether the throughput of an entry is that of the system.
fn is_trusted(work: &Workload, entry: &Entry) -> bool {
    !entry.lower_bound && !seen::is_in_doubt(work, entry)
}

/// Holds our curve against the published one. What stays open is decided by `others`, which are curves of the same with less
/// behind each: all must answer alike.
fn shape_of(
    variant: &str,
    theirs: &[(f64, f64)],
    ours: &[(f64, f64)],
    others: &[Vec<(f64, f64)>],
    trusted: bool,
) -> Option<AgreementFinding> {
    let courses = |theirs: &[_], ours: &[_]| Some((shape::course(theirs)?, shape::course(ours)?));
    let within = |ours: &[_]| shape::common(theirs, ours).and_then(|[theirs, ours]| courses(theirs, ours));
    let is_like = |(published, measured): (Course, Course)| published.is_like(&measured);
    let compared = within(ours);
    let answer = compared.map(is_like);
    let agree = others.iter().filter_map(|other| within(other)).all(|other| Some(is_like(other)) == answer);
    let (published, measured) = compared.or_else(|| courses(theirs, ours))?;
    Some(AgreementFinding::Shape {
        agrees: answer.filter(|_| trusted && agree),
        variant: variant.to_owned(),
        published,
        measured,
        gap: shape::widest_gap(theirs, ours),
    })
}

fn ascending(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
