//! The content of generated bodies: one block of bytes, sent repeatedly.

use fastrand::Rng;

/// Length of the block: small enough to stay in the processor's cache, and longer than gzip's window.
const BLOCK_BYTES: usize = 256 << 10;

/// A constant, so that a body of one size and its hash are the same in every run.
const SEED: u64 = 0x6e73_7461_7220_6f64;

/// Bytes that do not compress and repeat after [`BLOCK_BYTES`]. Bodies differ only in length, so one block serves ten
/// thousand users that send 10 MB each.
#[derive(Debug)]
pub(crate) struct Filler(Box<[u8]>);

impl Filler {
    /// Makes the block; an empty one unless `needed`.
    pub(crate) fn new(needed: bool) -> Self {
        let mut block = vec![0; if needed { BLOCK_BYTES } else { 0 }];
        Rng::with_seed(SEED).fill(&mut block);
        Self(block.into())
    }

    /// Returns the bytes of a body from `position` on: at least one and at most `most`, fewer at the end of the block.
    #[inline]
    pub(crate) fn at(&self, position: u64, most: u64) -> &[u8] {
        let from = (position % self.0.len().max(1) as u64) as usize;
        let rest = self.0.get(from..).unwrap_or_default();
        rest.get(..usize::try_from(most).unwrap_or(usize::MAX)).unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    /// Assembles a body from pieces of these lengths.
    fn body(filler: &Filler, length: u64, pieces: &[u64]) -> Vec<u8> {
        let mut body = Vec::new();
        for most in pieces.iter().cycle() {
            let left = length - body.len() as u64;
            if left == 0 {
                break;
            }
            let piece = filler.at(body.len() as u64, left.min(*most));
            assert!(!piece.is_empty() && piece.len() as u64 <= left);
            body.extend_from_slice(piece);
        }
        body
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_however_it_is_cut(
            length in 0_u64..600_000,
            pieces in prop::collection::vec(1_u64..300_000, 1..5),
        ) {
            let filler = Filler::new(true);
            let whole = body(&filler, length, &[u64::MAX]);
            prop_assert_eq!(whole.len() as u64, length);
            prop_assert!(body(&filler, length, &pieces) == whole);
        }
    }

    #[test]
    fn every_byte_occurs_about_equally_often() {
        let filler = Filler::new(true);
        let mut counts = [0_u32; 256];
        body(&filler, BLOCK_BYTES as u64, &[u64::MAX])
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1);
        // 1024 each, standard deviation 32.
        assert!(counts.iter().all(|count| count.abs_diff(1_024) < 200), "{counts:?}");
    }

    #[test]
    fn a_block_that_is_not_needed_is_empty() {
        assert!(Filler::new(false).at(5, 10).is_empty());
    }
}
