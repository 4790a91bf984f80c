//! What the booking server counts, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::{
    Response,
    metrics::{self, Counts, Histogram, Shape},
};

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
    counters: &[],
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
    pub(crate) fn show(&self) -> Response {
        metrics::page(metrics::text("booking", self.counts.clone(), &self.connections))
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
