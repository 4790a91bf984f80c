//! What a comparison comes to: the order of variants, and what Little's law says.

use analysis::comparison::{LittleFinding, OrderFinding, PublishedLittle, Tested};

use analysis::run::{Count, Prepared};

use super::told;
use crate::number;

/// The order of a workload's variants, or a part of it.
pub(crate) fn order(finding: &OrderFinding) -> String {
    match finding {
        OrderFinding::NothingComparable => "Nothing was measured that can be compared.".to_owned(),
        OrderFinding::OnlyOne { variant } => format!("Only {variant} was measured, so there is no order."),
        OrderFinding::First { variant, throughput_per_s, next, times_next, at_least } => {
            let at_least = if *at_least { "at least " } else { "" };
            let [per_s, times] = [*throughput_per_s, *times_next].map(number::quantity);
            format!(
                "{variant} is first with {at_least}{per_s} req/s, {at_least}{times} times the next, {next}."
            )
        }
        OrderFinding::Cheapest { variant, next, times_cpu } => format!(
            "{variant} is first by CPU time per request, as the generator was the limit: the next, {next}, takes {} times \
             as much.",
            number::quantity(*times_cpu)
        ),
        OrderFinding::ByCpuTime { variants } => format!(
            "The generator could not drive {} to the limit in every round: where an order with {} is claimed, it is by CPU time \
             per request if not by throughput.",
            listed(variants),
            if variants.len() == 1 { "it" } else { "them" }
        ),
        OrderFinding::AgainstBaseline { baseline, ahead, behind, open } => {
            against_baseline(baseline, [ahead, behind, open])
        }
        OrderFinding::SeveralMayBeFirst { variants } => {
            format!("{} may each be first: no order among them is certain.", listed(variants))
        }
        OrderFinding::WithinIntervals => {
            "The differences are within the intervals: no order is claimed.".to_owned()
        }
        OrderFinding::FewRounds { rounds } => {
            let rounds = if *rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") };
            format!(
                "Measured in {rounds}: how much figures differ from one round to the next is not known, so no order is \
                 claimed. Measure three rounds or more."
            )
        }
        OrderFinding::LowerBounds { bounds, figures } => {
            format!(
                "{bounds} of the {figures} figures are lower bounds, which the true figures may exceed: no order is claimed. The \
                 doubts say why."
            )
        }
        OrderFinding::ProcessorSpeed { varied } => format!(
            "The processors were faster in some trials than in others, by {} (one standard deviation), as neighbours of a \
             virtual machine are busy or not: the order and the shares of the first allow for it.",
            number::percent(*varied)
        ),
        OrderFinding::Last { variant, of_fastest, of_compared } => {
            let among = if *of_compared { " of those compared" } else { "" };
            let share = of_fastest.map_or_else(String::new, |of| {
                let [lo, hi] = of.ci.map(number::percent);
                format!(", at {} of the fastest ({lo} to {hi})", number::percent(of.ratio))
            });
            format!("{variant} is last{among}{share}.")
        }
        OrderFinding::Told { text } => told(text),
    }
}

/// Little's law applied to everything measured on a workload, as a sentence.
pub(crate) fn little(finding: &LittleFinding) -> String {
    match finding {
        LittleFinding::Untested => {
            "Little's law is not tested: no load was both steady and without many failures.".to_owned()
        }
        LittleFinding::Holds { tested, gap_max } => {
            let at = match tested {
                Tested::EveryStep => "at every step",
                Tested::EveryLoad => "in every load",
                Tested::WherePossible => "wherever it can be tested",
            };
            format!("Little's law, N = X R, holds {at} (largest gap {}).", number::percent(*gap_max))
        }
        LittleFinding::Off { gap_max } => {
            format!("Little's law, N = X R, is off by up to {}.", number::percent(*gap_max))
        }
        LittleFinding::Told { text } => told(text),
    }
}

/// Little's law applied to published points, as a sentence.
pub(crate) fn published_little(finding: &PublishedLittle) -> String {
    match finding {
        PublishedLittle::Holds => "The published points obey Little's law, N = X R.".to_owned(),
        PublishedLittle::Broken { broken, points, users, present } => format!(
            "Little's law, N = X R, breaks at {broken} of the {points} published points: at {} users X R is {}.",
            number::count((*users).into()),
            number::quantity(*present)
        ),
        PublishedLittle::Told { text } => told(text),
    }
}

/// What a command said that prepared or reset: `a million bookings (rows 1 000 000)`.
pub(crate) fn prepared(said: &Prepared) -> String {
    match (said.text.as_str(), counts(&said.counts)) {
        ("", counts) => counts,
        (text, counts) if counts.is_empty() => text.to_owned(),
        (text, counts) => format!("{text} ({counts})"),
    }
}

/// What was counted: `acknowledged 12 345, rows 12 345`.
pub(crate) fn counts(counts: &[Count]) -> String {
    let one = |count: &Count| format!("{} {}", count.name, number::count(count.value));
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What variants are beside the baseline: those ahead of it, behind it, and neither.
fn against_baseline(baseline: &str, [ahead, behind, open]: [&[String]; 3]) -> String {
    let part = |names: &[String], (one, several): (&str, &str), what: &str| {
        let verb = if names.len() == 1 { one } else { several };
        (!names.is_empty()).then(|| format!("{} {verb} {what}", listed(names)))
    };
    let be = ("is", "are");
    let parts = [
        part(ahead, be, "ahead"),
        part(behind, be, "behind"),
        part(open, ("cannot be told", "cannot be told"), "from it"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("Compared with {baseline}, the baseline: {}.", parts.join("; "))
}

/// `epoll, uring and poll`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}
