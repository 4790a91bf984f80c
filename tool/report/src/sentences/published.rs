//! What was published, beside what was measured: agreement, and claims.

use analysis::comparison::{
    AgreementFinding, Case, Claim, Course, Gap, Limit, Open, PairCount, Requirement, Seen,
};
use analysis::run::ResourceKind;

use super::comparisons::listed;
use super::{holders, told};
use crate::{number, words};

/// What is said of a publication that tells nothing which was measured here as well.
const NOTHING_COMPARED: &str = "Nothing in it can be held against what was measured here.";
/// The most measurements that a sentence names.
const NAMED_MAX: usize = 4;
/// The most reversed pairs that a sentence names.
const REVERSED_MAX: usize = 4;

/// One respect in which both agree or do not, as a sentence.
pub(crate) fn agreement(finding: &AgreementFinding) -> String {
    let how = how(finding.agrees());
    match finding {
        AgreementFinding::Order { pairs, .. } => {
            format!("The order {how}: {}.", pair_count(pairs, "as published"))
        }
        AgreementFinding::Workloads { variant, pairs, .. } => {
            format!("The order of workloads {how} for {variant}: {}.", pair_count(pairs, "as published"))
        }
        AgreementFinding::Shape { variant, published, measured, gap, .. } => {
            let of = if variant.is_empty() { String::new() } else { format!(" of {variant}") };
            format!(
                "The shape{of} {how}: the published curve {}, ours {}.{}",
                course(published),
                course(measured),
                gap.as_ref().map_or_else(String::new, gap_sentence)
            )
        }
        AgreementFinding::Bottleneck { published, cases, .. } => {
            format!(
                "The bottleneck {how}: published {}; here {}.",
                words::kind(*published),
                by_variant(cases)
            )
        }
        AgreementFinding::Saturation { published, cases, .. } => format!(
            "Where it saturates {how}: published at {}; here {}.",
            words::users(*published),
            by_variant(cases)
        ),
        AgreementFinding::Nothing => NOTHING_COMPARED.to_owned(),
        AgreementFinding::Told { text } => told(text),
    }
}

/// All respects in one sentence: `Agrees in order; differs in bottleneck; open: shape.` Nothing without findings.
pub(crate) fn agreement_summary(findings: &[AgreementFinding]) -> Option<String> {
    let of = |agrees: Option<bool>| -> Vec<String> {
        let of_aspect =
            |name: &str| together(findings.iter().filter(|finding| aspect(finding) == Some(name)));
        let names = ASPECTS.iter().filter(|name| of_aspect(name) == Some(agrees));
        names.map(|name| (*name).to_owned()).collect()
    };
    if findings.contains(&AgreementFinding::Nothing) {
        return Some(NOTHING_COMPARED.to_owned());
    }
    let parts = [("agrees in ", Some(true)), ("differs in ", Some(false)), ("open: ", None)];
    let parts = parts.into_iter().map(|(how, agrees)| (how, of(agrees)));
    let parts: Vec<String> = parts
        .filter(|(_, names)| !names.is_empty())
        .map(|(how, names)| format!("{how}{}", listed(&names)))
        .collect();
    (!parts.is_empty()).then(|| words::capitalised(&parts.join("; ")) + ".")
}

/// The respects in which something agrees, in the order in which they are told.
const ASPECTS: [&str; 5] = ["order", "order of workloads", "shape", "bottleneck", "where it saturates"];

fn aspect(finding: &AgreementFinding) -> Option<&'static str> {
    let [order, workloads, shape, bottleneck, saturation] = ASPECTS;
    match finding {
        AgreementFinding::Order { .. } => Some(order),
        AgreementFinding::Workloads { .. } => Some(workloads),
        AgreementFinding::Shape { .. } => Some(shape),
        AgreementFinding::Bottleneck { .. } => Some(bottleneck),
        AgreementFinding::Saturation { .. } => Some(saturation),
        AgreementFinding::Nothing | AgreementFinding::Told { .. } => None,
    }
}

