//! Metrics of the index server, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::{
    Response,
    metrics::{self, Counter, Counts, Histogram, Shape},
};

const SHAPE: Shape = Shape {
    routes: &[
        "/register",
        "/deregister",
        "/renew",
        "/search",
        "/peers",
        "/files",
        "/healthz",
        "/metrics",
        "other",
    ],
    counters: &[REGISTERED, TURNED_AWAY],
    histograms: &[Histogram::COMMIT, Histogram::COMMIT_CHANGES],
};
const REGISTERED: Counter = Counter { name: "files_registered", help: "Files registered, renewals left out" };
const TURNED_AWAY: Counter = Counter { name: "turned_away", help: "Requests of others than members" };

/// The counters. Clones count into the same ones, in any process.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    counts: Counts,
    connections: Arc<engine::Counters>,
}

impl Metrics {
    /// Counters at zero, and the engine's. Create it before the process forks.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        Self { counts: Counts::new(SHAPE), connections }
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.counts.answered(route, status);
    }

    pub(crate) fn registered(&self, files: usize) {
        self.counts.count(REGISTERED.name, files as u64);
    }

    pub(crate) fn turned_away(&self) {
        self.counts.count(TURNED_AWAY.name, 1);
    }

    pub(crate) fn committed(&self, changes: usize, took: Duration) {
        self.counts.committed(changes, took);
    }

    /// The metrics as text.
    pub(crate) fn show(&self) -> Response {
        metrics::page(metrics::text("index", self.counts.clone(), &self.connections))
    }
}
