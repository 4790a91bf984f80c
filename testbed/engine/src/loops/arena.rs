//! Storage whose keys are never used twice.

use slab::Slab;

/// Identifies a value in an [`Arena`]. A key may safely outlive its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// A key outside of every arena, for descriptors that are watched but not stored in one.
    pub(crate) const fn reserved(number: u32) -> Self {
        Self { index: u32::MAX, generation: number }
    }

    pub(crate) const fn to_bits(self) -> u64 {
        (self.index as u64) << 32 | self.generation as u64
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// Values in slots that are reused under new keys.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Slab<(u32, T)>,
    generation: u32,
}

impl<T> Arena<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Slab::new(), generation: 0 }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        self.insert_with(|_| value)
    }

    /// Inserts a value that holds its own key.
    pub(crate) fn insert_with(&mut self, value: impl FnOnce(Key) -> T) -> Key {
        self.generation = self.generation.wrapping_add(1);
        let slot = self.slots.vacant_entry();
        // There are fewer descriptors, hence connections, than 2^32.
        let key = Key { index: slot.key() as u32, generation: self.generation };
        slot.insert((key.generation, value(key)));
        key
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(key.index as usize)?;
        (*generation == key.generation).then_some(value)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get_mut(key)?;
        self.slots.try_remove(key.index as usize).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All values with their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots
            .iter()
            .map(|(index, (generation, value))| (Key { index: index as u32, generation: *generation }, value))
    }

    /// The keys of all values, in a separate list so that values may be removed while it is read.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_does_not_find_the_new_value_of_its_slot() {
        let mut arena = Arena::new();
        let old = arena.insert('a');
        assert_eq!(arena.remove(old), Some('a'));
        let new = arena.insert('b');
        assert_eq!(arena.get_mut(old), None);
        assert_eq!(arena.remove(old), None);
        assert_eq!(arena.get_mut(new), Some(&mut 'b'));
        assert_eq!(arena.keys(), [new]);
    }

    #[test]
    fn keys_survive_the_trip_through_a_poller() {
        let key = Key { index: 0xdead_beef, generation: 0x0123_4567 };
        assert_eq!(Key::from_bits(key.to_bits()), key);
    }
}
