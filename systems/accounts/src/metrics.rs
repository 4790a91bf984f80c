//! What the accounts server counts, in the Prometheus text format.
//!
//! Counted in memory that forked processes share, so that any of them can show it all.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use engine::shared::Cells;
use http_io::metrics::Connections;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::{Registry, Unit},
};

const ROUTES: [&str; 10] = [
    "/accounts",
    "/accounts/{name}",
    "/accounts/{name}/password",
    "/sessions",
    "/auth",
    "/revocations",
    "/audit",
    "/healthz",
    "/metrics",
    OTHER,
];
/// Any other route.
const OTHER: &str = "other";
/// The statuses counted each by itself; any other counts as 0, "other".
const STATUSES: [u16; 14] = [200, 201, 204, 400, 401, 403, 404, 405, 409, 422, 429, 503, 507, 0];

/// Time to hash a password: from 1 ms, doubling.
const HASH_TIME: Histogram = Histogram { cells: ANSWERS.end, buckets: 12, least: 0.001, unit: NANOS };
/// Time of a commit: from 0.1 ms, doubling.
const COMMIT_TIME: Histogram = Histogram { cells: HASH_TIME.end(), buckets: 16, least: 0.000_1, unit: NANOS };
/// Changes of a commit: from 1, doubling.
const COMMIT_CHANGES: Histogram = Histogram { cells: COMMIT_TIME.end(), buckets: 9, least: 1.0, unit: 1.0 };
const ANSWERS: Range<usize> = 0..ROUTES.len() * STATUSES.len();
const CELLS: usize = COMMIT_CHANGES.end();
/// Seconds are counted in nanoseconds.
const NANOS: f64 = 1e-9;

/// The counters; a copy counts into the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    counts: Counts,
    connections: Arc<engine::Counters>,
}

impl Metrics {
    /// All at zero, and what the engine counts.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        Self { counts: Counts(Arc::new(Cells::new(CELLS))), connections }
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        let route = ROUTES.iter().position(|&known| known == route).unwrap_or(ROUTES.len() - 1);
        let status = STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len() - 1);
        self.counts.add(ANSWERS.start + route * STATUSES.len() + status, 1);
    }

    pub(crate) fn hashed(&self, took: Duration) {
        HASH_TIME.observe(&self.counts, nanos(took));
    }

    pub(crate) fn committed(&self, changes: usize, took: Duration) {
        COMMIT_TIME.observe(&self.counts, nanos(took));
        COMMIT_CHANGES.observe(&self.counts, changes as u64);
    }

    /// Appends the text to show, without the mark at its end.
    pub(crate) fn show(&self, shown: &mut String) {
        let mut registry = Registry::with_prefix("nstar_accounts");
        registry.register_collector(Box::new(self.counts.clone()));
        registry.register_collector(Box::new(Connections(Arc::clone(&self.connections))));
        // Writing to a string does not fail.
        let _ = text::encode_registry(shown, &registry);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Debug, Clone)]
struct Counts(Arc<Cells>);

impl Counts {
    fn add(&self, cell: usize, by: u64) {
        if let Some(cell) = self.0.get(cell) {
            cell.fetch_add(by, Relaxed);
        }
    }

    fn get(&self, cell: usize) -> u64 {
        self.0.get(cell).map_or(0, |cell| cell.load(Relaxed))
    }
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Requests answered, by route and status";
        let mut requests = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for (cell, count) in ANSWERS.map(|cell| (cell, self.get(cell))).filter(|(_, count)| *count > 0) {
            let (route, status) = (ROUTES[cell / STATUSES.len()], STATUSES[cell % STATUSES.len()]);
            let status = if status == 0 { OTHER.to_owned() } else { status.to_string() };
            let labels = [("route", route), ("status", &status)];
            requests.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let seconds = Some(&Unit::Seconds);
        let help = "Time to hash or check one password, without waiting for a hasher";
        HASH_TIME.encode(self, &mut encoder, ("hash", help, seconds))?;
        COMMIT_TIME.encode(self, &mut encoder, ("commit", "Time of one durable commit", seconds))?;
        let help = "Changes made durable by one commit";
        COMMIT_CHANGES.encode(self, &mut encoder, ("commit_changes", help, None))
    }
}

/// A histogram in cells: how many fell into each bucket, how many beyond the last, and the sum of all.
struct Histogram {
    /// Its first cell.
    cells: usize,
    buckets: usize,
    /// Upper bound of the first bucket; each further one has twice that of the one before.
    least: f64,
    /// What one counted unit is of those shown.
    unit: f64,
}

impl Histogram {
    /// The first cell that is not its own.
    const fn end(&self) -> usize {
        self.cells + self.buckets + 2
    }

    fn bound(&self, bucket: usize) -> f64 {
        self.least * 2_f64.powi(i32::try_from(bucket).unwrap_or(i32::MAX))
    }

    fn observe(&self, counts: &Counts, value: u64) {
        let shown = value as f64 * self.unit;
        let bucket = (0..self.buckets).find(|&bucket| shown <= self.bound(bucket)).unwrap_or(self.buckets);
        counts.add(self.cells + bucket, 1);
        counts.add(self.end() - 1, value);
    }

    fn encode(
        &self,
        counts: &Counts,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, unit): (&str, &str, Option<&Unit>),
    ) -> Result<(), fmt::Error> {
        let mut buckets: Vec<(f64, u64)> =
            (0..self.buckets).map(|bucket| (self.bound(bucket), counts.get(self.cells + bucket))).collect();
        buckets.push((f64::MAX, counts.get(self.cells + self.buckets)));
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = counts.get(self.end() - 1) as f64 * self.unit;
        encoder
            .encode_descriptor(name, help, unit, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_with_their_labels() {
        let metrics = Metrics::new(Arc::default());
        metrics.answered("/accounts", 201);
        metrics.clone().answered("/accounts", 201);
        metrics.committed(3, Duration::from_millis(2));
        let mut text = String::new();
        metrics.show(&mut text);
        assert!(
            text.contains("nstar_accounts_requests_total{route=\"/accounts\",status=\"201\"} 2"),
            "{text}"
        );
        assert!(text.contains("nstar_accounts_commit_changes_sum 3"), "{text}");
        assert!(text.contains("nstar_accounts_commit_seconds_count 1"), "{text}");
        // 2 ms lie between 1.6 and 3.2.
        assert!(text.contains("nstar_accounts_commit_seconds_bucket{le=\"0.0016\"} 0"), "{text}");
        assert!(text.contains("nstar_accounts_commit_seconds_bucket{le=\"0.0032\"} 1"), "{text}");
        metrics.answered("/accounts", 599);
        let mut text = String::new();
        metrics.show(&mut text);
        assert!(text.contains("{route=\"/accounts\",status=\"other\"} 1"), "{text}");
    }
}
