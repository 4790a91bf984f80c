//! The words that a file holds beside typed data: put in when it is written, taken out when it is read.
//!
//! Typed data is what counts. Words alone are in files from before findings and identities were typed, and beside data that
//! only a newer version knows: in memory they are an identity that is only named, or a finding that is only told, and in a
//! file they stand alone again.

use analysis::comparison::{
    AgreementFinding, Case, Comparison, Entry, LeftOutCause, LittleFinding, OrderFinding, PublishedLittle,
    Requirement, Seen,
};
use analysis::run::{
    Cause, Demand, Doubt, Evidence, Identity, NextLimit, OutcomeEvidence, RequestDemand, Resource, Run, Step,
    Verdict, Words,
};

use crate::number;
use crate::sentences::{self, comparisons, holders, left_out, published};

/// Puts the words of a run in.
pub fn put(run: &mut Run) {
    put_in_verdict(&mut run.verdict);
    run.steps.iter_mut().for_each(put_in_step);
    for Demand { holder, identity, .. } in &mut run.laws.demands {
        put_name(holder, identity);
    }
    for RequestDemand { holder, identity, .. } in demands_of_requests(run) {
        put_name(holder, identity);
    }
    run.warnings.iter_mut().for_each(|warning| put_beside(&mut warning.text, &mut warning.cause));
}

/// Takes the words of a run out, and keeps text that has no typed counterpart.
pub(crate) fn take(run: &mut Run) {
    take_from_verdict(&mut run.verdict);
    let resources = run.steps.iter_mut().flat_map(|step| &mut step.resources);
    resources.for_each(take_from_resource);
    for Demand { holder, identity, .. } in &mut run.laws.demands {
        take_name(holder, identity);
    }
    for RequestDemand { holder, identity, .. } in demands_of_requests(run) {
        take_name(holder, identity);
    }
    run.warnings.iter_mut().for_each(|warning| fill(&mut warning.cause, &mut warning.text));
}

fn demands_of_requests(run: &mut Run) -> impl Iterator<Item = &mut RequestDemand> {
    run.requests.iter_mut().flat_map(|request| &mut request.demands)
}

/// Puts the words of a comparison in.
pub(crate) fn put_in_comparison(comparison: &mut Comparison) {
    for work in &mut comparison.works {
        put_list(&mut work.order, &mut work.ranking);
        put_list(&mut work.laws, &mut work.little);
    }
    for published in &mut comparison.published {
        put_one(&mut published.law, &mut published.little);
        put_list(&mut published.agreement, &mut published.compared);
    }
    for left_out in &mut comparison.left_out {
        put_beside(&mut left_out.why, &mut left_out.cause);
    }
    for claim in &mut comparison.claims {
        claim.outcome = plain(published::claim_outcome(claim));
        for seen in claim.cases.iter_mut().map(|case| &mut case.seen) {
            put_names_seen(seen);
        }
    }
    for finding in comparison.published.iter_mut().flat_map(|published| &mut published.compared) {
        cases_of(finding).iter_mut().for_each(|case| put_names_seen(&mut case.seen));
    }
    for entry in comparison.works.iter_mut().flat_map(|work| &mut work.entries) {
        let Entry { bottleneck, busiest, inconclusive, doubts, .. } = entry;
        for limit in bottleneck {
            put_name(&mut limit.holder, &mut limit.identity);
        }
        busiest.iter_mut().for_each(put_in_resource);
        put_list(inconclusive, doubts);
    }
}

/// Takes the words of a comparison out, and keeps text that has no typed counterpart.
pub(crate) fn take_from_comparison(comparison: &mut Comparison) {
    for work in &mut comparison.works {
        take_list(&mut work.order, &mut work.ranking);
        take_list(&mut work.laws, &mut work.little);
    }
    for published in &mut comparison.published {
        take_one(&mut published.law, &mut published.little);
        take_list(&mut published.agreement, &mut published.compared);
        for finding in &mut published.compared {
            cases_of(finding).iter_mut().for_each(|case| take_names_seen(&mut case.seen));
        }
    }
    for left_out in &mut comparison.left_out {
        fill(&mut left_out.cause, &mut left_out.why);
    }
    for claim in &mut comparison.claims {
        let outcome = claim.outcome.take();
        if let Requirement::Told { text } = &mut claim.requires {
            *text = outcome;
        }
        claim.cases.iter_mut().for_each(|case| take_names_seen(&mut case.seen));
    }
    for entry in comparison.works.iter_mut().flat_map(|work| &mut work.entries) {
        let Entry { bottleneck, busiest, inconclusive, doubts, .. } = entry;
        for limit in bottleneck {
            take_name(&mut limit.holder, &mut limit.identity);
        }
        busiest.iter_mut().for_each(take_from_resource);
        take_list(inconclusive, doubts);
    }
}

fn cases_of(finding: &mut AgreementFinding) -> &mut [Case] {
    match finding {
        AgreementFinding::Bottleneck { cases, .. } | AgreementFinding::Saturation { cases, .. } => cases,
        _ => &mut [],
    }
}

fn put_names_seen(seen: &mut Seen) {
    if let Seen::Bottleneck { limits } = seen {
        limits.iter_mut().for_each(|limit| put_name(&mut limit.holder, &mut limit.identity));
    }
}

fn take_names_seen(seen: &mut Seen) {
    if let Seen::Bottleneck { limits } = seen {
        limits.iter_mut().for_each(|limit| take_name(&mut limit.holder, &mut limit.identity));
    }
}