/// What several findings of one respect come to; `None` without any.
fn together<'a>(findings: impl Iterator<Item = &'a AgreementFinding>) -> Option<Option<bool>> {
    let all: Vec<Option<bool>> = findings.map(AgreementFinding::agrees).collect();
    let first = *all.first()?;
    let any = |agrees| all.contains(&agrees);
    Some(if any(Some(false)) {
        Some(false)
    } else if any(None) {
        None
    } else {
        first
    })
}

fn how(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(true) => "agrees",
        Some(false) => "differs",
        None => "stays open",
    }
}

/// Whether a claim is met: `met`, `not met`, `not shown`.
pub(crate) fn claim_standing(claim: &Claim) -> &'static str {
    match claim.met {
        Some(true) => "met",
        Some(false) => "not met",
        None => "not shown",
    }
}

/// The outcome of a claim with what was seen: `Not met: 1 KB: CPU, nginx (pid 3).`
pub(crate) fn claim_outcome(claim: &Claim) -> String {
    if let Requirement::Told { text } = &claim.requires {
        return told(text);
    }
    let standing = words::capitalised(claim_standing(claim));
    match claim_evidence(claim) {
        evidence if evidence.is_empty() => format!("{standing}: nothing was measured."),
        evidence => format!("{standing}: {evidence}."),
    }
}

/// What decided a claim: the cases that met it, or those that did not, or those that stay open, and which met it there.
pub(crate) fn claim_evidence(claim: &Claim) -> String {
    let with = |met| claim.cases.iter().filter(move |case| case.met == met);
    let deciding: Vec<Case> = with(claim.met).cloned().collect();
    let held: Vec<String> = with(Some(true)).map(case_name).collect();
    let evidence = grouped(&deciding);
    match held.len() {
        _ if claim.met.is_some() => evidence,
        0 => evidence,
        1..=NAMED_MAX => format!("{evidence}; met for {}", listed(&held)),
        several => format!("{evidence}; met for {several} others"),
    }
}

/// Cases of one workload in a phrase.
fn by_variant(cases: &[Case]) -> String {
    let cases = cases.iter().map(|case| Case { work: String::new(), ..case.clone() });
    grouped(&cases.collect::<Vec<_>>())
}

/// Cases in a phrase, those that say the same together: `1 KB and 1 MB: disk vda; 10 MB: not measured`.
fn grouped(cases: &[Case]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for case in cases {
        let said = seen(&case.seen);
        match groups.iter_mut().find(|(known, _)| *known == said) {
            Some((_, names)) => names.push(case_name(case)),
            None => groups.push((said, vec![case_name(case)])),
        }
    }
    let only = groups.len() == 1;
    let phrase = |(said, names): &(String, Vec<String>)| {
        let names: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
        match names.as_slice() {
            [] => said.clone(),
            several if only && several.len() > NAMED_MAX => format!("{said}, in all {}", several.len()),
            names => format!("{said}, for {}", listed(names)),
        }
    };
    groups.iter().map(phrase).collect::<Vec<_>>().join("; ")
}

