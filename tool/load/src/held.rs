//! Values a user holds on to between requests: first kept, first taken. All memory is there from the start.

/// Longest value, bytes.
pub(crate) const VALUE_BYTES: usize = 127;

/// Most values of one list; where there are more, the oldest is forgotten.
pub(crate) const VALUES: usize = 64;

/// A place: a byte that says how long the value is, and the value.
const PLACE_BYTES: usize = VALUE_BYTES + 1;

/// One user's kept values, list by list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    lists: Box<[List]>,
}

/// Values in the order in which they were kept, in a ring of [`VALUES`] places.
#[derive(Debug, Clone)]
struct List {
    places: Box<[u8]>,
    first: usize,
    count: usize,
}

impl Held {
    /// Room for so many lists.
    pub(crate) fn new(lists: usize) -> Self {
        // Memory that is never written to is never given: a user that keeps little costs little.
        let list = |_| List { places: vec![0; VALUES * PLACE_BYTES].into(), first: 0, count: 0 };
        Held { lists: (0..lists).map(list).collect() }
    }

    /// Whether there is something to take.
    pub(crate) fn has(&self, list: usize) -> bool {
        self.lists.get(list).is_some_and(|list| list.count > 0)
    }

    /// Keeps a value; `false` where it is empty or too long.
    pub(crate) fn keep(&mut self, list: usize, value: &[u8]) -> bool {
        let Ok(len) = u8::try_from(value.len()) else { return false };
        let Some(list) = self.lists.get_mut(list).filter(|_| (1..=VALUE_BYTES).contains(&value.len())) else {
            return false;
        };
        if list.count == VALUES {
            list.first = (list.first + 1) % VALUES;
            list.count -= 1;
        }
        let Some(place) = list.place_mut(list.first + list.count) else { return false };
        if let Some((first, rest)) = place.split_first_mut() {
            *first = len;
            rest.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        }
        list.count += 1;
        true
    }

    /// Takes the oldest value and appends it to `out`; nothing where there is none.
    pub(crate) fn take(&mut self, list: usize, out: &mut Vec<u8>) {
        let Some(list) = self.lists.get_mut(list).filter(|list| list.count > 0) else { return };
        if let Some((len, value)) = list.place_mut(list.first).and_then(|place| place.split_first()) {
            out.extend_from_slice(value.get(..usize::from(*len)).unwrap_or_default());
        }
        list.first = (list.first + 1) % VALUES;
        list.count -= 1;
    }
}

impl List {
    fn place_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        self.places.chunks_exact_mut(PLACE_BYTES).nth(number % VALUES)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As an ordinary queue that forgets its oldest when full.
        #[test]
        fn first_kept_is_first_taken(
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..140)), 0..400)
        ) {
            let (mut held, mut queue) = (Held::new(2), VecDeque::new());
            for value in values {
                match value {
                    Some(value) => {
                        let kept = held.keep(1, &value);
                        prop_assert_eq!(kept, (1..=VALUE_BYTES).contains(&value.len()));
                        if kept {
                            queue.push_back(value);
                        }
                        if queue.len() > VALUES {
                            queue.pop_front();
                        }
                    }
                    None => {
                        let mut out = Vec::new();
                        held.take(1, &mut out);
                        prop_assert_eq!(out, queue.pop_front().unwrap_or_default());
                    }
                }
                prop_assert_eq!(held.has(1), !queue.is_empty());
                prop_assert!(!held.has(0) && !held.has(2));
            }
        }
    }
}
