//! The rooms: looked up, listed, added, and when they are booked.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use serde::Serialize;

use crate::{
    refusal::Refusal,
    tables::{NewRoom, Tables},
    values::{
        day::DayRange,
        room::{Period, Room},
    },
};

/// Maximum number of rooms in one response.
pub(crate) const ROOMS_MAX: i64 = 1000;
/// Maximum number of days in a response about one room.
pub(crate) const DAYS_MAX: i32 = 366;
/// Maximum number of days in a response about many rooms.
pub(crate) const DAYS_OF_MANY_MAX: i32 = 62;

/// The rooms of the database. A room never changes and is never removed, so each is looked up only once.
#[derive(Debug)]
pub(crate) struct Rooms {
    tables: Arc<Tables>,
    cache: RoomCache,
}

/// A page of the rooms, in order.
#[derive(Debug, Serialize)]
pub(crate) struct RoomList {
    #[serde(flatten)]
    days: Option<DayRange>,
    rooms: Vec<RoomView>,
    /// The number to pass as `after` for the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

/// A room, and when it is booked if the request asked for that.
#[derive(Debug, Serialize)]
struct RoomView {
    #[serde(flatten)]
    room: Room,
    #[serde(skip_serializing_if = "Option::is_none")]
    booked: Option<Vec<Period>>,
}

/// When one room is booked.
#[derive(Debug, Serialize)]
pub(crate) struct RoomSchedule {
    #[serde(flatten)]
    pub(crate) room: Room,
    #[serde(flatten)]
    days: DayRange,
    pub(crate) booked: Vec<Period>,
}

impl Rooms {
    /// Starts with the rooms in `known`, and looks up others when they are asked for.
    pub(crate) fn new(tables: Arc<Tables>, known: Vec<Room>) -> Self {
        Self { tables, cache: RoomCache::new(known) }
    }

    /// The room with this number.
    pub(crate) async fn get(&self, number: i64) -> Result<Arc<Room>, Refusal> {
        if let Some(room) = self.cache.get(number) {
            return Ok(room);
        }
        let found = self.tables.rooms().get(number).await?;
        Ok(self.cache.add(found.ok_or_else(no_such_room)?))
    }

    /// A random room among the cached ones that are booked by whole days.
    pub(crate) fn random_whole_day(&self) -> Option<i64> {
        self.cache.random_whole_day()
    }

    /// At most `limit` rooms after this number, and when they are booked if `days` is given.
    pub(crate) async fn list(
        &self,
        after: i64,
        limit: i64,
        days: Option<DayRange>,
    ) -> Result<RoomList, Refusal> {
        let found = self.tables.rooms().list(after, limit).await?;
        let next_after = found.last().map(|room| room.id).filter(|_| found.len() as i64 == limit);
        let mut rooms: Vec<_> = found.into_iter().map(|room| RoomView { room, booked: None }).collect();
        if let Some(days) = days {
            self.add_bookings(&mut rooms, days).await?;
        }
        Ok(RoomList { days, rooms, next_after })
    }

    async fn add_bookings(&self, rooms: &mut [RoomView], days: DayRange) -> Result<(), Refusal> {
        let (Some(first), Some(last)) = (rooms.first(), rooms.last()) else { return Ok(()) };
        let ends = (first.room.id, last.room.id);
        let mut booked = self.tables.booked_among(ends, days).await?.into_iter().peekable();
        for view in rooms {
            let mut periods = Vec::new();
            while let Some((_, period)) = booked.next_if(|(room, _)| *room <= view.room.id) {
                periods.push(period);
            }
            view.booked = Some(periods);
        }
        Ok(())
    }

    /// When a room is booked.
    pub(crate) async fn schedule(&self, number: i64, days: DayRange) -> Result<RoomSchedule, Refusal> {
        let room = self.get(number).await?;
        let booked = self.tables.booked(number, days).await?;
        Ok(RoomSchedule { room: Room::clone(&room), days, booked })
    }

    /// Adds a room.
    pub(crate) async fn add(&self, new: &NewRoom) -> Result<Room, Refusal> {
        let number = self.tables.rooms().add(new).await?;
        let taken = || Refusal::new(409, "there is a room of that name already").hint("choose another name");
        Ok(Room::clone(&*self.get(number.ok_or_else(taken)?).await?))
    }
}

fn no_such_room() -> Refusal {
    Refusal::new(404, "there is no such room").hint("GET /rooms lists them")
}

/// Rooms that were looked up before. Another server on the same database may have added more.
#[derive(Debug, Default)]
struct RoomCache(RwLock<CachedRooms>);

#[derive(Debug, Default)]
struct CachedRooms {
    by_number: BTreeMap<i64, Arc<Room>>,
    /// The numbers of those that are booked by whole days.
    whole_days: Vec<i64>,
}

impl RoomCache {
    fn new(rooms: Vec<Room>) -> Self {
        let cache = Self::default();
        rooms.into_iter().for_each(|room| drop(cache.add(room)));
        cache
    }

    fn get(&self, number: i64) -> Option<Arc<Room>> {
        self.read().by_number.get(&number).cloned()
    }

    fn random_whole_day(&self) -> Option<i64> {
        fastrand::choice(self.read().whole_days.iter().copied())
    }

    fn add(&self, room: Room) -> Arc<Room> {
        let room = Arc::new(room);
        let mut rooms = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = rooms.by_number.insert(room.id, Arc::clone(&room)).is_none();
        if is_new && room.slots.is_empty() {
            rooms.whole_days.push(room.id);
        }
        room
    }

    fn read(&self) -> RwLockReadGuard<'_, CachedRooms> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::room::Slot;

    #[test]
    fn a_room_is_cached_once_and_only_whole_day_rooms_are_drawn() {
        let room = |id, slots: &[&str]| {
            let slots = slots.iter().map(|text| Slot::parse(text).unwrap()).collect();
            Room { id, name: format!("Room {id}"), slots }
        };
        let cache = RoomCache::new(vec![room(1, &["09:00-12:00"])]);
        assert_eq!(cache.random_whole_day(), None);
        cache.add(room(2, &[]));
        cache.add(room(2, &[]));
        assert_eq!(cache.random_whole_day(), Some(2));
        assert_eq!(cache.read().whole_days, [2]);
        assert_eq!(cache.get(1).map(|room| room.name.clone()).as_deref(), Some("Room 1"));
        assert!(cache.get(3).is_none());
    }
}
