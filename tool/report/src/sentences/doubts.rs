//! Sentences that say why an answer is not to be relied on.

use analysis::run::{Database, Doubt, LockDoubt, Replicate, Slowable, Victim};
use analysis::ticks::ErrorCounts;

use super::holders::{self, database};
use super::locks::sessions_waited;
use super::outcome::{self, requests_failed};
use super::{core_noun, course, errors, sure, told, warnings};
use crate::number::{cores, count, percent, quantity};
use crate::words::users;

/// One reason not to rely on an answer.
pub(crate) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::NothingCompleted => "No request completed.".to_owned(),
        Doubt::NeverBounded { users, asked } => never_bounded(*users, *asked),
        Doubt::OnlyStep { users } => only_step(*users),
        Doubt::TooUneven { users } => too_uneven(*users),
        Doubt::Jump { from_users, to_users, factor, held_back } => {
            jump(*from_users, *to_users, *factor) + &because([*from_users, *to_users], *held_back)
        }
        Doubt::Dip { users, per_s, around_users, around_per_s, held_back } => {
            let [_, above] = *around_users;
            dip((*users, *per_s), *around_users, *around_per_s) + &because([*users, above], *held_back)
        }
        Doubt::MaximumUnknown { half_width } => maximum_unknown(*half_width),
        Doubt::GeneratorLimit => GENERATOR_LIMIT.to_owned(),
        Doubt::EndedEarly { generator } => ended_early(generator),
        Doubt::GeneratorTookMore => GENERATOR_TOOK_MORE.to_owned(),
        Doubt::OthersTookMost { cores, available } => others_took_most(*cores, *available),
        Doubt::Interference { victim, cores, available } => interference(*victim, *cores, *available),
        Doubt::OthersUsedProcessors { cores, available } => others_used(*cores, *available),
        Doubt::LocksHeldForLonger { database, because } => locks_held_for_longer(database, *because),
        Doubt::LocksAsWell { database } => locks_as_well(database),
        Doubt::LocksMayBePart { database, waiting, at_work } => {
            locks_may_be_part(database, *waiting, *at_work)
        }
        Doubt::RequestsFailed { share, users, errors } => requests_failed(*share, *users, errors),
        Doubt::ManyFailed { share } => format!("{} of the requests failed.", percent(*share)),
        Doubt::StoppedAnsweringBeyond { users, errors } => stopped_answering_beyond(*users, errors),
        Doubt::Stalled { users } => at_the_verdict(*users, "the server stopped answering."),
        Doubt::NotSteady { users } => {
            at_the_verdict(*users, "no steady state was reached: allow longer steps.")
        }
        Doubt::Changed { users, before_per_s, after_per_s, course } => {
            changed(*users, [*before_per_s, *after_per_s], course)
        }
        Doubt::Little { users, gap } => little(*users, *gap),
        Doubt::IdleUsers { users, share } => idle_users(*users, *share),
        Doubt::NotConfirmed(tier) => not_confirmed(tier),
        Doubt::Undecided { best, next, tell_apart } => sure::undecided(best, next.as_ref(), *tell_apart),
        Doubt::Warned { warning } => warnings::warning(warning),
        Doubt::Told { text } => told(text),
    }
}

const GENERATOR_LIMIT: &str = "The load generator was the limit, so the server may carry more: give the generator more \
                               processors (--threads, taskset), or run it on another host.";

const GENERATOR_TOOK_MORE: &str = "The load generator takes more of the shared processors than the server: give each its \
                                   own (taskset for the server, --cpus for the generator), or run the generator on \
                                   another host.";

fn ended_early(generator: &str) -> String {
    format!("The run ended early, because of trouble with the load generator on {generator}.")
}

fn not_confirmed(tier: &Slowable) -> String {
    format!(
        "Slowing the holder of the bottleneck did not slow the server; slowing {} did.",
        holders::slowable(tier)
    )
}

fn never_bounded(most: u32, asked: Option<u32>) -> String {
    let more = match asked {
        Some(asked) => {
            format!(
                "The time was up before {} were tried: give it more (--duration; in an experiment, time)",
                users(asked)
            )
        }
        None => format!("Sweep further, for example with --users 1..{}", most.saturating_mul(4)),
    };
    format!("Throughput never stopped growing: N* is above {}. {more}.", users(most))
}

/// A range beyond the only number of users that was tried, and around it.
fn only_step(number: u32) -> String {
    format!(
        "{} Sweep a range, for example with --users 1..{}.",
        outcome::only_step(number),
        number.saturating_mul(4)
    )
}

fn too_uneven(most: u32) -> String {
    format!(
        "Throughput varied too much from step to step, up to {}, to say where it stops growing: allow longer steps \
         (--duration), and look for what else uses the machine.",
        users(most)
    )
}

