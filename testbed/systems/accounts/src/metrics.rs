//! The routes of the accounts server and its metrics, which count requests by route.

use std::sync::Arc;

use api_server::{Metrics, Route};
use http_io::metrics::{Histogram, Quantity};

/// The routes.
pub(crate) const ROUTES: [Route; 7] = [
    Route::new("/accounts", "GET, HEAD, POST"),
    Route::new("/accounts/{name}", "GET, HEAD, PATCH, DELETE"),
    Route::new("/accounts/{name}/password", "PUT"),
    Route::new("/sessions", "POST, DELETE"),
    Route::new("/auth", "GET, HEAD"),
    Route::new("/revocations", "GET, HEAD"),
    Route::new("/audit", "GET, HEAD"),
];

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
    Metrics::new("accounts", &ROUTES, &[], &[HASH], connections)
}
