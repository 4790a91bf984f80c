//! What every server's `GET /metrics` has in common: the form, and what the engine counts of connections.

use std::{fmt, sync::Arc};

use engine::Counters;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{TypedMetric, counter::ConstCounter, gauge::ConstGauge},
};

/// The media type of metrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// What ends the text of metrics.
pub const END: &str = "# EOF\n";

/// Shows the engine's counters.
#[derive(Debug)]
pub struct Connections(pub Arc<Counters>);

impl Collector for Connections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counters = &self.0;
        let active = ConstGauge::new(i64::try_from(counters.active()).unwrap_or(i64::MAX));
        show(&mut encoder, "connections", "Connections open now", &active)?;
        let counts = [
            ("connections_accepted", "Connections accepted", counters.accepted()),
            ("connections_refused", "Connections closed unserved: no thread or service", counters.refused()),
            ("connections_limit_pauses", "Times accepting stopped at the limit", counters.limit_pauses()),
            ("accept_errors", "Failures of accept", counters.accept_errors()),
            ("panics", "Connections whose service panicked", counters.panics()),
        ];
        counts
            .into_iter()
            .try_for_each(|(name, help, count)| show(&mut encoder, name, help, &ConstCounter::new(count)))
    }
}

/// Shows one metric without labels.
///
/// # Errors
/// When the encoder's text cannot be written to.
pub fn show<M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &M,
) -> Result<(), fmt::Error> {
    metric.encode(encoder.encode_descriptor(name, help, None, M::TYPE)?)
}
