//! Sentences about users that wait while nothing is busy.

use analysis::run::{Processes, WaitingEvidence as Seen};

use super::holders::{processes, subject};
use super::{at_saturation, experiments};
use crate::number::{count, percent, quantity, tenths, time};
use crate::words::users;

const ONE_SERVED: &str = "About one request is served at a time while nothing is busy: a lock, or a single worker that \
                          waits for something.";
const HOST_BUSY_FOR_OTHERS: &str = "Others kept the processors of this host busy, but the server and the generator \
                                    hardly waited for one.";

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::MemoryShort { pressure, swapped_in_per_s, users } => {
            memory_short(*pressure, *swapped_in_per_s, *users)
        }
        Seen::OneServed => ONE_SERVED.to_owned(),
        Seen::OneServedBeside { at_a_time } => one_served_beside(*at_a_time),
        Seen::SeveralServed { at_a_time } => several_served(&quantity(at_a_time.round())),
        Seen::ServedByLittle { throughput_per_s, alone_us, at_a_time } => {
            served_by_little(*throughput_per_s, *alone_us, *at_a_time)
        }
        Seen::HeldBack { held_back, at_a_time } => held_back_of(*held_back, *at_a_time),
        Seen::Contention { compared, workers } => experiments::contention(compared, *workers),
        Seen::Pausing(compared) => experiments::pausing(compared),
        Seen::NumberServed { at_a_time } => number_served(*at_a_time, seen.is_one_at_a_time()),
        Seen::AloneAtTheDisk { of, waiting } => alone_at_the_disk(of, *waiting),
        Seen::BusiestHadRoom { resource, busy } => {
            format!("{} was the busiest resource, at only {}.", subject(resource), percent(*busy))
        }
        Seen::HostBusyForOthers => HOST_BUSY_FOR_OTHERS.to_owned(),
        Seen::NothingAnswered { share, longest_us, users } => nothing_answered(*share, *longest_us, *users),
        Seen::RequestsRejected { requests, too_many, throughput_per_s, users } => {
            rejected([*requests, *too_many], *throughput_per_s, *users)
        }
        Seen::InService { requests } => in_service(*requests),
        Seen::FellWithUsers { from_users, from_per_s, to_users, to_per_s } => {
            fell((*from_users, *from_per_s), (*to_users, *to_per_s))
        }
        Seen::ThreadsAtOneFutex {
            from_users,
            from_threads,
            from_ci,
            to_users,
            to_threads,
            to_ci,
            alone_threads,
        } => at_one_futex(
            (*from_users, within(*from_threads, *from_ci)),
            (*to_users, within(*to_threads, *to_ci)),
            *alone_threads,
        ),
        Seen::MoreThreadsWait { from_users, from_threads, to_users, to_threads } => {
            more_threads((*from_users, *from_threads), (*to_users, *to_threads))
        }
        Seen::MoreThreadsSleep { from_users, from_threads, from_ci, to_users, to_threads, to_ci } => {
            more_asleep(
                (*from_users, within(*from_threads, *from_ci)),
                (*to_users, within(*to_threads, *to_ci)),
            )
        }
    }
}

fn memory_short(pressure: f64, swapped_in_per_s: f64, users: u32) -> String {
    format!(
        "Some task waited for memory {} of the time, and {} pages per second came back from swap, {}.",
        percent(pressure),
        quantity(swapped_in_per_s),
        at_saturation(users)
    )
}

fn one_served_beside(at_a_time: f64) -> String {
    format!(
        "About {} requests are under way at a time while nothing is busy: one of them in a lock, or with a single \
         worker, and the others in work that waits for nobody.",
        quantity(at_a_time)
    )
}

fn several_served(workers: &str) -> String {
    format!(
        "About {workers} requests are served at a time while nothing is busy: a pool of {workers} workers, or a limit of \
         {workers} downstream."
    )
}

fn served_by_little(throughput_per_s: f64, alone_us: f64, at_a_time: f64) -> String {
    format!(
        "By Little's law: {} req/s at most, times {} for a request that waits for no other, is {} requests at a time.",
        quantity(throughput_per_s),
        time(alone_us),
        quantity(at_a_time)
    )
}

/// Requests of those served at a time, `at_a_time` on average.
fn held_back_of(held_back: f64, at_a_time: f64) -> String {
    format!(
        "Of these, {} only wait for the client to acknowledge the first part of their response, which leaves {}.",
        quantity(held_back),
        quantity(at_a_time)
    )
}

fn number_served(at_a_time: f64, is_one: bool) -> String {
    let number =
        if is_one { "one request was".to_owned() } else { format!("{} requests were", tenths(at_a_time)) };
    format!("About {number} served at a time (by Little's law, from the shortest mean response time).")
}

/// Processes, and the share of the samples that found them waiting.
fn alone_at_the_disk(of: &Processes, waiting: f64) -> String {
    format!(
        "With one user {} was found waiting for a disk in {} of the samples, and no watched disk is full: it may be \
         a disk behind a network, or a limit that cannot be seen from here.",
        processes(of),
        percent(waiting)
    )
}

fn nothing_answered(share: f64, longest_us: f64, users: u32) -> String {
    format!(
        "{} of the time nobody was answered, for up to {} at a stretch, {}.",
        percent(share),
        time(longest_us),
        at_saturation(users)
    )
}

fn in_service(requests: f64) -> String {
    format!("By Little's law {} of the accepted requests were in service on average.", quantity(requests))
}

/// How many requests were rejected, and how many of them as too many.
fn rejected([requests, too_many]: [u64; 2], throughput_per_s: f64, users: u32) -> String {
    format!(
        "{} requests were rejected {} while nothing was busy{}; the others came to {} req/s at most.",
        count(requests),
        at_saturation(users),
        match too_many {
            0 => String::new(),
            many => format!(", {} of them as too many requests (429)", count(many)),
        },
        quantity(throughput_per_s)
    )
}

/// Users, and requests per second.
fn fell(from: (u32, f64), to: (u32, f64)) -> String {
    format!(
        "Throughput fell from {} req/s with {} to {} req/s with {} while nothing is busy: a lock that is held for longer \
         the more requests wait for it.",
        quantity(from.1),
        users(from.0),
        quantity(to.1),
        users(to.0)
    )
}

/// Users, and threads that waited; of one user alone, if they were counted.
fn at_one_futex(from: (u32, String), to: (u32, String), alone: Option<f64>) -> String {
    format!(
        "{} of the server's threads waited at one futex with {}, {} with {}{}: a lock, or a condition that all of them \
         wait for.",
        to.1,
        users(to.0),
        from.1,
        users(from.0),
        alone.map_or_else(String::new, |threads| format!(" and {} with one", tenths(threads)))
    )
}

/// Users, and threads that waited.
fn more_threads(from: (u32, f64), to: (u32, f64)) -> String {
    format!(
        "Of the server's threads {} waited for a lock or a condition with {}, and {} with {}.",
        tenths(from.1),
        users(from.0),
        tenths(to.1),
        users(to.0)
    )
}

/// Users, and threads that slept.
fn more_asleep(from: (u32, String), to: (u32, String)) -> String {
    format!(
        "{} of the server's threads slept until a time with {}, {} with {}: a limit on the rate that delays requests, or \
         something that is tried again after a pause.",
        to.1,
        users(to.0),
        from.1,
        users(from.0)
    )
}

/// A number with its interval, if it has one.
fn within(number: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval.map(|ends| ends.map(tenths));
    let interval = interval.map_or_else(String::new, |[low, high]| format!(" ({low} to {high})"));
    tenths(number) + &interval
}
