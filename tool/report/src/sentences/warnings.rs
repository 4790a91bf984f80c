//! Sentences that warn.

use analysis::counters::Role;
use analysis::run::{
    Cause, DatabaseTrouble, FewerUsers, ListenQueue, Processes, Replaced, Replicate, ServerUnwatched, Shares,
};
use analysis::ticks::{ErrorCounts, ErrorKind};

use super::holders::processes;
use super::{course, errors, generator, kernel, stalls, told, unwatched};
use crate::metrics::percentile_name;
use crate::number::{about, cores, count, percent, prefixed, quantity, time};
use crate::words::users;

/// A warning as a sentence: the cause, by how much, and the remedy.
pub(crate) fn warning(cause: &Cause) -> String {
    match cause {
        Cause::Interrupted => INTERRUPTED.to_owned(),
        Cause::DebugBuild => DEBUG_BUILD.to_owned(),
        Cause::Stalled { users, completed, stalled_s } => stalled(*users, *completed, *stalled_s),
        Cause::ServerReplaced { before, after, users, times } => replaced(before, after, *users, *times),
        Cause::RequestsFailed { first_users, errors, statuses } => failed(*first_users, errors, statuses),
        Cause::TooUneven { users } => too_uneven(*users),
        Cause::StillGrew { users, asked } => still_grew(*users, *asked),
        Cause::NotWatched { reason } => not_watched(reason),
        Cause::SocketsUnread { on, reason, others } => unwatched::sockets(on, reason, *others),
        Cause::TiersNotWatched { on, addresses } => unwatched::tiers(on, addresses),
        Cause::AddressesLeftOut { on, users, addresses, of } => {
            unwatched::addresses(on, *users, *addresses, *of)
        }
        Cause::AgentTrouble { host, trouble } => unwatched::agent(host, trouble),
        Cause::DatabaseTrouble { database, reason } => database_trouble(database, reason),
        Cause::DatabaseIdle { database } => database_idle(database),
        Cause::GeneratorBusy { users, busy } => generator_busy(*users, *busy),
        Cause::NearCeiling { users, share, ceiling_per_s } => near_ceiling(*users, *share, *ceiling_per_s),
        Cause::OneGeneratorBusy { generator: name, users, busy } => one_busy(name, *users, *busy),
        Cause::OneGeneratorNearCeiling { generator: name, users, share, ceiling_per_s } => {
            one_near_ceiling(name, *users, *share, *ceiling_per_s)
        }
        Cause::GeneratorTrouble { generator: name, trouble } => generator::trouble(name, trouble),
        Cause::MeasuredAgain { times, generator: name, loss } => {
            generator::measured_again(*times, name, loss)
        }
        Cause::NotProven { generator: name, loss } => generator::not_proven(name, loss),
        Cause::SharedCores { users, server, shares, alone_per_s } => {
            shared_cores(*users, server, shares, *alone_per_s)
        }
        Cause::NotSteady { users } => not_steady(users),
        Cause::IdleUsers { users, share } => idle_users(*users, *share),
        Cause::Redirected { status } => redirected("The server", *status) + ".",
        Cause::HeldBack { users, share, pause_us, response_us } => {
            held_back(*users, *share, *pause_us, *response_us)
        }
        Cause::Changed { users, course } => changed(*users, course),
        Cause::Stalls(seen) => stalls::sentence(seen),
        Cause::NoInterval { users } => no_interval(users),
        Cause::WideInterval { users, half_width } => wide_interval(*users, *half_width),
        Cause::FewResponses { users, samples, share, needed } => {
            few_responses(*users, *samples, percentile_name(*share), *needed)
        }
        Cause::Little { users, gap } => little(*users, *gap),
        Cause::Steal { users, share } => steal(*users, *share),
        Cause::LimitReached { limit } => kernel::sentence(limit),
        Cause::ListenQueue { users, overflows_per_s, not_full } => {
            listen_queue(*users, *overflows_per_s, not_full.as_ref())
        }
        Cause::FewerUsers(limit) => fewer_users(limit),
        Cause::Mix { request, share, asked, replaced } => mix(request, *share, *asked, replaced),
        Cause::NotCold { users, share } => not_cold(*users, *share),
        Cause::MemoryNotLimited { program, limit_bytes, os_error } => {
            memory_not_limited(program, *limit_bytes, *os_error)
        }
        Cause::DiskNotLimited { program, os_error } => disk_not_limited(program, *os_error),
        Cause::Told { text } => told(text),
    }
}

const INTERRUPTED: &str = "The run was interrupted: it covers only what was measured until then.";

const DEBUG_BUILD: &str =
    "This nstar was built without optimisation, so its generator is slow: build with --release.";

fn stalled(number: u32, completed: u64, stalled_s: f64) -> String {
    format!(
        "At {}, after {} completed requests, the server answered nothing for the last {stalled_s:.1} s of the step: it \
         died, was stopped, or hangs.",
        users(number),
        count(completed)
    )
}

