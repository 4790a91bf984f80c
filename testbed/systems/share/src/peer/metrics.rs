//! What a peer shows of itself, in the Prometheus text format.

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

use crate::seam::Index;

/// What `GET /metrics` answers: how many files are shared and how many requests were turned away, what the index counts, and
/// what the engine does.
pub(super) fn answer(
    (files, turned_away): (usize, u64),
    index: &Arc<dyn Index>,
    connections: &Arc<engine::Counters>,
) -> Response {
    metrics::page(metrics::text("peer", Shown { files, turned_away, index: Arc::clone(index) }, connections))
}

/// How many files are shared, and the index.
#[derive(Debug)]
struct Shown {
    files: usize,
    turned_away: u64,
    index: Arc<dyn Index>,
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let files = ConstGauge::new(i64::try_from(self.files).unwrap_or(i64::MAX));
        show(&mut encoder, "files", "Files shared now", &files)?;
        let turned_away = ConstCounter::new(self.turned_away);
        show(&mut encoder, "turned_away", "Requests of others than members", &turned_away)?;
        self.index.show(&mut encoder)
    }
}