fn jump(from_users: u32, to_users: u32, factor: f64) -> String {
    format!(
        "Each of {} users got {factor:.1} times the throughput that each of {} users got, which more users cannot cause: ",
        count(to_users.into()),
        count(from_users.into())
    )
}

fn dip((number, per_s): (u32, f64), around_users: [u32; 2], around_per_s: [f64; 2]) -> String {
    let [fewer, more] = around_users.map(|number| count(number.into()));
    let [before, after] = around_per_s.map(quantity);
    format!(
        "Throughput was {} requests/s with {}, but {before} with {fewer} and {after} with {more}: ",
        quantity(per_s),
        users(number)
    )
}

/// What made two steps differ: the shares of their responses that were held back, if it was that.
fn because(of_users: [u32; 2], held_back: Option<[f64; 2]>) -> String {
    let Some([many, few]) = held_back.map(|shares| shares.map(percent)) else {
        return "the machine or the server changed between these steps. Sweep again when nothing else uses the machine, or with \
                longer steps."
            .to_owned();
    };
    let [here, there] = of_users.map(|number| count(number.into()));
    format!(
        "with {here} of them {many} of the responses were held back for some 40 ms until their first part was acknowledged, \
         against {few} with {there}. Write head and body at once, or set TCP_NODELAY on the server’s connections, and sweep again."
    )
}

fn maximum_unknown(half_width: f64) -> String {
    format!(
        "The maximum throughput is known only to {} either way: measurements of it differ widely. Allow longer steps \
         (--duration), and look for what changes meanwhile.",
        percent(half_width)
    )
}

fn changed(number: u32, [before_per_s, after_per_s]: [f64; 2], all: &[Replicate]) -> String {
    let measured = match all {
        [] | [_] => {
            format!(
                "{} requests/s at first and {} requests/s at the end",
                quantity(before_per_s),
                quantity(after_per_s)
            )
        }
        _ => course(all),
    };
    format!(
        "The server changed while it was measured: {} got {measured}, so N* is not to be relied on. Give each step the same \
         data (a server slows down as it fills, and speeds up as caches do), and look for what else uses the machine.",
        users(number)
    )
}

fn others_took_most(used: f64, available: f64) -> String {
    format!(
        "Other processes on this host used {} of {} {}: stop them and measure again.",
        cores(used),
        cores(available),
        core_noun(available)
    )
}

fn interference(victim: Victim, taken: f64, available: f64) -> String {
    format!(
        "Processes that are not part of the test took {} of the {} {} that the {} may use: stop them and measure again.",
        cores(taken),
        cores(available),
        core_noun(available),
        match victim {
            Victim::Server => "server",
            Victim::Generator => "load generator",
        }
    )
}

fn others_used(used: f64, available: f64) -> String {
    format!(
        "Processes that are not part of the test used {} of {} cores: stop them and measure again.",
        cores(used),
        cores(available)
    )
}

fn locks_held_for_longer(of: &Database, because: LockDoubt) -> String {
    let because = match because {
        LockDoubt::NotWatched => {
            "the database's own processes could not be watched, so something else may be full as well"
        }
        LockDoubt::SomethingBusy => {
            "a processor, a disk or a link is busy as well: measure again with more room for the servers, or on a machine \
             that does nothing else"
        }
    };
    format!(
        "Transactions queue for locks of {}, but locks are held for longer where what their holder needs is full, and \
         {because}.",
        database(of)
    )
}

fn locks_as_well(of: &Database) -> String {
    format!(
        "Transactions queued for locks of {} as well, and it cannot be told which of the two comes first: locks are held \
         for longer where what their holder needs is full.",
        database(of)
    )
}

fn locks_may_be_part(of: &Database, waiting: f64, at_work: f64) -> String {
    format!(
        "Locks of the database may be part of the cause, which the figures neither prove nor exclude: {}.",
        sessions_waited(of, waiting, at_work)
    )
}

fn stopped_answering_beyond(number: u32, failures: &ErrorCounts) -> String {
    let failures = if failures.is_empty() { String::new() } else { format!(" ({})", errors(failures)) };
    format!(
        "At {} no request completed{failures}: the server stopped answering, so what it carries is not known.",
        users(number)
    )
}

fn little(number: u32, gap: f64) -> String {
    let rest = format!(
        "Little's law is off by {}: throughput times response time accounts for fewer or more users than there were.",
        percent(gap)
    );
    at_the_verdict(number, &rest)
}

fn idle_users(number: u32, share: f64) -> String {
    let rest =
        format!("{} of them were idle: not yet connected, or backing off after errors.", percent(share));
    at_the_verdict(number, &rest)
}

/// The trouble at the step that the verdict rests on.
fn at_the_verdict(number: u32, rest: &str) -> String {
    format!("At {}, where the verdict is drawn, {rest}", users(number))
}
