//! Sentences about connections that are not accepted, or turned away.

use analysis::run::ConnectionEvidence;

use super::at_saturation;
use super::holders::processes;
use crate::number::{count, percent, quantity, time};
use crate::words::users;

pub(super) fn sentence(seen: &ConnectionEvidence) -> String {
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
