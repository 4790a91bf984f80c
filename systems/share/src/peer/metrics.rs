//! What a peer shows of itself, in the Prometheus text format.

use std::{fmt, sync::Arc};

use http_io::{
    Answer,
    metrics::{self, show},
};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::gauge::ConstGauge};

/// What `GET /metrics` answers: how many files are shared, and what the engine counts.
pub(super) fn answer(files: usize, connections: &Arc<engine::Counters>) -> Answer {
    metrics::answer(metrics::text("peer", Shared(files), connections))
}

/// How many files are shared.
#[derive(Debug)]
struct Shared(usize);

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let files = ConstGauge::new(i64::try_from(self.0).unwrap_or(i64::MAX));
        show(&mut encoder, "files", "Files shared now", &files)
    }
}
