//! What a peer shows of itself, in the Prometheus text format.

use std::{fmt, sync::Arc};

use http_io::{
    Answer,
    metrics::{self, show},
};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::gauge::ConstGauge};

use crate::seam::Index;

/// What `GET /metrics` answers: how many files are shared, what the index counts, and what the engine does.
pub(super) fn answer(files: usize, index: &Arc<dyn Index>, connections: &Arc<engine::Counters>) -> Answer {
    metrics::answer(metrics::text("peer", Shown { files, index: Arc::clone(index) }, connections))
}

/// How many files are shared, and the index.
#[derive(Debug)]
struct Shown {
    files: usize,
    index: Arc<dyn Index>,
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let files = ConstGauge::new(i64::try_from(self.files).unwrap_or(i64::MAX));
        show(&mut encoder, "files", "Files shared now", &files)?;
        self.index.show(&mut encoder)
    }
}
