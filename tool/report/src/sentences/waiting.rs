//! Sentences about users that wait: to be let in, or while nothing is busy.

use analysis::run::{ConnectionEvidence, TimesCompared, WaitingEvidence};

use super::at_saturation;
use super::holders::{processes, subject};
use crate::number::{count, percent, quantity, tenths, time};
use crate::words::users;

/// Users that wait while nothing is busy.
pub(super) fn waiting(seen: &WaitingEvidence) -> String {
    match seen {
        WaitingEvidence::MemoryShort { pressure, swapped_in_per_s, users } => format!(
            "Some task waited for memory {} of the time, and {} pages per second came back from swap, {}.",
            percent(*pressure),
            quantity(*swapped_in_per_s),
            at_saturation(*users)
        ),
        WaitingEvidence::OneServed => {
            "About one request is served at a time while nothing is busy: a lock, or a single worker that \
                            waits for something."
                .to_owned()
        }
        WaitingEvidence::OneServedBeside { at_a_time } => format!(
            "About {} requests are under way at a time while nothing is busy: one of them in a lock, or with a single \
             worker, and the others in work that waits for nobody.",
            quantity(*at_a_time)
        ),
        WaitingEvidence::SeveralServed { at_a_time } => {
            let workers = quantity(at_a_time.round());
            format!(
                "About {workers} requests are served at a time while nothing is busy: a pool of {workers} workers, or a \
                 limit of {workers} downstream."
            )
        }
        WaitingEvidence::ServedByLittle { throughput_per_s, alone_us, at_a_time } => format!(
            "By Little's law: {} req/s at most, times {} for a request that waits for no other, is {} requests at a time.",
            quantity(*throughput_per_s),
            time(*alone_us),
            quantity(*at_a_time)
        ),
        WaitingEvidence::Contention(made) => contention(made),
        WaitingEvidence::Pausing(made) => pausing(made),
        WaitingEvidence::NumberServed { .. } if seen.is_one_at_a_time() => {
            format!("About one request was served at a time ({BY_LITTLE}).")
        }
        WaitingEvidence::NumberServed { at_a_time } => {
            format!("About {} requests were served at a time ({BY_LITTLE}).", tenths(*at_a_time))
        }
        WaitingEvidence::AloneAtTheDisk { of, waiting } => format!(
            "With one user {} was found waiting for a disk in {} of the samples, and no watched disk is full: it may be \
             a disk behind a network, or a limit that cannot be seen from here.",
            processes(of),
            percent(*waiting)
        ),
        WaitingEvidence::BusiestHadRoom { resource, busy } => {
            format!("{} was the busiest resource, at only {}.", subject(resource), percent(*busy))
        }
        WaitingEvidence::HostBusyForOthers => {
            "Others kept the processors of this host busy, but the server and the generator \
                                    hardly waited for one."
                .to_owned()
        }
        WaitingEvidence::NothingAnswered { share, longest_us, users } => format!(
            "{} of the time nobody was answered, for up to {} at a stretch, {}.",
            percent(*share),
            time(*longest_us),
            at_saturation(*users)
        ),
        WaitingEvidence::RequestsRejected { requests, too_many, throughput_per_s, users } => format!(
            "{} requests were rejected {} while nothing was busy{}; the others came to {} req/s at most.",
            count(*requests),
            at_saturation(*users),
            match *too_many {
                0 => String::new(),
                many => format!(", {} of them as too many requests (429)", count(many)),
            },
            quantity(*throughput_per_s)
        ),
        WaitingEvidence::InService { requests } => format!(
            "By Little's law {} of the accepted requests were in service on average.",
            quantity(*requests)
        ),
        WaitingEvidence::FellWithUsers { from_users, from_per_s, to_users, to_per_s } => format!(
            "Throughput fell from {} req/s with {} to {} req/s with {} while nothing is busy: a lock that is held for \
             longer the more requests wait for it.",
            quantity(*from_per_s),
            users(*from_users),
            quantity(*to_per_s),
            users(*to_users)
        ),
        WaitingEvidence::ThreadsAtOneFutex {
            from_users,
            from_threads,
            from_ci,
            to_users,
            to_threads,
            to_ci,
            alone_threads,
        } => format!(
            "{} of the server's threads waited at one futex with {}, {} with {}{}: a lock, or a condition that all of them \
             wait for.",
            within(*to_threads, *to_ci),
            users(*to_users),
            within(*from_threads, *from_ci),
            users(*from_users),
            alone_threads.map_or_else(String::new, |threads| format!(" and {} with one", tenths(threads)))
        ),
        WaitingEvidence::MoreThreadsWait { from_users, from_threads, to_users, to_threads } => format!(
            "Of the server's threads {} waited for a lock or a condition with {}, and {} with {}.",
            tenths(*from_threads),
            users(*from_users),
            tenths(*to_threads),
            users(*to_users)
        ),
    }
}

