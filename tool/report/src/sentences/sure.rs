//! How sure a verdict is, what else it may be, and what would tell.

use analysis::run::{Bottleneck, Explanation, Identity, ResourceKind, TellApart};

use super::holders;
use crate::{number, words};

/// At most so many alternatives are named.
const NAMED: usize = 2;

/// `92 %; else worker pool of 4`. Nothing where nothing is claimed.
pub(crate) fn sure(of: &Bottleneck) -> Option<String> {
    let share = (of.kind != ResourceKind::Unknown).then(|| number::percent(of.confidence.share()));
    let parts: Vec<String> = share.into_iter().chain(alternatives(of)).collect();
    (of.kind != ResourceKind::None && !parts.is_empty()).then(|| parts.join("; "))
}

/// `else worker pool of 4 or rate limit`; of an unknown bottleneck `perhaps lock or worker pool of 2`.
pub(crate) fn alternatives(of: &Bottleneck) -> Option<String> {
    let named: Vec<String> =
        of.alternatives.iter().take(NAMED).map(|one| explanation(one, of.identity.as_ref())).collect();
    let word = if of.kind == ResourceKind::Unknown { "perhaps" } else { "else" };
    (!named.is_empty()).then(|| format!("{word} {}", named.join(" or ")))
}

/// An explanation within a sentence, with its holder where that is another than this one.
fn explanation(of: &Explanation, beside: Option<&Identity>) -> String {
    let mut text = words::kind(of.kind).to_owned();
    if let Some(at_a_time) = of.at_a_time.filter(|number| *number > 1) {
        text += &format!(" of {}", number::count(at_a_time.into()));
    }
    match of.identity.as_ref().filter(|identity| Some(*identity) != beside) {
        Some(Identity::Host { on }) => format!("{text} of {}", holders::the_host(on)),
        Some(identity @ (Identity::Disk { .. } | Identity::Link { .. })) => {
            format!("{text} {}", holders::name(identity))
        }
        Some(identity) if of.kind != ResourceKind::Generator => {
            format!("{text} of {}", holders::name(identity))
        }
        _ => text,
    }
}

/// That no explanation is probable enough, and what to do.
pub(super) fn undecided(best: &Explanation, next: Option<&Explanation>, how: TellApart) -> String {
    let told = |of: &Explanation, beside: Option<&Identity>| {
        format!("{}, {}", explanation(of, beside), number::percent(of.probability.share()))
    };
    let first = told(best, None);
    let both = match next {
        Some(next) => format!("{first}; {}", told(next, best.identity.as_ref())),
        None => format!("{first}; and others"),
    };
    format!("What was measured fits several explanations: {both}. {}", tell_apart(how))
}

fn tell_apart(how: TellApart) -> &'static str {
    match how {
        TellApart::PairTest => {
            "A few users at random moments against one would tell: where they wait for each other, one request is served at a \
             time. Allow more time for it (--duration)."
        }
        TellApart::Confirm => {
            "Slowing each tier a little would tell (nstar sweep --confirm; in an experiment, confirm = true)."
        }
        TellApart::WatchTheTier => {
            "Watching the tier behind would tell: run nstar where its processes can be seen."
        }
        TellApart::WatchDatabase => {
            "The database would tell which of its sessions wait for locks (--watch-database)."
        }
        TellApart::QuietHost => "Measuring on a host that does nothing else would tell.",
        TellApart::MoreOfOne => "Giving the server more of one of them, and measuring again, would tell.",
    }
}
