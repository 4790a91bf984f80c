//! What an API server counts, shown in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::{
    Response,
    metrics::{self, Counter, Counts, Histogram},
};
use store::Commits;

use crate::route::{self, Route};

/// The counters of one server. A clone counts into the same ones, in whatever process it is.
#[derive(Debug, Clone)]
pub struct Metrics {
    system: &'static str,
    counts: Counts,
    connections: Arc<engine::Counters>,
}

impl Metrics {
    /// Counters at zero, shown as `nstar_SYSTEM_..`: requests by route and status, commits, and the `counters` and
    /// `histograms` of the system's own. Create them before the process forks, so that all processes share them.
    pub fn new(
        system: &'static str,
        routes: &[Route],
        counters: &'static [Counter],
        histograms: &[Histogram],
        connections: Arc<engine::Counters>,
    ) -> Self {
        let histograms = [histograms, &[Histogram::COMMIT, Histogram::COMMIT_CHANGES]].concat();
        Self { system, counts: Counts::new(route::labels(routes), counters, histograms), connections }
    }

    /// Counts a request by its route and the status of its response.
    pub fn answered(&self, route: &str, status: u16) {
        self.counts.answered(route, status);
    }

    /// Adds `times` to the counter `name`.
    pub fn count(&self, name: &str, times: u64) {
        self.counts.count(name, times);
    }

    /// Adds a duration to the histogram `name`.
    pub fn took(&self, name: &str, time: Duration) {
        self.counts.took(name, time);
    }

    /// Counts the commits of a store.
    pub fn commits(&self) -> Commits {
        let counts = self.counts.clone();
        Commits::new(move |changes, took| counts.committed(changes, took))
    }

    /// The metrics as text, without [`http_io::metrics::END`].
    pub fn text(&self) -> String {
        metrics::text(self.system, self.counts.clone(), &self.connections)
    }

    /// The response to `GET /metrics`.
    pub(crate) fn page(&self) -> Response {
        metrics::page(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &[Route] = &[Route::new("/rooms", "GET, HEAD"), Route::new("/rooms/{id}", "GET, HEAD")];

    #[test]
    fn requests_and_commits_are_shown_with_their_labels() {
        let metrics = Metrics::new("hotel", ROUTES, &[], &[], Arc::default());
        metrics.answered("/rooms", 201);
        metrics.clone().answered("/rooms", 201);
        metrics.answered("/rooms/{id}", 200);
        metrics.answered("/healthz", 200);
        metrics.counts.committed(3, Duration::from_millis(2));
        let text = metrics.text();
        for line in [
            "nstar_hotel_requests_total{route=\"/rooms\",status=\"201\"} 2",
            "nstar_hotel_requests_total{route=\"/rooms/{id}\",status=\"200\"} 1",
            "nstar_hotel_requests_total{route=\"/healthz\",status=\"200\"} 1",
            "nstar_hotel_commit_changes_sum 3",
            "nstar_hotel_commit_seconds_count 1",
            // 2 ms lie between 1.6 and 3.2.
            "nstar_hotel_commit_seconds_bucket{le=\"0.0016\"} 0",
            "nstar_hotel_commit_seconds_bucket{le=\"0.0032\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        metrics.answered("/rooms", 599);
        metrics.answered("/unheard-of", 404);
        let text = metrics.text();
        assert!(text.contains("{route=\"/rooms\",status=\"other\"} 1"), "{text}");
        assert!(text.contains("{route=\"other\",status=\"404\"} 1"), "{text}");
    }
}
