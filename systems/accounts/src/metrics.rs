//! What the accounts server counts, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use http_io::metrics::Connections;

/// The counters; a copy counts into the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    answers: Family<Answered, Counter>,
    hash_time_s: Histogram,
    commit_time_s: Histogram,
    commit_changes: Histogram,
    registry: Arc<Registry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

impl Metrics {
    /// All at zero, and what the engine counts.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        let answers = Family::default();
        let hash_time_s = Histogram::new(exponential_buckets(0.001, 2.0, 12));
        let commit_time_s = Histogram::new(exponential_buckets(0.000_1, 2.0, 16));
        let commit_changes = Histogram::new(exponential_buckets(1.0, 2.0, 9));
        let mut registry = Registry::with_prefix("nstar_accounts");
        registry.register("requests", "Requests answered, by route and status", answers.clone());
        let hash_help = "Time to hash or check one password, without waiting for a hasher";
        registry.register_with_unit("hash", hash_help, Unit::Seconds, hash_time_s.clone());
        let commit_help = "Time of one durable commit";
        registry.register_with_unit("commit", commit_help, Unit::Seconds, commit_time_s.clone());
        registry.register("commit_changes", "Changes made durable by one commit", commit_changes.clone());
        registry.register_collector(Box::new(Connections(connections)));
        Self { answers, hash_time_s, commit_time_s, commit_changes, registry: registry.into() }
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.answers.get_or_create(&Answered { route, status }).inc();
    }

    pub(crate) fn hashed(&self, took: Duration) {
        self.hash_time_s.observe(took.as_secs_f64());
    }

    pub(crate) fn committed(&self, changes: usize, took: Duration) {
        self.commit_time_s.observe(took.as_secs_f64());
        self.commit_changes.observe(changes as f64);
    }

    /// Appends the text to show, without the mark at its end.
    pub(crate) fn show(&self, shown: &mut String) {
        // Writing to a string does not fail.
        let _ = text::encode_registry(shown, &self.registry);
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
    }
}
