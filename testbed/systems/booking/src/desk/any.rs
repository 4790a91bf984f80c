//! Booking any room that is free.

use super::{
    Desk,
    book::{LOOK_AHEAD_DAYS, Wish, made},
};
use crate::{
    day::Day,
    refusal::Refusal,
    room::Time,
    tables::{Booking, NewBooking},
};

/// Free rooms that are looked up at once, to try them in turn.
const FREE_ROOMS: i64 = 8;
/// How often free rooms are looked up while others are quicker to take them.
const TRIES: usize = 32;

impl Desk {
    /// A guess comes first: as long as few rooms are taken it is right, and nothing need be looked up. Then rooms that are
    /// free are tried in random order, so that those who ask at once do not all try the same.
    pub(super) async fn book_any(&self, wish: &Wish) -> Result<Booking, Refusal> {
        if wish.slot.is_some() {
            return Err(Refusal::field("slot", "goes with a room: name the room it is a slot of"));
        }
        let new = self.new_booking(wish, None);
        let mut rooms = Vec::from_iter(self.known.any_of_whole_days());
        for _ in 0..=TRIES {
            for room in rooms {
                if let Some(number) = self.tables.book(room, &new).await? {
                    return Ok(made(number, room, new));
                }
                if let Some(booking) = self.made_before(wish, &new).await? {
                    return Ok(booking);
                }
            }
            rooms = self.free_rooms(wish.day).await?;
            if rooms.is_empty() {
                return self.none_free(wish, &new).await;
            }
        }
        Err(Refusal::new(503, "others were quicker each time").hint("ask again in a moment"))
    }

    /// Some rooms that are free, from a random one on: were it always from the first one on, those before would be full,
    /// and passed over each time.
    async fn free_rooms(&self, day: Day) -> Result<Vec<i64>, Refusal> {
        let from = self.known.any_of_whole_days().unwrap_or(0);
        let mut free = self.tables.rooms().free_on(day, from, FREE_ROOMS).await?;
        if free.is_empty() {
            free = self.tables.rooms().free_on(day, 0, FREE_ROOMS).await?;
        }
        fastrand::shuffle(&mut free);
        Ok(free)
    }

    async fn none_free(&self, wish: &Wish, new: &NewBooking) -> Result<Booking, Refusal> {
        if let Some(booking) = self.made_before(wish, new).await? {
            return Ok(booking);
        }
        let rooms = self.tables.rooms().count_of_whole_days().await?;
        if rooms == 0 {
            return Err(Refusal::field(
                "room",
                "is missing: every room here has slots, so one must be named",
            ));
        }
        let (from, to) = (wish.day.plus(1), wish.day.plus(LOOK_AHEAD_DAYS));
        let booked = self.tables.rooms().booked_by_day(from, to).await?;
        let full: Vec<Day> =
            booked.into_iter().filter(|(_, count)| *count >= rooms).map(|(day, _)| day).collect();
        let day = (1..=LOOK_AHEAD_DAYS)
            .map(|later| wish.day.plus(later))
            .find(|day| full.binary_search(day).is_err());
        Err(Refusal::taken("every room is taken on that day", day.map(|day| Time { day, slot: None })))
    }
}
