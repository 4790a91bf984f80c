//! Sentences about the load generator.

use analysis::run::GeneratorEvidence as Seen;

use super::holders::subject;
use crate::number::{cores, percent, time};
use crate::words::users;

pub(super) fn sentence(seen: &Seen) -> String {
    match seen {
        Seen::GeneratorBusy { busy, threads } => format!(
            "The load generator was busy {} of the time of its {} {}: it had no time left to send more.",
            percent(*busy),
            cores(*threads),
            if *threads > 1.0 { "threads" } else { "thread" }
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