fn put_in_verdict(verdict: &mut Verdict) {
    let bottleneck = &mut verdict.bottleneck;
    put_name(&mut bottleneck.holder, &mut bottleneck.identity);
    bottleneck.alternatives.iter_mut().for_each(|one| put_name(&mut one.holder, &mut one.identity));
    put_list(&mut bottleneck.evidence, &mut bottleneck.findings);
    bottleneck.runner_up.iter_mut().for_each(put_in_resource);
    put_list(&mut verdict.inconclusive, &mut verdict.doubts);
    put_one(&mut verdict.next, &mut verdict.next_limit);
}

fn take_from_verdict(verdict: &mut Verdict) {
    let bottleneck = &mut verdict.bottleneck;
    take_name(&mut bottleneck.holder, &mut bottleneck.identity);
    bottleneck.alternatives.iter_mut().for_each(|one| take_name(&mut one.holder, &mut one.identity));
    take_list(&mut bottleneck.evidence, &mut bottleneck.findings);
    bottleneck.runner_up.iter_mut().for_each(take_from_resource);
    take_list(&mut verdict.inconclusive, &mut verdict.doubts);
    take_one(&mut verdict.next, &mut verdict.next_limit);
}

fn put_in_step(step: &mut Step) {
    step.resources.iter_mut().for_each(put_in_resource);
}

fn put_in_resource(resource: &mut Resource) {
    put_name(&mut resource.holder, &mut resource.identity);
}

fn take_from_resource(resource: &mut Resource) {
    take_name(&mut resource.holder, &mut resource.identity);
}

/// Puts the words of a finding beside it. Where nothing else is known of it, they stand there alone.
fn put_beside(words: &mut Words, finding: &mut impl Finding) {
    *words = plain(finding.sentence());
    if let Some(text) = finding.told_text() {
        text.clear();
    }
}

pub(crate) fn put_name(holder: &mut Words, identity: &mut Option<Identity>) {
    *holder = plain(holders::name_or_nothing(identity.as_ref()).into_owned());
    *identity = identity.take().filter(|identity| !matches!(identity, Identity::Named { .. }));
}

fn take_name(holder: &mut Words, identity: &mut Option<Identity>) {
    let name = holder.take();
    let named = || if name == "host" { Some(Identity::Host { on: None }) } else { Identity::named(name) };
    *identity = identity.take().or_else(named);
}

fn put_list<T: Finding>(words: &mut Vec<Words>, typed: &mut Vec<T>) {
    *words = typed.iter().map(|finding| plain(finding.sentence())).collect();
    if typed.iter_mut().all(|finding| finding.told_text().is_some()) {
        typed.clear();
    }
}

fn take_list<T: Finding>(words: &mut Vec<Words>, typed: &mut Vec<T>) {
    let mut words = std::mem::take(words);
    if typed.is_empty() {
        typed.resize_with(words.len(), T::untyped);
    }
    typed.iter_mut().zip(&mut words).for_each(|(finding, words)| fill(finding, words));
}

fn put_one<T: Finding>(words: &mut Option<Words>, typed: &mut Option<T>) {
    *words = typed.as_ref().map(|finding| plain(finding.sentence()));
    if typed.as_mut().is_some_and(|finding| finding.told_text().is_some()) {
        *typed = None;
    }
}

fn take_one<T: Finding>(words: &mut Option<Words>, typed: &mut Option<T>) {
    if let Some(mut words) = words.take() {
        fill(typed.get_or_insert_with(T::untyped), &mut words);
    }
}

/// Gives a finding that nothing is known of its words.
fn fill(finding: &mut impl Finding, words: &mut Words) {
    let words = words.take();
    if let Some(text) = finding.told_text().filter(|text| text.is_empty()) {
        *text = words;
    }
}

/// Words as a file holds them: with spaces that other programs know.
fn plain(text: String) -> Words {
    Words::from(text.replace(number::GROUP, " "))
}

/// A finding that has words beside it in a file.
trait Finding {
    /// The finding as a sentence.
    fn sentence(&self) -> String;

    /// A finding of which nothing is known, not even words.
    fn untyped() -> Self;

    /// The words, where nothing else is known.
    fn told_text(&mut self) -> Option<&mut String>;
}

macro_rules! finding {
    ($($type:ty: $sentence:path, $told:path;)*) => {$(
        impl Finding for $type {
            fn sentence(&self) -> String {
                $sentence(self)
            }

            fn untyped() -> Self {
                $told { text: String::new() }
            }

            fn told_text(&mut self) -> Option<&mut String> {
                if let $told { text } = self { Some(text) } else { None }
            }
        }
    )*};
}

finding! {
    Cause: sentences::warning, Cause::Told;
    Doubt: sentences::doubt, Doubt::Told;
    NextLimit: sentences::next, NextLimit::Told;
    OrderFinding: comparisons::order, OrderFinding::Told;
    LittleFinding: comparisons::little, LittleFinding::Told;
    PublishedLittle: comparisons::published_little, PublishedLittle::Told;
    LeftOutCause: left_out::why, LeftOutCause::Told;
    AgreementFinding: published::agreement, AgreementFinding::Told;
}

impl Finding for Evidence {
    fn sentence(&self) -> String {
        sentences::evidence(self)
    }

    fn untyped() -> Self {
        Self::default()
    }

    fn told_text(&mut self) -> Option<&mut String> {
        if let Self::Outcome(OutcomeEvidence::Told { text }) = self { Some(text) } else { None }
    }
}