/// A number with its interval, if it has one.
fn within(number: f64, interval: Option<[f64; 2]>) -> String {
    let interval = interval.map(|ends| ends.map(tenths));
    let interval = interval.map_or_else(String::new, |[low, high]| format!(" ({low} to {high})"));
    tenths(number) + &interval
}

fn contention(made: &TimesCompared) -> String {
    let [low, high] = made.longer_ci_us.map(time);
    let [least, most] = made.expected_us.map(time);
    let told = match made.told() {
        Some(true) => "they wait for each other, so something is passed one at a time",
        Some(false) => "they do not wait for each other, so several requests are served at a time",
        None => "that does not tell whether requests are served one at a time or several",
    };
    format!(
        "An experiment: {} who came at random, pausing for {} on average, waited {} ({low} to {high}) longer than one \
         alone, whose request took {}. With one request at a time it would be {least} to {most}: {told}.",
        users(made.users),
        time(made.think_us),
        time(made.longer_us),
        time(made.alone_us)
    )
}

fn pausing(made: &TimesCompared) -> String {
    let [low, high] = made.longer_ci_us;
    let (difference, [least, most], than) = match made.longer_us < 0.0 {
        true => (-made.longer_us, [-high, -low], "less"),
        false => (made.longer_us, [low, high], "more"),
    };
    let told = match made.told() {
        Some(true) => "a pause makes up for the wait, so a limit on the rate delays requests",
        Some(false) => "a pause saves nothing, so requests are not delayed to limit their rate",
        None => "that does not tell a limit on the rate from something held",
    };
    format!(
        "An experiment: requests of one user took {} without pauses, and {} ({} to {}) {than} with pauses of {} on \
         average: {told}.",
        time(made.alone_us),
        time(difference),
        time(least),
        time(most),
        time(made.think_us)
    )
}

const BY_LITTLE: &str = "by Little's law, from the shortest mean response time";

/// Connections that are not accepted, or turned away.
pub(super) fn connections(seen: &ConnectionEvidence) -> String {
    match seen {
        ConnectionEvidence::DescriptorsFull { of, open, limit, users } => format!(
            "{} has {} of its {} descriptors open {}: it cannot take more connections.",
            processes(of),
            count(*open),
            count(*limit),
            at_saturation(*users)
        ),
        ConnectionEvidence::TurnedAway { requests, queued } => format!(
            "{} requests were refused, turned away, reset, closed early or timed out there, and {}.",
            count(*requests),
            if *queued { "connections waited to be accepted" } else { "no connection waited to be accepted" }
        ),
        ConnectionEvidence::RaiseDescriptorLimit => {
            "Raise the limit: `ulimit -n`, or LimitNOFILE= of its systemd unit.".to_owned()
        }
        ConnectionEvidence::ListenQueueFull { overflows_per_s, drops_per_s, users } => format!(
            "{} connections per second found the listen queue full {} ({} were dropped), while nothing was busy.",
            quantity(*overflows_per_s),
            at_saturation(*users),
            quantity(*drops_per_s)
        ),
        ConnectionEvidence::HandshakesRetried { per_s, users } => format!(
            "{} handshakes per second had to be tried again {}, more than lost packets explain: the server, or what stands \
             before it, did not let the connections in.",
            quantity(*per_s),
            at_saturation(*users)
        ),
        ConnectionEvidence::NotAdmitted { users: at, outside } => format!(
            "{} of {} had no connection: throughput times response time accounts only for the others (Little's law).",
            quantity(*outside),
            users(*at)
        ),
        ConnectionEvidence::ListenQueueSeen { port, waiting, backlog, full } => format!(
            "Up to {} connections waited to be accepted on port {port}, whose queue holds {}; it was full in {} of the \
             samples.",
            count(*waiting),
            count(*backlog),
            percent(*full)
        ),
        ConnectionEvidence::AcceptsSlowly { at_a_time } => format!(
            "About {} requests are served at a time, so the server may accept too slowly because its workers are taken.",
            quantity(*at_a_time)
        ),
        ConnectionEvidence::WaitingToBeAccepted { port, connections } => {
            format!("Up to {} connections waited on port {port} to be accepted.", count(*connections))
        }
        ConnectionEvidence::ConnectingTook { share, mean_us, users: at } => format!(
            "{} of the response times with {} went to connecting, {} each time: clients that keep their connections save it.",
            percent(*share),
            users(*at),
            time(*mean_us)
        ),
        ConnectionEvidence::ToldToComeBack { requests } => {
            format!(
                "{} requests were turned away: the server answered that it is too busy.",
                count(*requests)
            )
        }
    }
}
