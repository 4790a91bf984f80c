//! Sentences about the tier at which requests queue.

use analysis::run::{HopEvidence, Identity, TierTime};

use super::holders::{name, processes};
use crate::number::{count, tenths, time};
use crate::words::users;

/// Where requests wait.
pub(super) fn sentence(seen: &HopEvidence) -> String {
    match seen {
        HopEvidence::RequestsQueue { at, from_users, from_requests, to_users, to_requests } => format!(
            "Requests queue at {}: {} were there with {}, and {} with {}; what it had handed on to others is not counted.",
            name(at),
            tenths(*to_requests),
            users(*to_users),
            tenths(*from_requests),
            count((*from_users).into())
        ),
        HopEvidence::NotRead { of, requests, users: at } => format!(
            "{} had not read {} of its requests with {}: nothing there was free to take them.",
            processes(of),
            tenths(*requests),
            users(*at)
        ),
        HopEvidence::NotAccepted { of, connections, held, users: at } => format!(
            "{} connections waited for {} to accept them with {}, while it worked on {} requests at a time.",
            tenths(*connections),
            processes(of),
            users(*at),
            tenths(*held)
        ),
        HopEvidence::NotTold { at, connections, users: number } => format!(
            "Of {} connections to {} it could not be told whether a request waited on them with {}: requests may queue there.",
            tenths(*connections),
            called(at),
            users(*number)
        ),
        HopEvidence::ServedElsewhere { of, elsewhere, at_a_time } => format!(
            "Of these, {} were at other tiers, so {} serves {} at a time.",
            tenths(*elsewhere),
            processes(of),
            tenths(*at_a_time)
        ),
        HopEvidence::TimePerTier { tiers, users: at } => {
            let parts: Vec<String> = tiers.iter().map(at_tier).collect();
            format!("With {} a request spent {} (Little's law).", users(*at), parts.join(", "))
        }
        HopEvidence::ConnectionsInUse { of, to, connections, outstanding, from_users, to_users } => format!(
            "{} has {} connections to {}, as many with {} as with {}, and {} of them waited for a response at a time, \
             while more requests waited to be sent on.",
            processes(of),
            tenths(*connections),
            called(to),
            count((*from_users).into()),
            users(*to_users),
            tenths(*outstanding)
        ),
        HopEvidence::NotJoined { to, translation_unread: false } => format!(
            "Nobody observes what serves {}: with an agent on its host (--observe), what holds these requests there can be named.",
            name(to)
        ),
        HopEvidence::NotJoined { to, translation_unread: true } => format!(
            "What serves {} is not known: address translation may lead on from there, and connection tracking, which tells to \
             what, takes root to be read where it is called. Run nstar, or the agent there, as root.",
            name(to)
        ),
    }
}

fn at_tier(tier: &TierTime) -> String {
    format!("{} at {}", time(tier.time_us), name(&tier.at))
}

fn called(to: &Identity) -> String {
    match to {
        Identity::Upstream { .. } => format!("the upstream {}", name(to)),
        _ => name(to).into_owned(),
    }
}
