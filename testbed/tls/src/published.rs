//! A certificate and its key as text, in memory that forked processes share: what one process has read is what all show, whatever
//! becomes of the files meanwhile.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use engine::shared::Atomics;
use zeroize::Zeroizing;

/// The longest text that is published, bytes, of certificate and key together. Chains take some thousand.
const LEN_MAX: usize = 64 << 10;
/// Bytes of a number.
const WIDTH: usize = size_of::<u64>();
/// Numbers of a text: two lengths, and the bytes.
const CELLS: usize = 2 + LEN_MAX / WIDTH;
/// Texts that are kept: the newest stays whole while the next one is written.
const KEPT: usize = 2;

/// The certificate and the key that were published last. How often, is the first number.
pub(crate) struct Published(Atomics);

/// The texts of a certificate, followed by those that certify it, and of its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) certificate: Zeroizing<Vec<u8>>,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

impl Published {
    /// Nothing is published yet.
    pub(crate) fn new() -> Self {
        Self(Atomics::new(1 + KEPT * CELLS))
    }

    /// How often something was published.
    pub(crate) fn count(&self) -> u64 {
        self.0[0].load(SeqCst)
    }

    /// Publishes texts, and returns how often that was done. Those that are too long are left to be read from their files. Only
    /// one process may call this.
    pub(crate) fn publish(&self, texts: &Texts) -> u64 {
        let count = self.count() + 1;
        let (certificate, key) = (&texts.certificate[..], &texts.key[..]);
        let fits = certificate.len() + key.len() <= LEN_MAX;
        let lengths = if fits { [certificate.len(), key.len()] } else { [0, 0] };
        let cells = self.cells(count);
        for (cell, length) in cells.iter().zip(lengths) {
            cell.store(length as u64, Relaxed);
        }
        let bytes = Zeroizing::new([certificate, key].concat());
        for (cell, part) in cells.iter().skip(2).zip(bytes.chunks(WIDTH)) {
            let mut number = [0; WIDTH];
            number[..part.len()].copy_from_slice(part);
            cell.store(u64::from_le_bytes(number), Relaxed);
        }
        self.0[0].store(count, SeqCst);
        count
    }

    /// What was published last, and how often that was done by then. `None` if it was too long.
    pub(crate) fn last(&self) -> (u64, Option<Texts>) {
        loop {
            let count = self.count();
            let texts = self.copied(count);
            // The place of this text is written to again only once another was published.
            if self.count() == count {
                return (count, texts);
            }
        }
    }

    fn copied(&self, count: u64) -> Option<Texts> {
        let cells = self.cells(count);
        let numbers = || cells.iter().map(|cell| cell.load(Relaxed));
        let mut lengths = numbers().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let (first, second) = (lengths.next()?, lengths.next()?);
        let whole = first.checked_add(second).filter(|length| (1..=LEN_MAX).contains(length))?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(LEN_MAX));
        numbers().skip(2).take(whole.div_ceil(WIDTH)).for_each(|number| bytes.extend(number.to_le_bytes()));
        let (certificate, key) = bytes.get(..whole)?.split_at_checked(first)?;
        Some(Texts { certificate: certificate.to_vec().into(), key: key.to_vec().into() })
    }

    fn cells(&self, count: u64) -> &[std::sync::atomic::AtomicU64] {
        let place = usize::from(!count.is_multiple_of(KEPT as u64));
        &self.0[1 + place * CELLS..][..CELLS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(certificate: usize, key: usize) -> Texts {
        let bytes = |length: usize| Zeroizing::new((0..length).map(|at| (at * 7 + length) as u8).collect());
        Texts { certificate: bytes(certificate), key: bytes(key) }
    }

    #[test]
    fn what_was_published_last_is_read() {
        let published = Published::new();
        assert!(published.last().0 == 0 && published.last().1.is_none());
        for (count, (certificate, key)) in
            [(1_500, 241), (7, 8), (1, 1), (LEN_MAX - 9, 9)].into_iter().enumerate()
        {
            assert_eq!(published.publish(&texts(certificate, key)), count as u64 + 1);
            assert!(published.last() == (count as u64 + 1, Some(texts(certificate, key))), "{certificate}");
        }
        published.publish(&texts(LEN_MAX, 1));
        assert!(published.last() == (5, None), "left to be read from the files");
    }
}
