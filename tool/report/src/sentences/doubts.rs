//! Sentences that say why an answer is not to be relied on.

use analysis::run::{Doubt, LockDoubt, Victim};

use super::holders::database;
use super::locks::sessions_waited;
use super::outcome::requests_failed;
use super::{core_noun, errors, told, warnings};
use crate::number::{cores, count, percent};
use crate::words::users;

/// One reason not to rely on an answer.
pub(crate) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::NothingCompleted => "No request completed.".to_owned(),
        Doubt::NeverBounded { users: most } => format!(
            "Throughput never stopped growing: N* is above {}. Sweep further, for example with --users 1..{}.",
            users(*most),
            most.saturating_mul(4)
        ),
        Doubt::TooUneven { users: most } => format!(
            "Throughput varied too much from step to step, up to {}, to say where it stops growing: allow longer steps \
             (--duration), and look for what else uses the machine.",
            users(*most)
        ),
        Doubt::GeneratorLimit => "The load generator was the limit, so the server may carry more: give the generator more \
                                  processors (--threads, taskset), or run it on another host."
            .to_owned(),
        Doubt::GeneratorTookMore => "The load generator takes more of the shared processors than the server: give each \
                                     its own (taskset for the server, --cpus for the generator), or run the generator on \
                                     another host."
            .to_owned(),
        Doubt::OthersTookMost { cores: used, available } => format!(
            "Other processes on this host used {} of {} {}: stop them and measure again.",
            cores(*used),
            cores(*available),
            core_noun(*available)
        ),
        Doubt::Interference { victim, cores: taken, available } => format!(
            "Processes that are not part of the test took {} of the {} {} that the {} may use: stop them and measure \
             again.",
            cores(*taken),
            cores(*available),
            core_noun(*available),
            match victim {
                Victim::Server => "server",
                Victim::Generator => "load generator",
            }
        ),
        Doubt::OthersUsedProcessors { cores: used, available } => format!(
            "Processes that are not part of the test used {} of {} cores: stop them and measure again.",
            cores(*used),
            cores(*available)
        ),
        Doubt::LocksHeldForLonger { database: of, because } => format!(
            "Transactions queue for locks of {}, but locks are held for longer where what their holder needs is full, \
             and {}.",
            database(of),
            lock_doubt(*because)
        ),
        Doubt::LocksAsWell { database: of } => format!(
            "Transactions queued for locks of {} as well, and it cannot be told which of the two comes first: locks are \
             held for longer where what their holder needs is full.",
            database(of)
        ),
        Doubt::LocksMayBePart { database: of, waiting, at_work } => format!(
            "Locks of the database may be part of the cause, which the figures neither prove nor exclude: {}.",
            sessions_waited(of, *waiting, *at_work)
        ),
        Doubt::RequestsFailed { share, users, errors } => requests_failed(*share, *users, errors),
        Doubt::ManyFailed { share } => format!("{} of the requests failed.", percent(*share)),
        Doubt::Warned { warning } => warnings::warning(warning),
        Doubt::StoppedAnsweringBeyond { users: number, errors: failures } => format!(
            "At {} no request completed{}: the server stopped answering, so what it carries is not known.",
            users(*number),
            if failures.is_empty() { String::new() } else { format!(" ({})", errors(failures)) }
        ),
        Doubt::Jump { from_users, to_users, factor } => format!(
            "Each of {} users got {factor:.1} times the throughput that each of {} users got, which more users cannot \
             cause: the machine or the server changed between these steps. Sweep again when nothing else uses the \
             machine, or with longer steps.",
            count((*to_users).into()),
            count((*from_users).into())
        ),
        Doubt::Stalled { users: number } => {
            format!("At {}, where the verdict is drawn, the server stopped answering.", users(*number))
        }
        Doubt::NotSteady { users: number } => format!(
            "No steady state was reached at {}, where the verdict is drawn: allow longer steps.",
            users(*number)
        ),
        Doubt::Little { users: number, gap } => format!(
            "At {}, where the verdict is drawn, Little's law is off by {}: throughput times response time accounts for \
             fewer or more users than there were.",
            users(*number),
            percent(*gap)
        ),
        Doubt::IdleUsers { users: number, share } => format!(
            "At {}, where the verdict is drawn, {} of them were idle: not yet connected, or backing off after errors.",
            users(*number),
            percent(*share)
        ),
        Doubt::Told { text } => told(text),
    }
}

fn lock_doubt(because: LockDoubt) -> &'static str {
    match because {
        LockDoubt::NotWatched => {
            "the database's own processes could not be watched, so something else may be full as well"
        }
        LockDoubt::SomethingBusy => {
            "a processor, a disk or a link is busy as well: measure again with more room for the servers, or on a machine \
             that does nothing else"
        }
    }
}
