//! Sets of statuses that count as success.

use serde::{Deserialize, Serialize};

/// A set of response statuses, 100 to 599.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    bits: [u64; 8],
}

impl Default for Statuses {
    /// 200 to 399: the statuses of successful responses.
    fn default() -> Self {
        let mut set = Statuses::none();
        (200..400).for_each(|status| set.insert(status));
        set
    }
}

impl Statuses {
    /// The empty set.
    #[must_use]
    pub fn none() -> Self {
        Statuses { bits: [0; 8] }
    }

    /// Adds a status. Statuses outside 100 to 599 are ignored.
    pub fn insert(&mut self, status: u16) {
        if let Some((word, bit)) = place(status)
            && let Some(bits) = self.bits.get_mut(word)
        {
            *bits |= bit;
        }
    }

    /// Adds all statuses of a class: 2 for 200 to 299.
    pub fn insert_class(&mut self, class: u16) {
        (class * 100..class * 100 + 100).for_each(|status| self.insert(status));
    }

    /// Whether `status` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        place(status).is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|bits| bits & bit != 0))
    }
}

#[inline]
fn place(status: u16) -> Option<(usize, u64)> {
    let index = status.checked_sub(100)?;
    (index < 500).then(|| (usize::from(index / 64), 1 << (index % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_classes() {
        let usual = Statuses::default();
        let inside: Vec<u16> = (0..=999).filter(|s| usual.contains(*s)).collect();
        assert_eq!(inside, (200..400).collect::<Vec<u16>>());
        let mut errors = Statuses::none();
        errors.insert_class(5);
        errors.insert(404);
        errors.insert(600);
        let inside: Vec<u16> = (0..=999).filter(|s| errors.contains(*s)).collect();
        assert_eq!(inside, std::iter::once(404).chain(500..600).collect::<Vec<u16>>());
    }
}
