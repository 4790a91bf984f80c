//! What the booking server counts, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::{
    Answer,
    metrics::{self, Connections, Counts, Histogram, Shape},
};
use prometheus_client::{encoding::text, registry::Registry};

const SHAPE: Shape = Shape {
    routes: &[
        "/",
        "/rooms",
        "/rooms/{id}",
        "/rooms/{id}/calendar.ics",
        "/bookings",
        "/bookings/{id}",
        "/audit",
        "/healthz",
        "/metrics",
        "other",
    ],
    histograms: &[Histogram::COMMIT, Histogram::COMMIT_CHANGES],
};

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

    pub(crate) fn committed(&self, changes: usize, took: Duration) {
        self.counts.committed(changes, took);
    }

    /// The text to show.
    pub(crate) fn show(&self) -> Answer {
        let mut registry = Registry::with_prefix("nstar_booking");
        registry.register_collector(Box::new(self.counts.clone()));
        registry.register_collector(Box::new(Connections(Arc::clone(&self.connections))));
        let mut shown = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut shown, &registry);
        Answer::new(200, metrics::CONTENT_TYPE, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_counted_by_its_name() {
        let metrics = Metrics::new(Arc::default());
        for route in SHAPE.routes {
            metrics.answered(route, 200);
        }
        let shown = String::from_utf8(metrics.show().body).unwrap();
        for route in SHAPE.routes {
            let line = format!("nstar_booking_requests_total{{route=\"{route}\",status=\"200\"}} 1");
            assert!(shown.contains(&line), "{line} is missing in:\n{shown}");
        }
    }
}
