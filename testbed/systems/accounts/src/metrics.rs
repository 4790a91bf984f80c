//! What the accounts server counts.

use std::sync::Arc;

use api_server::{Api as _, Metrics};
use http_io::metrics::{Histogram, Quantity};

use crate::api::AccountsApi;

/// How long passwords took to hash.
pub(crate) const HASH: Histogram = Histogram {
    name: "hash",
    help: "Time to hash or check one password, without waiting for a hasher",
    of: Quantity::Time,
    buckets: 12,
    least: 0.001,
};

/// Counters at zero. Create them before the process forks.
pub(crate) fn metrics(connections: Arc<engine::Counters>) -> Metrics {
    Metrics::new("accounts", AccountsApi::ROUTES, &[], &[HASH], connections)
}
