//! Sentences about the sweep as a whole.

use analysis::run::{Aside, OutcomeEvidence as Seen};
use analysis::ticks::ErrorCounts;

use super::holders::subject;
use super::{errors, told};
use crate::number::{cores, percent, quantity};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::NothingCompleted => "No request completed, so there is no throughput to explain.".to_owned(),
        Seen::OnlyStep { users: number } => only_step(*number),
        Seen::StillGrew { users: number } => format!(
            "Throughput still grew at {}, the most that were tried, so nothing stopped the server yet.",
            users(*number)
        ),
        Seen::TooUneven { users: number } => format!(
            "The steps up to {} are too uneven to show whether throughput stopped growing.",
            users(*number)
        ),
        Seen::NotWatched { users: number } => format!(
            "Throughput stopped growing at N* = {}, but the server's processes could not be watched, so no resource can \
             be named.",
            users(*number)
        ),
        Seen::NothingExplains { users: number, throughput_per_s } => format!(
            "Throughput stopped growing at N* = {} and {} req/s, and nothing that was watched explains it.",
            users(*number),
            quantity(*throughput_per_s)
        ),
        Seen::UnwatchedWork { cores: more } => format!(
            "Processes that were not watched, or interrupts, used {} cores more than under a light load.",
            cores(*more)
        ),
        Seen::Busiest { resource, busy, aside } => {
            format!("{} was the busiest, at {}{}.", subject(resource), percent(*busy), but(*aside))
        }
        Seen::CloseRival { resource, busy } => format!(
            "{} was close behind at {}, so the two are hard to tell apart.",
            subject(resource),
            percent(*busy)
        ),
        Seen::RequestsFailed { share, users, errors } => requests_failed(*share, *users, errors),
        Seen::Told { text } => told(text),
    }
}

fn but(aside: Option<Aside>) -> String {
    match aside {
        None => String::new(),
        Some(Aside::OthersUsedIt { tier_cores }) => format!(
            ", but the server and its tiers used only {} cores of it: measure again while this host does nothing else",
            cores(tier_cores)
        ),
        Some(Aside::WhateverTheLoad) => {
            ", but it was as busy whatever the load, like a loop that polls, so that proves nothing"
                .to_owned()
        }
    }
}

/// States that a sweep of a single step shows nothing of growth.
pub(super) fn only_step(number: u32) -> String {
    format!(
        "Only {} {} tried, which does not show where throughput stops growing.",
        users(number),
        if number == 1 { "was" } else { "were" }
    )
}

/// States how many requests failed where the verdict is drawn.
pub(super) fn requests_failed(share: f64, number: u32, failures: &ErrorCounts) -> String {
    format!(
        "{} of the requests failed at {} ({}), so the throughput of the others is not what the server carries.",
        percent(share),
        users(number),
        errors(failures)
    )
}
