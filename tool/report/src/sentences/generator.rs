//! Sentences about the load generator, or several.

use analysis::run::{GeneratorEvidence as Seen, GeneratorLoss, GeneratorTrouble};

use super::holders::subject;
use crate::number::{cores, count, elapsed, percent, prefixed, time};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::GeneratorBusy { busy, threads } => format!(
            "The load generator was busy {} of the time of its {} {}: it had no time left to send more.",
            percent(*busy),
            cores(*threads),
            if *threads > 1.0 { "threads" } else { "thread" }
        ),
        Seen::OneGeneratorBusy { generator, busy } => format!(
            "The load generator on {generator} was busy {} of the time: it had no time left to send more for its share of \
             the users.",
            percent(*busy)
        ),
        Seen::OneGeneratorLate { generator, lag_us, response_us } => format!(
            "The load generator on {generator} handled events up to {} late (99th percentile), against a mean response time \
             of {}, while no resource of the server was full.",
            time(*lag_us),
            time(*response_us)
        ),
        Seen::GeneratorStarved { share } => format!(
            "The load generator waited for a processor {} of the time, while no resource of the server was full.",
            percent(*share)
        ),
        Seen::GeneratorLate { lag_us, response_us } => format!(
            "The load generator handled events up to {} late (99th percentile), against a mean response time of {}, \
             while no resource of the server was full.",
            time(*lag_us),
            time(*response_us)
        ),
        Seen::GeneratorThrottled { periods, cores: quota } => format!(
            "The load generator was stopped in {} of the periods of its CPU quota of {} cores.",
            percent(*periods),
            cores(*quota)
        ),
        Seen::GeneratorOutOfPorts { users: number } => format!(
            "The load generator ran out of descriptors or local ports at {}: raise `ulimit -n` or widen \
             net.ipv4.ip_local_port_range.",
            users(*number)
        ),
        Seen::ServerNotWatched => "The server could not be watched.".to_owned(),
        Seen::ServerBusyToo { busy } => format!(
            "The server's busiest resource was {} busy as well, so it cannot be told which comes first.",
            percent(*busy)
        ),
        Seen::ServerBusiest { resource, busy, had_room: true } => {
            format!("{} had room: {} busy.", subject(resource), percent(*busy))
        }
        Seen::ServerBusiest { resource, busy, had_room: false } => {
            format!("{} was {} busy.", subject(resource), percent(*busy))
        }
        Seen::ServerIdle => "Nothing of the server was seen to be busy.".to_owned(),
    }
}

/// What went wrong with one of several generators, and what that means: a sentence.
pub(super) fn trouble(generator: &str, trouble: &GeneratorTrouble) -> String {
    match trouble {
        GeneratorTrouble::Lost { users: number, loss, ended_run } => format!(
            "The load generator on {generator} was lost at {}: it {}. {}",
            users(*number),
            lost(loss),
            if *ended_run { RUN_ENDED } else { MEASURED_AGAIN }
        ),
        GeneratorTrouble::TooFewFiles { users: number, allowed } => format!(
            "After another was lost, the load generator on {generator} was to have {}, and its limit on open files allows \
             {}: raise it there (`ulimit -n`). {RUN_ENDED}",
            users(*number),
            count((*allowed).into())
        ),
        GeneratorTrouble::FewerUsers { asked, allowed, of_this } => format!(
            "The load generator on {generator} may have {}, by its limit on open files, so that there were at most {} of all \
             generators together, not the {} asked for: raise it there (`ulimit -n`).",
            users(*of_this),
            users(*allowed),
            count((*asked).into())
        ),
        GeneratorTrouble::Clock { error_us } => format!(
            "The clock of the load generator on {generator} is known to {} only, because no answer came back sooner: its \
             users may begin a step that much before or after the others.",
            time(*error_us)
        ),
        GeneratorTrouble::StartedLate { late_us } => format!(
            "The load generator on {generator} began a step {} after the others: the way to it, or its host, was slow. That \
             time belongs to no measurement.",
            time(*late_us as f64)
        ),
        GeneratorTrouble::LinkFull { link, used_bits_per_s, limit_bits_per_s } => format!(
            "The link {link} of the load generator on {generator} was full: it carried {} of {} for seconds. What waited for it \
             was measured as if the server were slow; use a faster link, or more generators.",
            prefixed(*used_bits_per_s, "bit/s"),
            prefixed(*limit_bits_per_s, "bit/s")
        ),
        GeneratorTrouble::Throttled { cores: quota, periods } => format!(
            "The load generator on {generator} was stopped in up to {} of the periods of its CPU quota of {} cores. What waited \
             meanwhile was measured as if the server were slow; raise the quota, or use more generators.",
            percent(*periods),
            cores(*quota)
        ),
    }
}

const RUN_ENDED: &str = "The run ended with that: it covers only the steps that were complete by then.";

const MEASURED_AGAIN: &str = "What was being measured was measured again without it; nothing that was counted before it was \
                              lost is in that.";

/// A measurement that was made again, so many times, since a generator was lost.
pub(super) fn measured_again(times: u32, generator: &str, loss: &GeneratorLoss) -> String {
    let often = if times > 1 { format!(" ({} times in all)", count(times.into())) } else { String::new() };
    format!(
        "The load generator on {generator} was lost, and the measurement with it: it {}. All of it was made again from the \
         beginning, on programs that were started anew{often}; nothing that was counted before is in it.",
        lost(loss)
    )
}

/// A measurement after which nothing was proved, since a generator was lost.
pub(super) fn not_proven(generator: &str, loss: &GeneratorLoss) -> String {
    format!(
        "Whether the programs kept their promises was not proved: the load generator on {generator} was lost (it {}), and what \
         it had been promised until then is not known.",
        lost(loss)
    )
}

/// The error of a load that cannot be made without a generator.
#[must_use]
pub fn generator_lost(generator: &str, loss: &GeneratorLoss) -> String {
    format!("the generator on {generator} {}", lost(loss))
}

/// How a generator was lost: what it did, without a subject.
fn lost(loss: &GeneratorLoss) -> String {
    match loss {
        GeneratorLoss::Ended { code, stderr } => {
            let code =
                code.map_or_else(|| " by a signal".to_owned(), |code| format!(" with exit code {code}"));
            let said = if stderr.is_empty() { String::new() } else { format!(" (it said: {stderr})") };
            format!("ended{code}{said}")
        }
        GeneratorLoss::Disconnected { reason } => format!("lost the stream: {reason}"),
        GeneratorLoss::Malformed => "sent what no generator sends".to_owned(),
        GeneratorLoss::Flooded => "sent more than a generator may".to_owned(),
        GeneratorLoss::Silent { silent_s } => {
            format!("sent nothing for {}, so that it, or the way there, stalled", elapsed(*silent_s))
        }
        GeneratorLoss::Failed { reason } => format!("says: {reason}"),
    }
}
