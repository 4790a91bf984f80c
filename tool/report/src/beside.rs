//! The words that a file holds beside typed data: put in when it is written, taken out when it is read.
//!
//! Typed data is what counts. Words alone are in files from before findings and identities were typed: in memory they are
//! an identity that is only named, or a finding that is only told, and in a file they stand alone again.

use analysis::comparison::{Comparison, Entry, LittleFinding, OrderFinding, PublishedLittle};
use analysis::run::{
    Cause, Demand, Doubt, Evidence, Identity, NextLimit, OutcomeEvidence, Resource, Run, Step, Verdict,
    Warning, Words,
};

use crate::number;
use crate::sentences::{self, comparisons, holders};

/// Puts the words of a run in.
pub fn put(run: &mut Run) {
    put_in_verdict(&mut run.verdict);
    run.steps.iter_mut().for_each(put_in_step);
    for Demand { holder, identity, .. } in &mut run.laws.demands {
        put_name(holder, identity);
    }
    run.warnings.iter_mut().for_each(put_in_warning);
}

/// Takes the words of a run out, and keeps those that nothing typed stands for.
pub(crate) fn take(run: &mut Run) {
    take_from_verdict(&mut run.verdict);
    let resources = run.steps.iter_mut().flat_map(|step| &mut step.resources);
    resources.for_each(take_from_resource);
    for Demand { holder, identity, .. } in &mut run.laws.demands {
        take_name(holder, identity);
    }
    run.warnings.iter_mut().for_each(take_from_warning);
}

/// Puts the words of a comparison in.
pub(crate) fn put_in_comparison(comparison: &mut Comparison) {
    for work in &mut comparison.works {
        work.order = work.ranking.iter().map(|finding| plain(comparisons::order(finding))).collect();
        work.laws = work.little.iter().map(|finding| plain(comparisons::little(finding))).collect();
    }
    for published in &mut comparison.published {
        let little = published.little.as_ref();
        published.law = little.map(|finding| plain(comparisons::published_little(finding)));
    }
    for entry in comparison.works.iter_mut().flat_map(|work| &mut work.entries) {
        let Entry { bottleneck, busiest, inconclusive, doubts, .. } = entry;
        for limit in bottleneck {
            put_name(&mut limit.holder, &mut limit.identity);
        }
        busiest.iter_mut().for_each(put_in_resource);
        put_list(inconclusive, doubts, sentences::doubt, is_told_doubt);
    }
}

/// Takes the words of a comparison out, and keeps those that nothing typed stands for.
pub(crate) fn take_from_comparison(comparison: &mut Comparison) {
    for work in &mut comparison.works {
        take_list(&mut work.order, &mut work.ranking, |text| OrderFinding::Told { text });
        take_list(&mut work.laws, &mut work.little, |text| LittleFinding::Told { text });
    }
    for published in &mut comparison.published {
        let told = published.law.take().map(|mut law| PublishedLittle::Told { text: law.take() });
        published.little = published.little.take().or(told);
    }
    for entry in comparison.works.iter_mut().flat_map(|work| &mut work.entries) {
        let Entry { bottleneck, busiest, inconclusive, doubts, .. } = entry;
        for limit in bottleneck {
            take_name(&mut limit.holder, &mut limit.identity);
        }
        busiest.iter_mut().for_each(take_from_resource);
        take_list(inconclusive, doubts, |text| Doubt::Told { text });
    }
}

fn put_in_verdict(verdict: &mut Verdict) {
    let bottleneck = &mut verdict.bottleneck;
    put_name(&mut bottleneck.holder, &mut bottleneck.identity);
    put_list(&mut bottleneck.evidence, &mut bottleneck.findings, sentences::evidence, is_told_evidence);
    bottleneck.runner_up.iter_mut().for_each(put_in_resource);
    put_list(&mut verdict.inconclusive, &mut verdict.doubts, sentences::doubt, is_told_doubt);
    verdict.next = verdict.next_limit.as_ref().map(|next| plain(sentences::next(next)));
    verdict.next_limit = verdict.next_limit.take().filter(|next| !matches!(next, NextLimit::Told { .. }));
}

fn take_from_verdict(verdict: &mut Verdict) {
    let bottleneck = &mut verdict.bottleneck;
    take_name(&mut bottleneck.holder, &mut bottleneck.identity);
    take_list(&mut bottleneck.evidence, &mut bottleneck.findings, |text| {
        Evidence::Outcome(OutcomeEvidence::Told { text })
    });
    bottleneck.runner_up.iter_mut().for_each(take_from_resource);
    take_list(&mut verdict.inconclusive, &mut verdict.doubts, |text| Doubt::Told { text });
    let next = verdict.next.take().map(|mut next| NextLimit::Told { text: next.take() });
    verdict.next_limit = verdict.next_limit.take().or(next);
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

fn put_in_warning(warning: &mut Warning) {
    warning.text = plain(sentences::warning(&warning.cause));
    if matches!(warning.cause, Cause::Told { .. }) {
        warning.cause = Cause::default();
    }
}

fn take_from_warning(warning: &mut Warning) {
    let words = warning.text.take();
    if let Cause::Told { text } = &mut warning.cause
        && text.is_empty()
    {
        *text = words;
    }
}

fn put_name(holder: &mut Words, identity: &mut Option<Identity>) {
    *holder = plain(holders::name_or_nothing(identity.as_ref()).into_owned());
    *identity = identity.take().filter(|identity| !matches!(identity, Identity::Named { .. }));
}

fn take_name(holder: &mut Words, identity: &mut Option<Identity>) {
    let name = holder.take();
    *identity = identity.take().or_else(|| Identity::named(name));
}

fn put_list<T>(
    words: &mut Vec<Words>,
    typed: &mut Vec<T>,
    sentence: fn(&T) -> String,
    is_told: fn(&T) -> bool,
) {
    *words = typed.iter().map(|finding| plain(sentence(finding))).collect();
    if typed.iter().all(is_told) {
        typed.clear();
    }
}

fn is_told_doubt(doubt: &Doubt) -> bool {
    matches!(doubt, Doubt::Told { .. })
}

fn is_told_evidence(seen: &Evidence) -> bool {
    matches!(seen, Evidence::Outcome(OutcomeEvidence::Told { .. }))
}

fn take_list<T>(words: &mut Vec<Words>, typed: &mut Vec<T>, told: impl Fn(String) -> T) {
    let words = std::mem::take(words);
    if typed.is_empty() {
        typed.extend(words.into_iter().map(|mut words| told(words.take())));
    }
}

/// Words as a file holds them: with spaces that other programs know.
fn plain(text: String) -> Words {
    Words::from(text.replace(number::GROUP, " "))
}
