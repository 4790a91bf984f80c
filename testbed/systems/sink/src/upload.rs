//! Uploads as they arrive: counted, optionally hashed, and forgotten; and the counters of all of them.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use engine::{Counters, shared::Atomics};
use http_io::{
    Response,
    metrics::{self, show},
};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::counter::ConstCounter};

use crate::options::Verify;

/// Counts one upload. Bytes that arrived count as received even if the upload breaks off.
pub(crate) struct Upload<'t> {
    totals: &'t Totals,
    bytes: u64,
    hasher: Option<Box<blake3::Hasher>>,
}

impl<'t> Upload<'t> {
    pub(crate) fn new(totals: &'t Totals, verify: Verify) -> Self {
        let hasher = match verify {
            Verify::Nothing => None,
            Verify::Blake3 => Some(Box::default()),
        };
        Self { totals, bytes: 0, hasher }
    }

    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts the upload as complete. Returns the receipt for the client, as JSON.
    pub(crate) fn finish(self) -> String {
        self.totals.uploaded(self.bytes);
        let mut receipt = format!("{{\"bytes\":{}", self.bytes);
        if let Some(hasher) = &self.hasher {
            // Writing to a string does not fail.
            let _ = write!(receipt, ",\"blake3\":\"{}\"", hasher.finalize().to_hex());
        }
        receipt.push('}');
        receipt
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.totals.received(self.bytes);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receipt_holds_length_and_hash() {
        let totals = Totals::default();
        let mut upload = Upload::new(&totals, Verify::Nothing);
        upload.take(b"ab");
        upload.take(b"c");
        assert_eq!(upload.finish(), r#"{"bytes":3}"#);
        let mut upload = Upload::new(&totals, Verify::Blake3);
        upload.take(b"a");
        upload.take(b"bc");
        // The published hash of "abc".
        let hash = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(upload.finish(), format!(r#"{{"bytes":3,"blake3":"{hash}"}}"#));
        assert_eq!((totals.uploads(), totals.upload_bytes(), totals.received_bytes()), (2, 6, 6));
    }

    #[test]
    fn an_upload_that_breaks_off_counts_as_received_only() {
        let totals = Totals::default();
        let mut upload = Upload::new(&totals, Verify::Nothing);
        upload.take(b"half of i");
        drop(upload);
        assert_eq!((totals.uploads(), totals.upload_bytes(), totals.received_bytes()), (0, 0, 9));
    }
}
