//! Sentences on what slowing each tier showed.

use analysis::run::{
    Confirmation, ConfirmationAnswer, LeftAlone, LeftAloneReason, Slowable, SlowedBy, SlowedTier,
};

use super::holders::slowable;
use crate::number::percent;
use crate::words::{capitalised, users};

/// What the test of the verdict showed.
pub(crate) fn confirmation(of: &Confirmation) -> String {
    let mut text = tested(of);
    if !of.tiers.is_empty() {
        text += &format!(" With {}, {}.", users(of.users), and(of.tiers.iter().map(slowed)));
    }
    if !had_no_time(of) {
        for left_alone in &of.left_alone {
            text += &format!(" {}", self::left_alone(left_alone, of));
        }
    }
    text
}

/// The same without its figures.
pub(crate) fn tested(of: &Confirmation) -> String {
    match &of.answer {
        ConfirmationAnswer::Confirmed => {
            let follows = |first: &SlowedTier| format!(": throughput follows {}", followed(of, &first.tier));
            let follows = of.tiers.first().map_or_else(String::new, follows);
            format!("Tested by experiment, and confirmed{follows}.")
        }
        ConfirmationAnswer::Elsewhere(tier) => {
            format!("Tested by experiment, and not confirmed: throughput follows {}.", followed(of, tier))
        }
        ConfirmationAnswer::Found(tier) => {
            format!("Tested by experiment: throughput follows {}.", followed(of, tier))
        }
        ConfirmationAnswer::Shared => {
            "Tested by experiment: throughput follows several tiers, the one named among them.".to_owned()
        }
        ConfirmationAnswer::Nothing => nothing(of),
        ConfirmationAnswer::Open if had_no_time(of) => {
            "Not tested by experiment: there was no time left for it.".to_owned()
        }
        ConfirmationAnswer::Open if of.tiers.is_empty() => "Not tested by experiment.".to_owned(),
        ConfirmationAnswer::Open => "Tested by experiment, without an answer.".to_owned(),
    }
}

/// What is left where no tier is followed. A lower quota tells nothing else of its processes.
fn nothing(of: &Confirmation) -> String {
    let by_quota = |slowed: &&SlowedTier| slowed.by == SlowedBy::Quota;
    let within: Vec<String> = of.tiers.iter().filter(by_quota).map(|slowed| slowable(&slowed.tier)).collect();
    let or = match within.is_empty() {
        true => String::new(),
        false => format!(", or for something within {} other than the CPU quota", and(within.into_iter())),
    };
    format!(
        "Tested by experiment: slowing no tier slows the server. Requests wait for something that goes on while processes are \
         stopped: a device, a timer, another host, or processors whose time the other tiers use up{or}."
    )
}

/// Whether no tier was slowed for want of time alone.
fn had_no_time(of: &Confirmation) -> bool {
    let none = of.tiers.is_empty() && !of.left_alone.is_empty();
    none && of.left_alone.iter().all(|tier| tier.reason == LeftAloneReason::NoTime)
}

/// What of a tier throughput follows: `the speed of nginx (pid 812)`.
fn followed(of: &Confirmation, tier: &Slowable) -> String {
    let name = slowable(tier);
    match of.tiers.iter().find(|slowed| slowed.tier == *tier).map(|slowed| slowed.by) {
        None | Some(SlowedBy::Stopping) => format!("the speed of {name}"),
        Some(SlowedBy::Quota) => format!("the CPU quota of {name}"),
        Some(SlowedBy::Rate) => format!("the rate of {name}"),
    }
}

/// `stopping nginx (pid 812) for 10 % of the time cost 0.98 of that in throughput (95 % interval 0.95 to 1.01)`.
fn slowed(tier: &SlowedTier) -> String {
    let (name, share) = (slowable(&tier.tier), percent(tier.stopped_share));
    let how = match tier.by {
        SlowedBy::Stopping => format!("stopping {name} for {share} of the time"),
        SlowedBy::Quota => format!("lowering the CPU quota of {name} by {share}"),
        SlowedBy::Rate => format!("lowering the rate of {name} by {share}"),
    };
    let [low, high] = tier.elasticity_ci;
    format!("{how} cost {:.2} of that in throughput (95 % interval {low:.2} to {high:.2})", tier.elasticity)
}

