//! What several experiments come to, in phrases: shared by the terminal and the page.

use analysis::comparison::{Claim, Comparison};

use super::comparison;
use crate::index::{Index, Outcome, Shown};
use crate::words;

/// The experiments that ran, each in a line, with what agrees and what is claimed below.
pub(crate) fn text(index: &Index) -> String {
    index.experiments.iter().map(of_experiment).collect()
}

fn of_experiment(shown: &Shown) -> String {
    let Shown { name, title, outcome, .. } = shown;
    let lines = match outcome {
        Outcome::Measured { comparison, .. } => lines(comparison),
        other => vec![standing(other)],
    };
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!("{name}: {title}\n{lines}")
}

fn lines(comparison: &Comparison) -> Vec<String> {
    let agreements = agreements(comparison).into_iter();
    agreements.chain(claims(comparison)).collect()
}

/// What became of an experiment that was not measured.
pub(crate) fn standing(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured { .. } => "Measured.".to_owned(),
        Outcome::Failed { why } => format!("Failed: {why}"),
        Outcome::OnlyFull { short_form } => {
            format!("Only with --full; {short_form} is its short form.")
        }
        Outcome::NotMeasured => "Not measured: the run was stopped before it began.".to_owned(),
    }
}

/// How far each publication agrees: `S1, 1 KB: Agrees in bottleneck.`
pub(crate) fn agreements(comparison: &Comparison) -> Vec<String> {
    let of_work = |work| comparison::held(comparison, work);
    let held = comparison.works.iter().flat_map(of_work);
    held.map(|held| format!("{}: {}", held.title, held.summary)).collect()
}

/// How many claims are met: `Claims: 2 met, 1 not met.` Nothing without claims.
pub(crate) fn claims(comparison: &Comparison) -> Option<String> {
    let count =
        |met: Option<bool>| comparison.claims.iter().filter(|claim: &&Claim| claim.met == met).count();
    let parts = [(count(Some(true)), "met"), (count(Some(false)), "not met"), (count(None), "not shown")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    (!parts.is_empty()).then(|| words::capitalised(&format!("claims: {}.", parts.join(", "))))
}