fn replaced(before: &Processes, after: &Processes, number: Option<u32>, times: u64) -> String {
    let at = number.map_or_else(String::new, |number| format!(" at {}", users(number)));
    let in_all = if times > 1 { format!(" (the first of {} times)", count(times)) } else { String::new() };
    let what = if before.role == Role::Downstream { ", a tier behind the server," } else { "" };
    format!(
        "{}{what} ended while it was measured{at}, and {} has served since{in_all}: figures from before and after are of different \
         processes. Look for what ended it, and measure again.",
        processes(before),
        processes(after)
    )
}

fn too_uneven(most: u32) -> String {
    format!(
        "The steps up to {} do not show beyond doubt where throughput stops growing, so the maximum given is a lower \
         bound. Allow longer steps (--duration), and look for what else uses the machine.",
        users(most)
    )
}

fn still_grew(most: u32, asked: Option<u32>) -> String {
    let more = match asked {
        Some(asked) => format!("Give it time for {}", users(asked)),
        None => "Sweep to more users".to_owned(),
    };
    format!("Throughput still grew at {}, so the maximum given is a lower bound. {more}.", users(most))
}

fn not_watched(reason: &ServerUnwatched) -> String {
    format!(
        "The server's processes could not be watched: {}. N* stands, but nothing of the server can be named as its cause.",
        unwatched::server(reason)
    )
}

fn database_trouble(database: &str, reason: &DatabaseTrouble) -> String {
    format!(
        "The locks of the database {database} were not watched throughout: {}.",
        unwatched::database(reason)
    )
}

fn database_idle(database: &str) -> String {
    format!(
        "No session was ever seen at work in the database {database}: is it the one that the server uses?"
    )
}

fn generator_busy(number: u32, busy: f64) -> String {
    format!(
        "The load generator was busy {} at {}: part of the response times is its own. {MORE_PROCESSORS}",
        percent(busy),
        users(number)
    )
}

fn near_ceiling(number: u32, share: f64, ceiling_per_s: f64) -> String {
    format!(
        "The throughput at {} is {} of what this host's generator can do at most ({} requests/s of the cheapest kind): \
         part of the response times is its own. {MORE_PROCESSORS}",
        users(number),
        percent(share),
        quantity(ceiling_per_s)
    )
}

fn one_busy(name: &str, number: u32, busy: f64) -> String {
    format!(
        "The load generator on {name} was busy {} at {}: part of the response times of its users is its own. {MORE_GENERATORS}",
        percent(busy),
        users(number)
    )
}

fn one_near_ceiling(name: &str, number: u32, share: f64, ceiling_per_s: f64) -> String {
    format!(
        "What the load generator on {name} made at {} is {} of what it can do at most ({} requests/s of the cheapest kind): \
         part of the response times of its users is its own. {MORE_GENERATORS}",
        users(number),
        percent(share),
        quantity(ceiling_per_s)
    )
}

const MORE_GENERATORS: &str = "Add another (--generator), or give it more processors (--threads).";

fn not_steady(at: &[u32]) -> String {
    format!("No steady state at {}: allow longer steps, or look for what changes meanwhile.", listed(at))
}

fn idle_users(number: u32, share: f64) -> String {
    format!(
        "At {}, {} of them were idle on average: not yet connected, because the server accepts slowly, or backing off \
         after errors. That step measures fewer users than it says.",
        users(number),
        percent(share)
    )
}

/// That somebody answered the first request with a redirect.
pub(crate) fn redirected(server: &str, status: u16) -> String {
    format!(
        "{server} answered the first request with a redirect (status {status}), which counts as served and is not followed, so \
         that the redirect is measured; ask for the address that it leads to (--expect {status}, or `expect = {status}` in a \
         scenario, says that it is meant)"
    )
}

fn held_back(number: u32, share: f64, pause_us: f64, response_us: f64) -> String {
    format!(
        "At {}, {} of the responses paused for {} before their last part. TCP waits that long where a server writes a response \
         in pieces: the second is held back until the client acknowledges the first, which it does late (Nagle’s algorithm \
         and delayed acknowledgements). Write head and body at once, or set TCP_NODELAY on the server’s connections: of {} \
         about {} would be left.",
        users(number),
        percent(share),
        time(pause_us),
        time(response_us),
        time((response_us - share * pause_us).max(0.0))
    )
}

fn changed(number: u32, all: &[Replicate]) -> String {
    format!(
        "Throughput at {} changed while the server was measured: {}. What the server does for other reasons than users \
         (its data grows, caches fill, other programs run) is in these figures.",
        users(number),
        course(all)
    )
}

fn no_interval(at: &[u32]) -> String {
    format!("Too short for a 95 % interval at {}: allow longer steps.", listed(at))
}

fn wide_interval(number: u32, half_width: f64) -> String {
    format!(
        "The throughput at {} is known only to {} either way: allow longer steps.",
        users(number),
        percent(half_width)
    )
}

