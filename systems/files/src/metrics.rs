//! What the file server counts, in the Prometheus text format.
//!
//! Each worker counts into a shard of its own, so that no two write to the same cache line; they are added up when
//! they are asked for.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use http_io::metrics::{Connections, show};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, text},
    metrics::{MetricType, counter::ConstCounter},
    registry::Registry,
};

/// Workers beyond this many share shards.
const SHARDS: usize = 16;

/// The statuses counted each by itself; any other counts as 0, "other".
const STATUSES: [u16; 19] =
    [200, 201, 206, 301, 302, 304, 400, 401, 403, 404, 405, 409, 412, 413, 416, 422, 503, 507, 0];

/// What became of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Found right before, and remembered.
    Remembered,
    /// Found right by the accounts server.
    Right,
    /// Found wrong.
    Wrong,
    /// Not checked: the accounts server is away or busy.
    Unavailable,
}

const CHECKS: [(Check, &str); 4] = [
    (Check::Remembered, "remembered"),
    (Check::Right, "right"),
    (Check::Wrong, "wrong"),
    (Check::Unavailable, "unavailable"),
];

/// The counters of one worker or a few.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    answers: [AtomicU64; STATUSES.len()],
    checks: [AtomicU64; CHECKS.len()],
    body_bytes: AtomicU64,
    failures: AtomicU64,
}

/// The counters of the whole server.
#[derive(Debug)]
pub(crate) struct Metrics {
    connections: Arc<engine::Counters>,
    shards: Arc<[Shard; SHARDS]>,
    next: AtomicUsize,
}

/// Where one worker counts.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    shards: Arc<[Shard; SHARDS]>,
    at: usize,
}

impl Metrics {
    /// All at zero, and what the engine counts.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        Self { connections, shards: Arc::default(), next: AtomicUsize::default() }
    }

    /// For one more worker.
    pub(crate) fn worker(&self) -> Counts {
        Counts { shards: Arc::clone(&self.shards), at: self.next.fetch_add(1, Relaxed) % SHARDS }
    }

    /// The text to show, without the mark at its end.
    pub(crate) fn text(&self) -> String {
        let mut registry = Registry::with_prefix("nstar_files");
        registry.register_collector(Box::new(Sum(Arc::clone(&self.shards))));
        registry.register_collector(Box::new(Connections(Arc::clone(&self.connections))));
        let mut shown = String::new();
        // Writing to a string does not fail.
        let _ = text::encode_registry(&mut shown, &registry);
        shown
    }
}

impl Counts {
    pub(crate) fn answered(&self, status: u16, body_bytes: u64) {
        let known = STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len() - 1);
        self.count(|shard| shard.answers.get(known), 1);
        self.count(|shard| Some(&shard.body_bytes), body_bytes);
    }

    pub(crate) fn checked(&self, check: Check) {
        self.count(|shard| shard.checks.get(check as usize), 1);
    }

    pub(crate) fn failed(&self) {
        self.count(|shard| Some(&shard.failures), 1);
    }

    fn count(&self, counter: impl FnOnce(&Shard) -> Option<&AtomicU64>, by: u64) {
        if let Some(counter) = self.shards.get(self.at).and_then(counter) {
            counter.fetch_add(by, Relaxed);
        }
    }
}

/// Adds the shards up.
#[derive(Debug)]
struct Sum(Arc<[Shard; SHARDS]>);

impl Sum {
    fn of(&self, counter: impl Fn(&Shard) -> Option<&AtomicU64>) -> u64 {
        self.0.iter().filter_map(counter).map(|counter| counter.load(Relaxed)).sum()
    }
}

impl Collector for Sum {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let answers = STATUSES.iter().enumerate().map(|(at, &status)| {
            let shown = if status == 0 { "other".to_owned() } else { status.to_string() };
            (shown, self.of(|shard| shard.answers.get(at)))
        });
        family(&mut encoder, "requests", "Requests answered, by status", "status", answers)?;
        let checks = CHECKS
            .iter()
            .map(|&(check, shown)| (shown.to_owned(), self.of(|s| s.checks.get(check as usize))));
        family(&mut encoder, "credential_checks", "Credentials presented, by outcome", "outcome", checks)?;
        let body_bytes = self.of(|shard| Some(&shard.body_bytes));
        show(&mut encoder, "body_bytes", "Bytes of bodies sent", &ConstCounter::new(body_bytes))?;
        let help = "Requests cut off: malformed, too slow, or the connection lost";
        show(&mut encoder, "failures", help, &ConstCounter::new(self.of(|shard| Some(&shard.failures))))
    }
}

/// One counter for each value of a label; those still at zero are left out.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: impl Iterator<Item = (String, u64)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in values.filter(|(_, count)| *count > 0) {
        let labels = [(label, value)];
        metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_counts_are_added_up() {
        let metrics = Metrics::new(Arc::default());
        for _ in 0..SHARDS + 3 {
            metrics.worker().answered(200, 10);
        }
        let worker = metrics.worker();
        worker.answered(418, 0);
        worker.checked(Check::Remembered);
        worker.failed();
        let text = metrics.text();
        for line in [
            "nstar_files_requests_total{status=\"200\"} 19",
            "nstar_files_requests_total{status=\"other\"} 1",
            "nstar_files_credential_checks_total{outcome=\"remembered\"} 1",
            "nstar_files_body_bytes_total 190",
            "nstar_files_failures_total 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }

    #[test]
    fn each_check_counts_where_it_is_shown() {
        assert!(CHECKS.iter().enumerate().all(|(at, &(check, _))| check as usize == at));
    }
}
