//! What the accounts server counts, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::metrics::{self, Counts, Histogram, Quantity, Shape};

const SHAPE: Shape = Shape {
    routes: &[
        "/accounts",
        "/accounts/{name}",
        "/accounts/{name}/password",
        "/sessions",
        "/auth",
        "/revocations",
        "/audit",
        "/healthz",
        "/metrics",
        "other",
    ],
    counters: &[],
    histograms: &[
        Histogram {
            name: HASH,
            help: "Time to hash or check one password, without waiting for a hasher",
            of: Quantity::Time,
            buckets: 12,
            least: 0.001,
        },
        Histogram::COMMIT,
        Histogram::COMMIT_CHANGES,
    ],
};
const HASH: &str = "hash";

/// The counters; a copy counts into the same ones, in whatever process it is.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    counts: Counts,
    connections: Arc<engine::Counters>,
}

impl Metrics {
    /// All at zero, and what the engine counts. To be made before the process forks.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        Self { counts: Counts::new(SHAPE), connections }
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.counts.answered(route, status);
    }

    pub(crate) fn hashed(&self, took: Duration) {
        self.counts.took(HASH, took);
    }

    pub(crate) fn committed(&self, changes: usize, took: Duration) {
        self.counts.committed(changes, took);
    }

    /// The text to show, without the mark at its end.
    pub(crate) fn text(&self) -> String {
        metrics::text("accounts", self.counts.clone(), &self.connections)
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
        let text = metrics.text();
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
        let text = metrics.text();
        assert!(text.contains("{route=\"/accounts\",status=\"other\"} 1"), "{text}");
    }
}
