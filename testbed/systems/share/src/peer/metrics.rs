//! Metrics of a peer, in the Prometheus text format.

use std::{fmt, sync::Arc};

use http_io::{
    Response,
    metrics::{self, show},
};
use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

use crate::interfaces::Index;

/// The response to `GET /metrics`: the numbers of shared files and of rejected requests, the metrics of the index, and the
/// engine's.
pub(super) fn answer(
    (files, turned_away): (usize, u64),
    index: &Arc<dyn Index>,
    connections: &Arc<engine::Counters>,
) -> Response {
    let own = PeerMetrics { files, turned_away, index: Arc::clone(index) };
    metrics::page(metrics::text("peer", own, connections))
}

/// The peer's own metrics and those of its index.
#[derive(Debug)]
struct PeerMetrics {
    files: usize,
    turned_away: u64,
    index: Arc<dyn Index>,
}

impl Collector for PeerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let files = ConstGauge::new(i64::try_from(self.files).unwrap_or(i64::MAX));
        show(&mut encoder, "files", "Files shared now", &files)?;
        let turned_away = ConstCounter::new(self.turned_away);
        show(&mut encoder, "turned_away", "Requests of others than members", &turned_away)?;
        self.index.encode_metrics(&mut encoder)
    }
}
