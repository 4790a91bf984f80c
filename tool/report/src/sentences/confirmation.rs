//! Sentences on what slowing each tier showed.

use analysis::run::{Confirmation, ConfirmationAnswer, LeftAlone, LeftAloneReason, SlowedTier};

use super::holders::processes;
use crate::number::percent;
use crate::words::users;

/// What the test of the verdict showed.
pub(crate) fn confirmation(of: &Confirmation) -> String {
    let mut text = tested(of);
    if !of.tiers.is_empty() {
        text += &format!(" With {}, {}.", users(of.users), and(of.tiers.iter().map(slowed)));
    }
    if !had_no_time(of) {
        for left_alone in &of.left_alone {
            text += &format!(" {}", self::left_alone(left_alone));
        }
    }
    text
}

/// The same without its figures.
pub(crate) fn tested(of: &Confirmation) -> String {
    match &of.answer {
        ConfirmationAnswer::Confirmed => {
            let follows = |first: &SlowedTier| {
                format!(": throughput follows the speed of {}", processes(&first.processes))
            };
            let follows = of.tiers.first().map_or_else(String::new, follows);
            format!("Tested by experiment, and confirmed{follows}.")
        }
        ConfirmationAnswer::Elsewhere { processes: of } => {
            format!("Tested by experiment, and not confirmed: throughput follows the speed of {}.", processes(of))
        }
        ConfirmationAnswer::Found { processes: of } => {
            format!("Tested by experiment: throughput follows the speed of {}.", processes(of))
        }
        ConfirmationAnswer::Shared => {
            "Tested by experiment: throughput follows several tiers, the one named among them.".to_owned()
        }
        ConfirmationAnswer::Nothing => "Tested by experiment: slowing no tier slows the server. Requests wait for \
                                        something that goes on while processes are stopped: a device, a timer, another \
                                        host, or processors whose time the other tiers use up."
            .to_owned(),
        ConfirmationAnswer::Open if had_no_time(of) => {
            "Not tested by experiment: there was no time left for it.".to_owned()
        }
        ConfirmationAnswer::Open if of.tiers.is_empty() => "Not tested by experiment.".to_owned(),
        ConfirmationAnswer::Open => "Tested by experiment, without an answer.".to_owned(),
    }
}

/// Whether no tier was slowed for want of time alone.
fn had_no_time(of: &Confirmation) -> bool {
    let none = of.tiers.is_empty() && !of.left_alone.is_empty();
    none && of.left_alone.iter().all(|tier| tier.reason == LeftAloneReason::NoTime)
}

/// `stopping nginx (pid 812) for 10 % of the time cost 0.98 of that in throughput (95 % interval 0.95 to 1.01)`.
fn slowed(tier: &SlowedTier) -> String {
    let [low, high] = tier.elasticity_ci;
    format!(
        "stopping {} for {} of the time cost {:.2} of that in throughput (95 % interval {low:.2} to {high:.2})",
        processes(&tier.processes),
        percent(tier.stopped_share),
        tier.elasticity,
    )
}

fn left_alone(left_alone: &LeftAlone) -> String {
    let name = processes(&left_alone.processes);
    let why = match left_alone.reason {
        LeftAloneReason::OtherUser => "it belongs to another user (run nstar as that user)",
        LeftAloneReason::Debugged => "a debugger holds it",
        LeftAloneReason::Stopped => "somebody has stopped it already",
        LeftAloneReason::Foreground => {
            "it runs in the foreground of a terminal, whose shell would take it for suspended (start it with setsid)"
        }
        LeftAloneReason::NotStarted => {
            "nstar did not start it (nstar sweep --confirm slows such processes too)"
        }
        LeftAloneReason::Ours => "nstar itself runs under it",
        LeftAloneReason::Elsewhere => "nstar slows only what runs beside it",
        LeftAloneReason::Ended => "it ended meanwhile",
        LeftAloneReason::NotAllowed => "the system did not let nstar stop it",
        LeftAloneReason::NoTime => "there was no time left for it",
    };
    format!("{name} was not slowed: {why}.")
}

fn and(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("{}, and {last}", parts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use analysis::{counters::Role, run::Processes};

    use super::*;

    fn tier(name: &str) -> Processes {
        Processes { role: Role::Server, name: name.into(), pid: Some(7), processes: 1, on: None }
    }

    #[test]
    fn a_test_of_the_verdict_is_told_with_its_figures() {
        let slowed = |name: &str, elasticity: f64| SlowedTier {
            processes: tier(name),
            stopped_share: 0.1,
            elasticity,
            elasticity_ci: [elasticity - 0.05, elasticity + 0.05],
        };
        let tested = Confirmation {
            users: 16,
            elapsed_s: 15.0,
            tiers: vec![slowed("back", 0.98), slowed("front", 0.02)],
            left_alone: vec![LeftAlone { processes: tier("postgres"), reason: LeftAloneReason::OtherUser }],
            answer: ConfirmationAnswer::Confirmed,
        };
        assert_eq!(
            confirmation(&tested).replace('\u{202f}', " "),
            "Tested by experiment, and confirmed: throughput follows the speed of back (pid 7). With 16 users, stopping back \
             (pid 7) for 10 % of the time cost 0.98 of that in throughput (95 % interval 0.93 to 1.03), and stopping front (pid 7) \
             for 10 % of the time cost 0.02 of that in throughput (95 % interval -0.03 to 0.07). postgres (pid 7) was not slowed: \
             it belongs to another user (run nstar as that user)."
        );
    }

    #[test]
    fn what_was_not_tested_is_told_with_the_reason() {
        let none = |reason| Confirmation {
            left_alone: vec![LeftAlone { processes: tier("back"), reason }],
            ..Confirmation::default()
        };
        let told = confirmation(&none(LeftAloneReason::NoTime));
        assert_eq!(told, "Not tested by experiment: there was no time left for it.");
        let told = confirmation(&none(LeftAloneReason::Debugged));
        assert_eq!(told, "Not tested by experiment. back (pid 7) was not slowed: a debugger holds it.");
    }
}
