//! What the sink counts.

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

/// What came in since the start; a copy counts into the same counters, in a forked process too. Counted once for each upload, so that
/// workers rarely write to the same memory at once.
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
    /// Uploads that came whole: acknowledged, or, without HTTP, ended by the client.
    pub fn uploads(&self) -> u64 {
        self.get(UPLOADS)
    }

    /// Bytes of the uploads that came whole.
    pub fn upload_bytes(&self) -> u64 {
        self.get(UPLOAD_BYTES)
    }

    /// Bytes of all uploads, those that broke off included; of those under way not yet.
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

    /// What `GET /metrics` answers, with what the engine counts.
    pub(crate) fn answer(&self, connections: &Arc<Counters>) -> Response {
        metrics::answer(metrics::text("sink", self.clone(), connections))
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

/// For people: what came in.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (uploads, bytes, failures) = (self.uploads(), self.received_bytes(), self.failures());
        write!(f, "received {bytes} bytes; {uploads} uploads came whole, {failures} failed")
    }
}

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = [
            ("uploads", "Uploads that came whole", self.uploads()),
            ("upload_bytes", "Bytes of the uploads that came whole", self.upload_bytes()),
            ("received_bytes", "Bytes of all uploads, those that broke off included", self.received_bytes()),
            ("failures", "Uploads refused or broken off", self.failures()),
        ];
        counts
            .into_iter()
            .try_for_each(|(name, help, count)| show(&mut encoder, name, help, &ConstCounter::new(count)))
    }
}