fn few_responses(number: u32, samples: u64, percentile: String, needed: u64) -> String {
    format!(
        "Too few response times at {} for {percentile} and beyond: {}, of {} that it takes to lie above it. Allow longer \
         steps (--duration).",
        users(number),
        count(samples),
        count(needed)
    )
}

fn little(number: u32, gap: f64) -> String {
    format!(
        "Little's law, N = X (R + Z), is off by {} at {}, more than the intervals explain: do not rely on that step.",
        percent(gap),
        users(number)
    )
}

fn steal(number: u32, share: f64) -> String {
    format!(
        "The hypervisor took {} of the processor time at {}; busy shares count against what was left.",
        percent(share),
        users(number)
    )
}

fn listen_queue(number: u32, overflows_per_s: f64, not_full: Option<&ListenQueue>) -> String {
    format!(
        "{} connections per second found a listen queue of this host full at {}, {}.",
        quantity(overflows_per_s),
        users(number),
        whose_queue(not_full)
    )
}

fn not_cold(number: u32, share: Option<f64>) -> String {
    let found = match share {
        Some(share) => format!("only {} of the bytes sent were read from a disk", percent(share)),
        None => "how many of the bytes sent were read from a disk is not known, because what the server reads could not \
                 be seen (that may need root)"
            .to_owned(),
    };
    format!(
        "The data was meant to come from the disk, but at {} {found}. Give the server less memory, or use more data.",
        users(number)
    )
}

fn memory_not_limited(program: &str, limit_bytes: u64, os_error: Option<i32>) -> String {
    format!(
        "{program} was to have at most {} of memory, but could not be limited: {}. That needs root. What was measured is \
         without that limit.",
        prefixed(limit_bytes as f64, "B"),
        unwatched::error(os_error)
    )
}

fn disk_not_limited(program: &str, os_error: Option<i32>) -> String {
    format!(
        "What {program} asks of the disk was to be limited, but could not be: {}. That needs root, and a folder on a disk. \
         What was measured is without that limit.",
        unwatched::error(os_error)
    )
}

fn fewer_users(limit: &FewerUsers) -> String {
    let FewerUsers { asked, files_needed, files_limit, allowed } = limit;
    format!(
        "{} need {} open files, but a process may have {} here: ran with at most {}. Run `ulimit -n {files_needed}` first, \
         as root if the hard limit is lower.",
        users(*asked),
        count(*files_needed),
        count(*files_limit),
        users(*allowed)
    )
}

const MORE_PROCESSORS: &str = "Give it more processors, or another host.";

fn failed(first_users: Option<u32>, failures: &ErrorCounts, statuses: &[(u16, u64)]) -> String {
    let first = first_users.map_or_else(
        || "only outside the measured part of the steps".to_owned(),
        |number| format!("first at {}", users(number)),
    );
    let parts: Vec<String> =
        statuses.iter().map(|(status, number)| format!("{status} {} times", count(*number))).collect();
    let statuses = if parts.is_empty() { String::new() } else { format!(" (status {})", parts.join(", ")) };
    let waited = match failures.contains_key(&ErrorKind::TimedOut) {
        true => {
            " Those that timed out are in the percentiles of response times as the time they waited, which is the least they would have taken."
        }
        false => "",
    };
    format!(
        "Requests failed, {first}: {}{statuses}. Only completed requests count.{waited}",
        errors(failures)
    )
}

fn shared_cores(
    number: Option<u32>,
    server: &Processes,
    shares: &Shares,
    alone_per_s: Option<f64>,
) -> String {
    let at = number.map_or_else(String::new, |number| format!("at {} ", users(number)));
    let alone = alone_per_s.map_or_else(String::new, |per_s| {
        format!(" Alone on them it would reach about {} req/s.", about(per_s))
    });
    format!(
        "Generator and server shared processors: {at}the generator used {} and {} with its tiers {} of {} cores.{alone}",
        cores(shares.generator),
        processes(server),
        cores(shares.tiers),
        cores(shares.available)
    )
}

fn whose_queue(not_full: Option<&ListenQueue>) -> String {
    match not_full {
        Some(ListenQueue { port, waiting, backlog }) => format!(
            "though never more than {} of {} places in the queue of port {port} were seen taken: it is another server's, \
             or was full only for moments",
            count(*waiting),
            count(*backlog)
        ),
        None => "of which the smaller of net.core.somaxconn and the server's backlog is the limit".to_owned(),
    }
}

fn mix(request: &str, share: f64, asked: f64, replaced: &[Replaced]) -> String {
    let replaced = replaced.iter().map(|kind| {
        format!(
            " {} times a user had nothing to take for {}, and made another request.",
            count(kind.times),
            kind.request
        )
    });
    format!(
        "{request} was to be {} of the requests, and was {} of those that completed.{}",
        percent(asked),
        percent(share),
        replaced.collect::<String>()
    )
}

/// `8, 16 users`; `1 user`.
pub(crate) fn listed(numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(|number| count((*number).into())).collect();
    format!("{} {}", all.join(", "), if numbers == [1] { "user" } else { "users" })
}
