//! What the `GET /metrics` of all servers has in common: the text format, the engine's counters of connections, and the
//! counters of requests.

mod counts;

use std::{fmt, sync::Arc};

use engine::{Counters, Denied, Handshake};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text},
    metrics::{MetricType, TypedMetric, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

pub use self::counts::{Counter, Counts, Histogram, Quantity};
use crate::Response;

/// The media type of the OpenMetrics text format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The bound of a histogram's last bucket, shown as `+Inf`. Prometheus rejects histograms without it.
const UNBOUNDED: f64 = f64::INFINITY;
/// The end of the text.
pub const END: &str = "# EOF\n";

/// The text of a system's metrics, named `nstar_SYSTEM_..`: its `own`, and the engine's counters of its connections.
/// [`END`] is not included, so that a process that runs two systems can show both.
pub fn text(system: &str, own: impl Collector, connections: &Arc<Counters>) -> String {
    let mut registry = Registry::with_prefix(format!("nstar_{system}"));
    registry.register_collector(Box::new(own));
    registry.register_collector(Box::new(Connections(Arc::clone(connections))));
    let mut shown = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode_registry(&mut shown, &registry);
    shown
}

/// The response to `GET /metrics`, given the [`text`] of every system in the process.
pub fn page(text: String) -> Response {
    Response::new(200, CONTENT_TYPE, text + END)
}

/// The engine's counters.
#[derive(Debug)]
struct Connections(Arc<Counters>);

impl Collector for Connections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counters = &self.0;
        let active = ConstGauge::new(i64::try_from(counters.active()).unwrap_or(i64::MAX));
        show(&mut encoder, "connections", "Open connections", &active)?;
        let counts = [
            ("connections_accepted", "Connections accepted", counters.accepted()),
            (
                "connections_refused",
                "Connections closed unserved for want of a worker or service",
                counters.refused(),
            ),
            (
                "connections_limit_pauses",
                "Times that accepting stopped at the connection limit",
                counters.limit_pauses(),
            ),
            ("accept_errors", "Failed calls of accept", counters.accept_errors()),
            ("panics", "Connections whose service panicked", counters.panics()),
        ];
        counts
            .into_iter()
            .try_for_each(|(name, help, count)| show(&mut encoder, name, help, &ConstCounter::new(count)))?;
        show_queue(&mut encoder, counters)?;
        show_handshakes(&mut encoder, counters)
    }
}

/// Encodes the queue for workers. All values are zero on models without a queue.
fn show_queue(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> Result<(), fmt::Error> {
    let queued = ConstGauge::new(i64::try_from(counters.queued()).unwrap_or(i64::MAX));
    show(encoder, "connections_queued", "Connections waiting for a worker", &queued)?;
    let (waits, waited) = counters.queue_waits();
    let help = "Time that connections waited for a worker";
    let unit = Some(&Unit::Seconds);
    encoder
        .encode_descriptor("queue_wait", help, unit, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(waited.as_secs_f64(), waits, &[(UNBOUNDED, waits)], None)?;
    let help = "Connections turned away, by reason";
    let mut denied = encoder.encode_descriptor("connections_denied", help, None, MetricType::Counter)?;
    for why in Denied::ALL {
        let labels = [("reason", why.name())];
        denied.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&counters.denied(why), None)?;
    }
    Ok(())
}

/// Encodes TLS handshakes by outcome. All values are zero without TLS.
fn show_handshakes(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> Result<(), fmt::Error> {
    let help = "TLS handshakes by outcome";
    let mut handshakes = encoder.encode_descriptor("tls_handshakes", help, None, MetricType::Counter)?;
    for outcome in Handshake::ALL {
        let labels = [("outcome", outcome.name())];
        let count = counters.handshakes(outcome);
        handshakes.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    let Some(expiry) = counters.certificate_expiry() else { return Ok(()) };
    let expiry = ConstGauge::new(i64::try_from(expiry).unwrap_or(i64::MAX));
    let help = "When the certificate that clients are shown expires, in Unix time";
    let (name, unit) = ("tls_certificate_expiry_timestamp", Some(&Unit::Seconds));
    expiry.encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
}

/// Encodes one metric without labels.
///
/// # Errors
/// When the encoder cannot write.
pub fn show<M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &M,
) -> Result<(), fmt::Error> {
    metric.encode(encoder.encode_descriptor(name, help, None, M::TYPE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Histogram =
        Histogram { name: "size", help: "Sizes", of: Quantity::Number, buckets: 2, least: 1.0 };
    const TAKEN: Counter = Counter { name: "taken", help: "Things taken" };

    fn counts() -> Counts {
        Counts::new(["other"], &[TAKEN], [SIZE])
    }

    #[test]
    fn what_the_engine_counts_is_shown_in_full() {
        let shown = text("x", counts(), &Arc::default());
        for line in [
            "# TYPE nstar_x_connections gauge",
            "nstar_x_connections_accepted_total 0",
            "nstar_x_connections_queued 0",
            "nstar_x_queue_wait_seconds_count 0",
            "nstar_x_queue_wait_seconds_bucket{le=\"+Inf\"} 0",
            "nstar_x_connections_denied_total{reason=\"full\"} 0",
            "nstar_x_connections_denied_total{reason=\"gone\"} 0",
            "nstar_x_tls_handshakes_total{outcome=\"failed\"} 0",
        ] {
            assert!(shown.contains(line), "{line} is missing in:\n{shown}");
        }
    }

    #[test]
    fn a_certificate_is_shown_with_its_end_where_there_is_one() {
        let counters = Arc::<Counters>::default();
        assert!(!text("x", counts(), &counters).contains("certificate"));
        counters.set_certificate_expiry(1_800_000_000);
        let shown = text("x", counts(), &counters);
        assert!(shown.contains("nstar_x_tls_certificate_expiry_timestamp_seconds 1800000000\n"), "{shown}");
    }

    #[test]
    fn every_histogram_ends_in_a_bucket_without_a_bound_that_holds_all() {
        let counts = counts();
        [1, 2, 3, 4].into_iter().for_each(|size| counts.observe("size", size));
        let shown = text("x", counts, &Arc::default());
        let buckets: Vec<_> = shown.lines().filter(|line| line.starts_with("nstar_x_size_bucket")).collect();
        let expected = [
            "nstar_x_size_bucket{le=\"1.0\"} 1",
            "nstar_x_size_bucket{le=\"2.0\"} 2",
            "nstar_x_size_bucket{le=\"+Inf\"} 4",
        ];
        assert_eq!(buckets, expected);
    }

    #[test]
    fn what_is_counted_in_a_copy_is_shown_and_nothing_else() {
        let counts = counts();
        counts.clone().count("taken", 3);
        counts.count("unknown", 5);
        counts.answered("other", 200);
        let shown = page(text("x", counts, &Arc::default()));
        let shown = String::from_utf8(shown.body).expect("text");
        for line in ["nstar_x_taken_total 3", "nstar_x_size_count 0", "{route=\"other\",status=\"200\"} 1"] {
            assert!(shown.contains(line), "{line} is missing in:\n{shown}");
        }
        assert!(shown.ends_with(END), "{shown}");
    }
}
