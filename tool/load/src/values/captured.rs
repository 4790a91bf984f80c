//! Values that a user has captured from responses: first in, first out. All memory is allocated at the start.

/// Longest value, bytes.
pub(crate) const VALUE_BYTES: usize = 127;

/// Capacity of one list. When it is full, the oldest value makes room.
pub(crate) const VALUES: usize = 64;

/// Size of one entry: a length byte and the value.
const ENTRY_BYTES: usize = VALUE_BYTES + 1;

/// One user's captured values, by list.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapturedValues {
    lists: Box<[Ring]>,
}

/// A ring of [`VALUES`] entries, oldest first.
#[derive(Debug, Clone)]
struct Ring {
    entries: Box<[u8]>,
    first: usize,
    count: usize,
}

impl CapturedValues {
    /// Allocates this many lists.
    pub(crate) fn new(lists: usize) -> Self {
        // The kernel provides memory on the first write only, so a user that captures little costs little.
        let list = |_| Ring { entries: vec![0; VALUES * ENTRY_BYTES].into(), first: 0, count: 0 };
        CapturedValues { lists: (0..lists).map(list).collect() }
    }

    /// Whether the list has a value to take.
    pub(crate) fn has(&self, list: usize) -> bool {
        self.lists.get(list).is_some_and(|list| list.count > 0)
    }

    /// Adds a value. Returns false if it is empty or too long.
    pub(crate) fn add(&mut self, list: usize, value: &[u8]) -> bool {
        let Ok(len) = u8::try_from(value.len()) else { return false };
        let Some(list) = self.lists.get_mut(list).filter(|_| (1..=VALUE_BYTES).contains(&value.len())) else {
            return false;
        };
        if list.count == VALUES {
            list.first = (list.first + 1) % VALUES;
            list.count -= 1;
        }
        let Some(entry) = list.entry_mut(list.first + list.count) else { return false };
        if let Some((first, rest)) = entry.split_first_mut() {
            *first = len;
            rest.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        }
        list.count += 1;
        true
    }

    /// Removes the oldest value and appends it to `out`. Does nothing if the list is empty.
    pub(crate) fn take(&mut self, list: usize, out: &mut Vec<u8>) {
        let Some(list) = self.lists.get_mut(list).filter(|list| list.count > 0) else { return };
        if let Some((len, value)) = list.entry_mut(list.first).and_then(|entry| entry.split_first()) {
            out.extend_from_slice(value.get(..usize::from(*len)).unwrap_or_default());
        }
        list.first = (list.first + 1) % VALUES;
        list.count -= 1;
    }
}

impl Ring {
    fn entry_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        self.entries.chunks_exact_mut(ENTRY_BYTES).nth(number % VALUES)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Behaves like a queue that drops its oldest value when full.
        #[test]
        fn first_in_is_first_out(
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..140)), 0..400)
        ) {
            let (mut captured, mut queue) = (CapturedValues::new(2), VecDeque::new());
            for value in values {
                match value {
                    Some(value) => {
                        let added = captured.add(1, &value);
                        prop_assert_eq!(added, (1..=VALUE_BYTES).contains(&value.len()));
                        if added {
                            queue.push_back(value);
                        }
                        if queue.len() > VALUES {
                            queue.pop_front();
                        }
                    }
                    None => {
                        let mut out = Vec::new();
                        captured.take(1, &mut out);
                        prop_assert_eq!(out, queue.pop_front().unwrap_or_default());
                    }
                }
                prop_assert_eq!(captured.has(1), !queue.is_empty());
                prop_assert!(!captured.has(0) && !captured.has(2));
            }
        }
    }
}
