//! One upload: counted, optionally hashed, and forgotten.

use std::fmt::Write;

use crate::{options::Verify, totals::Totals};

/// Counts one upload. Bytes that arrived count as received even if the upload breaks off.
pub(crate) struct Intake<'t> {
    totals: &'t Totals,
    bytes: u64,
    hasher: Option<Box<blake3::Hasher>>,
}

impl<'t> Intake<'t> {
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

impl Drop for Intake<'_> {
    fn drop(&mut self) {
        self.totals.received(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receipt_holds_length_and_hash() {
        let totals = Totals::default();
        let mut intake = Intake::new(&totals, Verify::Nothing);
        intake.take(b"ab");
        intake.take(b"c");
        assert_eq!(intake.finish(), r#"{"bytes":3}"#);
        let mut intake = Intake::new(&totals, Verify::Blake3);
        intake.take(b"a");
        intake.take(b"bc");
        // The published hash of "abc".
        let hash = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(intake.finish(), format!(r#"{{"bytes":3,"blake3":"{hash}"}}"#));
        assert_eq!((totals.uploads(), totals.upload_bytes(), totals.received_bytes()), (2, 6, 6));
    }

    #[test]
    fn an_upload_that_breaks_off_counts_as_received_only() {
        let totals = Totals::default();
        let mut intake = Intake::new(&totals, Verify::Nothing);
        intake.take(b"half of i");
        drop(intake);
        assert_eq!((totals.uploads(), totals.upload_bytes(), totals.received_bytes()), (0, 0, 9));
    }
}
