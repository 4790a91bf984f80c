//! The rooms that are known: a room never changes and is never taken away, so none need be looked up twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use crate::room::Room;

/// Rooms looked up before. There may be others: another server on the same database adds them too.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<Rooms>);

#[derive(Debug, Default)]
struct Rooms {
    by_number: BTreeMap<i64, Arc<Room>>,
    /// Those booked by whole days.
    whole_days: Vec<i64>,
}

impl Known {
    pub(super) fn new(rooms: Vec<Room>) -> Self {
        let known = Self::default();
        rooms.into_iter().for_each(|room| drop(known.add(room)));
        known
    }

    pub(super) fn get(&self, number: i64) -> Option<Arc<Room>> {
        self.read().by_number.get(&number).cloned()
    }

    /// A room at random, of those that are booked by whole days.
    pub(super) fn any_of_whole_days(&self) -> Option<i64> {
        fastrand::choice(self.read().whole_days.iter().copied())
    }

    pub(super) fn add(&self, room: Room) -> Arc<Room> {
        let room = Arc::new(room);
        let mut rooms = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = rooms.by_number.insert(room.id, Arc::clone(&room)).is_none();
        if is_new && room.slots.is_empty() {
            rooms.whole_days.push(room.id);
        }
        room
    }

    fn read(&self) -> RwLockReadGuard<'_, Rooms> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;

    #[test]
    fn a_room_is_known_once_and_only_those_of_whole_days_are_guessed() {
        let room = |id, slots: &[&str]| {
            let slots = slots.iter().map(|text| Slot::read(text).unwrap()).collect();
            Room { id, name: format!("Room {id}"), slots }
        };
        let known = Known::new(vec![room(1, &["09:00-12:00"])]);
        assert_eq!(known.any_of_whole_days(), None);
        known.add(room(2, &[]));
        known.add(room(2, &[]));
        assert_eq!(known.any_of_whole_days(), Some(2));
        assert_eq!(known.read().whole_days, [2]);
        assert_eq!(known.get(1).map(|room| room.name.clone()).as_deref(), Some("Room 1"));
        assert!(known.get(3).is_none());
    }
}