fn case_name(case: &Case) -> String {
    let parts = [case.variant.as_str(), case.work.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn seen(seen: &Seen) -> String {
    match seen {
        Seen::Bottleneck { limits } => stopped_by(limits),
        Seen::Saturation { users, ci: [lo, hi] } => format!(
            "N* = {} ({}–{})",
            number::count((*users).into()),
            number::count((*lo).into()),
            number::count((*hi).into())
        ),
        Seen::Order(pairs) => pair_count(pairs, "as claimed"),
        Seen::Change { from, to, ratio, ci } => change(from, to, *ratio, *ci),
        Seen::Denied { share } if *share > 0.0 => {
            format!("{} of the requests denied", number::percent(*share))
        }
        Seen::Denied { .. } => "no request denied".to_owned(),
        Seen::Proofs { made: 0, .. } => "nothing was proved".to_owned(),
        Seen::Proofs { made, failed: 0 } => format!("{} made, all hold", proofs(*made)),
        Seen::Proofs { made, failed } => format!("{failed} of {} failed", proofs(*made)),
        Seen::Open { why } => open(*why).to_owned(),
    }
}

fn proofs(made: u32) -> String {
    format!("{made} {}", if made == 1 { "proof" } else { "proofs" })
}

fn change(from: &str, to: &str, ratio: f64, ci: [f64; 2]) -> String {
    let interval = match ci {
        [lo, hi] if lo < hi => format!(" ({})", number::interval(ratio, ci)),
        _ => String::new(),
    };
    format!("{to} has {}{interval} times the figure of {from}", number::quantity(ratio))
}

/// What stopped something in each of its runs, the most frequent answer first: `CPU, nginx`; where runs disagree,
/// `CPU, nginx (2 of 3 runs); nothing, never saturated (1 of 3)`.
pub(crate) fn stopped_by(limits: &[Limit]) -> String {
    let mut answers: Vec<(String, usize)> = Vec::new();
    for answer in limits.iter().map(limit) {
        match answers.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, runs)) => *runs += 1,
            None => answers.push((answer, 1)),
        }
    }
    // Of equals the first stays first.
    answers.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    if let [(only, _)] = answers.as_slice() {
        return only.clone();
    }
    let counted = answers.iter().enumerate().map(|(place, (answer, runs))| {
        let noun = if place == 0 { " runs" } else { "" };
        format!("{answer} ({runs} of {}{noun})", limits.len())
    });
    counted.collect::<Vec<_>>().join("; ")
}

/// A limit by kind and name, without the number of a process, which differs from run to run and is gone by now.
fn limit(limit: &Limit) -> String {
    let kind = match limit.kind {
        ResourceKind::None => "nothing, never saturated",
        ResourceKind::Unknown => "cause not found",
        kind => words::kind(kind),
    };
    let name = limit.identity.as_ref().map(holders::short_name);
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind}, {name}"))
}

fn pair_count(pairs: &PairCount, as_expected: &str) -> String {
    let PairCount { pairs: all, agree, reversed } = pairs;
    if agree == all {
        return match all {
            1 => format!("the only pair is {as_expected}"),
            all => format!("all {all} pairs are {as_expected}"),
        };
    }
    if *all == 1 {
        return match reversed.first() {
            Some([ahead, behind]) => format!("the only pair is reversed ({ahead} is ahead of {behind})"),
            None => "the only pair stays open".to_owned(),
        };
    }
    let mut text = format!("{agree} of {all} pairs are {as_expected}");
    if !reversed.is_empty() {
        let named =
            reversed.iter().take(REVERSED_MAX).map(|[ahead, behind]| format!("{ahead} is ahead of {behind}"));
        let more = if reversed.len() > REVERSED_MAX { ", .." } else { "" };
        text += &format!(", {} reversed ({}{more})", reversed.len(), named.collect::<Vec<_>>().join(", "));
    }
    if pairs.open() > 0 {
        text += &format!(", {} open", pairs.open());
    }
    text
}

fn course(course: &Course) -> String {
    match course {
        Course::Flat => "is flat".to_owned(),
        Course::Grows => "grows to its end".to_owned(),
        Course::Levels { at } => format!("levels off at {}", number::quantity(*at)),
        Course::Falls { at, left } => {
            format!(
                "peaks at about {} and falls to {} of that",
                number::quantity(*at),
                number::percent(*left)
            )
        }
    }
}

fn gap_sentence(gap: &Gap) -> String {
    format!(
        " Each as a share of its own maximum, they are furthest apart at {}: {} published, {} here.",
        number::quantity(gap.at),
        number::percent(gap.published),
        number::percent(gap.measured)
    )
}

fn open(why: Open) -> &'static str {
    match why {
        Open::NotMeasured => "not measured",
        Open::InDoubt => "in doubt",
        Open::GeneratorLimit => "the load generator was the limit",
        Open::NotSaturated => "throughput did not stop growing",
        Open::CauseUnknown => "no evidence of what stopped it",
        Open::NotSearched => "one number of users, which shows no limit",
        Open::RunsDisagree => "the runs disagree",
        Open::NoInterval => "no interval: fewer than three rounds",
        Open::Unknown => "open",
    }
}
