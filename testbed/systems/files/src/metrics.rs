//! The file server's metrics, in the Prometheus text format.
//!
//! Each worker counts in its own shard, so that no two write to the same cache line. The shards are added up when the
//! metrics are read. They lie in memory that forked processes share, so that any of them can show all counts.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use engine::shared::Atomics;
use http_io::metrics::{self, show};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter},
};

/// Number of shards. More workers than this share them.
const SHARDS: usize = 16;

/// The statuses that are counted separately. Any other counts as 0, shown as "other".
const STATUSES: [u16; 21] =
    [200, 201, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 409, 412, 413, 416, 422, 429, 503, 507, 0];

/// What became of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// It was in the cache.
    Remembered,
    /// The accounts server found it valid.
    Right,
    /// The accounts server found it invalid.
    Wrong,
    /// It was not checked, as too many logins have failed.
    Slowed,
    /// It could not be checked: the accounts server is down or busy.
    Unavailable,
}

const CHECKS: [(CheckOutcome, &str); 5] = [
    (CheckOutcome::Remembered, "remembered"),
    (CheckOutcome::Right, "right"),
    (CheckOutcome::Wrong, "wrong"),
    (CheckOutcome::Slowed, "slowed"),
    (CheckOutcome::Unavailable, "unavailable"),
];

/// The places of the counts in a shard.
const ANSWERS: usize = 0;
const CHECKED: usize = ANSWERS + STATUSES.len();
const BODY_BYTES: usize = CHECKED + CHECKS.len();
const FAILURES: usize = BODY_BYTES + 1;
const UPLOADS: usize = FAILURES + 1;
const UPLOADED_BYTES: usize = UPLOADS + 1;
/// Numbers in a shard, rounded up to a multiple of two cache lines.
const SHARD: usize = (UPLOADED_BYTES + 1).next_multiple_of(16);
/// The place behind the shards that counts the workers.
const WORKERS: usize = SHARDS * SHARD;

/// The counters of the whole server.
#[derive(Debug)]
pub(crate) struct Metrics {
    connections: Arc<engine::Counters>,
    cells: Arc<Atomics>,
}

/// The counters of one worker.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    cells: Arc<Atomics>,
    /// The place of its shard.
    shard: usize,
}

impl Metrics {
    /// Starts at zero. `connections` are the engine's counters.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        Self { connections, cells: Arc::new(Atomics::new(WORKERS + 1)) }
    }

    /// The counters of one more worker.
    pub(crate) fn worker(&self) -> Counts {
        let before = self.cells.get(WORKERS).map_or(0, |workers| workers.fetch_add(1, Relaxed));
        Counts { cells: Arc::clone(&self.cells), shard: before as usize % SHARDS * SHARD }
    }

    /// The metrics as text, without the mark at the end.
    pub(crate) fn text(&self) -> String {
        metrics::text("files", Sum(Arc::clone(&self.cells)), &self.connections)
    }
}

impl Counts {
    pub(crate) fn answered(&self, status: u16, body_bytes: u64) {
        let known = STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len() - 1);
        self.count(ANSWERS + known, 1);
        self.count(BODY_BYTES, body_bytes);
    }

    pub(crate) fn checked(&self, check: CheckOutcome) {
        self.count(CHECKED + check as usize, 1);
    }

    pub(crate) fn failed(&self) {
        self.count(FAILURES, 1);
    }

    /// Counts a finished upload of a file.
    pub(crate) fn uploaded(&self, bytes: u64) {
        self.count(UPLOADS, 1);
        self.count(UPLOADED_BYTES, bytes);
    }

    fn count(&self, what: usize, by: u64) {
        if let Some(cell) = self.cells.get(self.shard + what) {
            cell.fetch_add(by, Relaxed);
        }
    }
}

/// Adds the shards up.
#[derive(Debug)]
struct Sum(Arc<Atomics>);

impl Sum {
    fn of(&self, what: usize) -> u64 {
        let cells = (0..SHARDS).filter_map(|shard| self.0.get(shard * SHARD + what));
        cells.map(|cell| cell.load(Relaxed)).sum()
    }
}

impl Collector for Sum {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let answers = STATUSES.iter().enumerate().map(|(at, &status)| {
            let shown = if status == 0 { "other".to_owned() } else { status.to_string() };
            (shown, self.of(ANSWERS + at))
        });
        family(&mut encoder, "requests", "Responses by status", "status", answers)?;
        let checks =
            CHECKS.iter().map(|&(check, shown)| (shown.to_owned(), self.of(CHECKED + check as usize)));
        family(&mut encoder, "credential_checks", "Credentials presented, by outcome", "outcome", checks)?;
        let body_bytes = self.of(BODY_BYTES);
        show(&mut encoder, "body_bytes", "Body bytes sent", &ConstCounter::new(body_bytes))?;
        let uploads = self.of(UPLOADS);
        show(&mut encoder, "uploads", "Files uploaded", &ConstCounter::new(uploads))?;
        let uploaded = self.of(UPLOADED_BYTES);
        show(&mut encoder, "uploaded_bytes", "Bytes of uploaded files", &ConstCounter::new(uploaded))?;
        let help = "Requests cut off: malformed, too slow, or connection lost";
        show(&mut encoder, "failures", help, &ConstCounter::new(self.of(FAILURES)))
    }
}

/// Encodes one counter for each value of a label, without those that are zero.
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
    fn counts_of_workers_are_added_up() {
        let metrics = Metrics::new(Arc::default());
        for _ in 0..SHARDS + 3 {
            metrics.worker().answered(200, 10);
        }
        let worker = metrics.worker();
        worker.answered(418, 0);
        worker.checked(CheckOutcome::Remembered);
        worker.failed();
        worker.uploaded(7);
        let text = metrics.text();
        for line in [
            "nstar_files_requests_total{status=\"200\"} 19",
            "nstar_files_requests_total{status=\"other\"} 1",
            "nstar_files_credential_checks_total{outcome=\"remembered\"} 1",
            "nstar_files_body_bytes_total 190",
            "nstar_files_failures_total 1",
            "nstar_files_uploads_total 1",
            "nstar_files_uploaded_bytes_total 7",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }

    #[test]
    fn outcomes_are_listed_in_order() {
        assert!(CHECKS.iter().enumerate().all(|(at, &(check, _))| check as usize == at));
    }
}