fn left_alone(left_alone: &LeftAlone, of: &Confirmation) -> String {
    let name = slowable(&left_alone.tier);
    let what = match left_alone.tier.link {
        Some(_) => format!("{} was not slowed", capitalised(&name)),
        None if is_of_quota(left_alone, of) => format!("The CPU quota of {name} was not lowered"),
        // Names of programs are written as they are.
        None => format!("{name} was not slowed"),
    };
    format!("{what}: {}.", why(left_alone.reason))
}

/// Whether it was the quota of processes that was left alone; they may have been stopped in place of that.
fn is_of_quota(left_alone: &LeftAlone, of: &Confirmation) -> bool {
    let reasons =
        [LeftAloneReason::QuotaNeedsRoot, LeftAloneReason::QuotaShared, LeftAloneReason::ChangedByOthers];
    reasons.contains(&left_alone.reason) || of.tiers.iter().any(|slowed| slowed.tier == left_alone.tier)
}

fn why(left_alone: LeftAloneReason) -> &'static str {
    match left_alone {
        LeftAloneReason::OtherUser => {
            "it belongs to another user (run nstar as that user, with sudo if a CPU quota has to be lowered)"
        }
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
        LeftAloneReason::ProcessesChanged => "not as a whole, as it started processes meanwhile",
        LeftAloneReason::NotAllowed => "the system did not let nstar do so",
        LeftAloneReason::ChangedByOthers => {
            "somebody else changed it meanwhile, or another nstar is lowering it (run one after the other)"
        }
        LeftAloneReason::QuotaNeedsRoot => "only root may (run nstar as root)",
        LeftAloneReason::QuotaShared => "it has no control group of its own (systemd-run gives it one)",
        LeftAloneReason::RateNeedsRoot => "only root may shape it (run nstar as root)",
        LeftAloneReason::ToolsMissing => {
            "tc, nsenter or timeout is missing (install iproute2, util-linux and coreutils)"
        }
        LeftAloneReason::ShapedOtherwise => {
            "it has a queueing discipline that nstar could not put back (it can put back only tbf and what \
             net.core.default_qdisc names)"
        }
        LeftAloneReason::FullOnTheWayIn => {
            "it is full on the way in, and can be slowed only at the end that sends"
        }
        LeftAloneReason::NotFull => "it is not so full that a rate a tenth lower would tell",
        LeftAloneReason::NoTime => "there was no time left for it",
    }
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
    use analysis::{
        counters::Role,
        run::{Link, Processes},
    };

    use super::*;

    fn tier(name: &str) -> Processes {
        Processes { role: Role::Server, name: name.into(), pid: Some(7), processes: 1, on: None }
    }

    #[test]
    fn a_test_of_the_verdict_is_told_with_its_figures() {
        let slowed = |name: &str, elasticity: f64| SlowedTier {
            tier: tier(name).into(),
            by: SlowedBy::Stopping,
            stopped_share: 0.1,
            elasticity,
            elasticity_ci: [elasticity - 0.05, elasticity + 0.05],
        };
        let reason = LeftAloneReason::OtherUser;
        let tested = Confirmation {
            users: 16,
            elapsed_s: 15.0,
            tiers: vec![slowed("back", 0.98), slowed("front", 0.02)],
            left_alone: vec![LeftAlone { tier: tier("postgres").into(), reason }],
            answer: ConfirmationAnswer::Confirmed,
        };
        assert_eq!(
            confirmation(&tested).replace('\u{202f}', " "),
            "Tested by experiment, and confirmed: throughput follows the speed of back (pid 7). With 16 users, stopping back \
             (pid 7) for 10 % of the time cost 0.98 of that in throughput (95 % interval 0.93 to 1.03), and stopping front (pid 7) \
             for 10 % of the time cost 0.02 of that in throughput (95 % interval -0.03 to 0.07). postgres (pid 7) was not slowed: \
             it belongs to another user (run nstar as that user, with sudo if a CPU quota has to be lowered)."
        );
    }

    fn link() -> Slowable {
        let link = Link { name: "eth0".into(), on: None };
        Slowable { link: Some(link), ..Slowable::default() }
    }

    #[test]
    fn it_is_told_by_what_means_a_tier_was_slowed() {
        let slowed = |tier: Slowable, by| SlowedTier {
            tier,
            by,
            stopped_share: 0.1,
            elasticity: 0.98,
            elasticity_ci: [0.93, 1.03],
        };
        let told = |tiers, answer| {
            let tested = Confirmation { users: 16, tiers, answer, ..Confirmation::default() };
            confirmation(&tested).replace('\u{202f}', " ")
        };
        assert_eq!(
            told(vec![slowed(tier("back").into(), SlowedBy::Quota)], ConfirmationAnswer::Confirmed),
            "Tested by experiment, and confirmed: throughput follows the CPU quota of back (pid 7). With 16 users, lowering the \
             CPU quota of back (pid 7) by 10 % cost 0.98 of that in throughput (95 % interval 0.93 to 1.03)."
        );
        assert_eq!(
            told(vec![slowed(link(), SlowedBy::Rate)], ConfirmationAnswer::Elsewhere(link())),
            "Tested by experiment, and not confirmed: throughput follows the rate of the link eth0. With 16 users, lowering \
             the rate of the link eth0 by 10 % cost 0.98 of that in throughput (95 % interval 0.93 to 1.03)."
        );
    }

    #[test]
    fn what_a_lower_quota_does_not_tell_of_is_left_open() {
        let mut tested = Confirmation { answer: ConfirmationAnswer::Nothing, ..Confirmation::default() };
        assert!(confirmation(&tested).ends_with(" whose time the other tiers use up."));
        tested.tiers =
            vec![SlowedTier { tier: tier("back").into(), by: SlowedBy::Quota, ..SlowedTier::default() }];
        let told = confirmation(&tested);
        assert!(told.contains(", or for something within back (pid 7) other than the CPU quota."), "{told}");
    }

    #[test]
    fn a_quota_that_stayed_as_it_was_is_told_beside_what_stopping_showed() {
        let reason = LeftAloneReason::NotAllowed;
        let tested = Confirmation {
            tiers: vec![SlowedTier { tier: tier("back").into(), ..SlowedTier::default() }],
            left_alone: vec![LeftAlone { tier: tier("back").into(), reason }],
            ..Confirmation::default()
        };
        let told = confirmation(&tested);
        let expected = "The CPU quota of back (pid 7) was not lowered: the system did not let nstar do so.";
        assert!(told.ends_with(expected), "{told}");
    }

    /// Who is that user may stop the processes; their quota takes root as well.
    #[test]
    fn what_to_run_as_another_user_is_told_with_what_a_lower_quota_takes_besides() {
        let reason = LeftAloneReason::OtherUser;
        let left_alone = vec![LeftAlone { tier: tier("back").into(), reason }];
        let told = confirmation(&Confirmation { left_alone, ..Confirmation::default() });
        let advice = "(run nstar as that user, with sudo if a CPU quota has to be lowered).";
        assert!(told.ends_with(advice), "{told}");
    }

    #[test]
    fn what_was_not_tested_is_told_with_the_reason() {
        let none_of = |tier: Slowable, reason| Confirmation {
            left_alone: vec![LeftAlone { tier, reason }],
            ..Confirmation::default()
        };
        let none = |reason| none_of(tier("back").into(), reason);
        let told = confirmation(&none(LeftAloneReason::NoTime));
        assert_eq!(told, "Not tested by experiment: there was no time left for it.");
        let told = confirmation(&none(LeftAloneReason::Debugged));
        assert_eq!(told, "Not tested by experiment. back (pid 7) was not slowed: a debugger holds it.");
        let told = confirmation(&none(LeftAloneReason::ProcessesChanged));
        assert!(told.ends_with("not as a whole, as it started processes meanwhile."), "{told}");
        let told = confirmation(&none(LeftAloneReason::QuotaNeedsRoot));
        let quota = "The CPU quota of back (pid 7) was not lowered: only root may (run nstar as root).";
        assert_eq!(told, format!("Not tested by experiment. {quota}"));
        let told = confirmation(&none_of(link(), LeftAloneReason::RateNeedsRoot));
        let rate = "The link eth0 was not slowed: only root may shape it (run nstar as root).";
        assert_eq!(told, format!("Not tested by experiment. {rate}"));
        let changed = |tier| confirmation(&none_of(tier, LeftAloneReason::ChangedByOthers));
        let (link, quota) = (changed(link()), changed(tier("back").into()));
        assert!(link.contains(" The link eth0 was not slowed: somebody else changed it meanwhile"), "{link}");
        assert!(quota.contains(" The CPU quota of back (pid 7) was not lowered: somebody else"), "{quota}");
    }
}
