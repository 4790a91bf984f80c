//! Listen queues.

use super::grown;
use crate::counters::Counters;

/// What the listen queues did. Overflows and drops are the network namespace's: the kernel does not
/// count them per socket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listening {
    /// Connections that found a listen queue full, per second.
    pub overflows_per_s: f64,
    /// Connection attempts dropped by a listener, overflows included, per second.
    pub drops_per_s: f64,
    /// The fullest queue in any sample: (port, waiting, backlog).
    pub fullest: Option<(u16, u64, u64)>,
    /// Share of samples in which some queue was at least nine tenths full.
    pub full: f64,
    /// Share of segments sent that had to be sent again.
    pub retransmitted: f64,
}

/// A queue this full in a sample is counted as full: it empties and fills between samples.
const QUEUE_FULL: f64 = 0.9;

pub(super) fn listening(samples: &[&Counters], elapsed_us: f64) -> Listening {
    let per_s = |read: fn(&Counters) -> u64| grown(samples, read) as f64 / elapsed_us * 1e6;
    let sent = grown(samples, |sample| sample.tcp.segments_sent).max(1) as f64;
    let queues = samples.iter().flat_map(|sample| &sample.listeners).filter(|queue| queue.backlog > 0);
    let fill = |waiting: u64, backlog: u64| waiting as f64 / backlog as f64;
    let fullest = queues
        .map(|queue| (queue.port, queue.waiting, queue.backlog))
        .max_by(|a, b| fill(a.1, a.2).total_cmp(&fill(b.1, b.2)));
    let full = samples.iter().filter(|sample| {
        sample
            .listeners
            .iter()
            .any(|queue| queue.backlog > 0 && fill(queue.waiting, queue.backlog) >= QUEUE_FULL)
    });
    Listening {
        overflows_per_s: per_s(|sample| sample.tcp.listen_overflows),
        drops_per_s: per_s(|sample| sample.tcp.listen_drops),
        fullest,
        full: full.count() as f64 / samples.len().max(1) as f64,
        retransmitted: (grown(samples, |sample| sample.tcp.retransmits) as f64 / sent).min(1.0),
    }
}
