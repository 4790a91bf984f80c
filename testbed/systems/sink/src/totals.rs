//! The sink's counters.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use engine::{Counters, shared::Atomics};
use http_io::{
    Response,
    metrics::{self, show},
};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter};

/// Counters since the start. Clones share them, in forked processes too. They change once per upload, so that workers
/// rarely write to the same memory at the same time.
#[derive(Debug, Clone)]
pub struct Totals(Arc<Atomics>);

impl Default for Totals {
    fn default() -> Self {
        Self(Arc::new(Atomics::new(CELLS)))
    }
}

const UPLOADS: usize = 0;
const UPLOAD_BYTES: usize = 1;
const RECEIVED_BYTES: usize = 2;
const FAILURES: usize = 3;
const CELLS: usize = 4;

impl Totals {
    /// Complete uploads: acknowledged or, without HTTP, ended by the client.
    pub fn uploads(&self) -> u64 {
        self.get(UPLOADS)
    }

    /// Bytes of complete uploads.
    pub fn upload_bytes(&self) -> u64 {
        self.get(UPLOAD_BYTES)
    }

    /// Bytes of all uploads that ended, including those that broke off.
    pub fn received_bytes(&self) -> u64 {
        self.get(RECEIVED_BYTES)
    }

    /// Uploads that were refused or broke off.
    pub fn failures(&self) -> u64 {
        self.get(FAILURES)
    }

    pub(crate) fn uploaded(&self, bytes: u64) {
        self.add(UPLOADS, 1);
        self.add(UPLOAD_BYTES, bytes);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.add(RECEIVED_BYTES, bytes);
    }

    pub(crate) fn failed(&self) {
        self.add(FAILURES, 1);
    }

    /// Responds to `GET /metrics`, including the engine's counters.
    pub(crate) fn answer(&self, connections: &Arc<Counters>) -> Response {
        metrics::page(metrics::text("sink", self.clone(), connections))
    }

    fn get(&self, cell: usize) -> u64 {
        self.0.get(cell).map_or(0, |cell| cell.load(Relaxed))
    }

    fn add(&self, cell: usize, count: u64) {
        if let Some(cell) = self.0.get(cell) {
            cell.fetch_add(count, Relaxed);
        }
    }
}

/// A summary for people.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (uploads, bytes, failures) = (self.uploads(), self.received_bytes(), self.failures());
        write!(f, "received {bytes} bytes; {uploads} uploads completed, {failures} failed")
    }
}

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = [
            ("uploads", "Complete uploads", self.uploads()),
            ("upload_bytes", "Bytes of complete uploads", self.upload_bytes()),
            ("received_bytes", "Bytes of all uploads, including those that broke off", self.received_bytes()),
            ("failures", "Uploads refused or broken off", self.failures()),
        ];
        counts
            .into_iter()
            .try_for_each(|(name, help, count)| show(&mut encoder, name, help, &ConstCounter::new(count)))
    }
}
