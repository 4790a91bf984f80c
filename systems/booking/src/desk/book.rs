//! Booking: a certain room, or any that is free.

use super::{Desk, Shown};
use crate::{
    aadhaar::Aadhaar,
    day::Day,
    guest::Name,
    refusal::Refusal,
    room::{Room, Time},
    slot::Slot,
    tables::{Booking, NewBooking, TIMES_MAX},
};

/// How far ahead a free time is looked for, days.
const LOOK_AHEAD_DAYS: i32 = 366;
/// Free rooms that are looked up at once, to try them in turn.
const FREE_ROOMS: i64 = 64;
/// How often free rooms are looked up while others are quicker to take them.
const TRIES: usize = 32;

/// What somebody wishes to book.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// None: any that is booked by whole days.
    pub(crate) room: Option<i64>,
    pub(crate) day: Day,
    pub(crate) slot: Option<Slot>,
    pub(crate) name: Name,
    pub(crate) aadhaar: Aadhaar,
    /// The client's `Idempotency-Key`.
    pub(crate) key: Option<Vec<u8>>,
    /// The address it is asked from.
    pub(crate) from: String,
}

impl Desk {
    /// Books; durable when this answers. Asked again with the same key, it answers the same and books nothing more.
    pub(crate) async fn book(&self, wish: Wish) -> Result<Shown, Refusal> {
        let booking = match wish.room {
            Some(room) => self.book_this(&wish, room).await?,
            None => self.book_any(&wish).await?,
        };
        self.show(booking).await
    }

    async fn book_this(&self, wish: &Wish, room: i64) -> Result<Booking, Refusal> {
        let room = self.room(room).await.map_err(|refusal| match refusal.status {
            404 => Refusal::field("room", "is none of the rooms there are").hint("GET /rooms lists them"),
            _ => refusal,
        })?;
        let slot = room.slot(wish.slot.clone()).map_err(|reason| Refusal::field("slot", reason))?;
        let new = self.new_booking(wish, slot);
        if let Some(number) = self.tables.book(room.id, &new).await? {
            return Ok(made(number, room.id, new));
        }
        match self.made_before(wish, &new).await? {
            Some(booking) => Ok(booking),
            None => {
                let free_next = self.free_next(&room, &new.time).await?;
                Err(Refusal::taken("the room is taken at that time", free_next))
            }
        }
    }

    /// Rooms are tried in random order, so that those who ask at once do not all try the same.
    async fn book_any(&self, wish: &Wish) -> Result<Booking, Refusal> {
        if wish.slot.is_some() {
            return Err(Refusal::field("slot", "goes with a room: name the room it is a slot of"));
        }
        let new = self.new_booking(wish, None);
        for _ in 0..TRIES {
            let mut free = self.tables.rooms().free_on(wish.day, FREE_ROOMS).await?;
            fastrand::shuffle(&mut free);
            for &room in &free {
                if let Some(number) = self.tables.book(room, &new).await? {
                    return Ok(made(number, room, new));
                }
                if let Some(booking) = self.made_before(wish, &new).await? {
                    return Ok(booking);
                }
            }
            if free.is_empty() {
                return self.none_free(wish, &new).await;
            }
        }
        Err(Refusal::new(503, "others were quicker each time").hint("ask again in a moment"))
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

    /// What the same request booked before.
    async fn made_before(&self, wish: &Wish, new: &NewBooking) -> Result<Option<Booking>, Refusal> {
        let Some(request) = &new.request else { return Ok(None) };
        let Some(booking) = self.tables.by_request(request).await? else { return Ok(None) };
        let same = wish.room.is_none_or(|room| room == booking.room)
            && booking.time == new.time
            && booking.name == new.name
            && booking.aadhaar_hash == new.aadhaar_hash;
        if same {
            return Ok(Some(booking));
        }
        Err(Refusal::field("Idempotency-Key", "was used for another booking: each needs a key of its own"))
    }

    async fn free_next(&self, room: &Room, time: &Time) -> Result<Option<Time>, Refusal> {
        let booked = self.tables.booked(room.id, time.day, time.day.plus(LOOK_AHEAD_DAYS)).await?;
        let free = room.free_after(time, &booked, LOOK_AHEAD_DAYS);
        // Where not all bookings were read, those after the last that was are not known.
        let known_until = booked.last().filter(|_| booked.len() >= TIMES_MAX);
        Ok(free.filter(|free| known_until.is_none_or(|last| free < last)))
    }

    fn new_booking(&self, wish: &Wish, slot: Option<Slot>) -> NewBooking {
        NewBooking {
            time: Time { day: wish.day, slot },
            name: wish.name.as_str().to_owned(),
            aadhaar_hash: self.secrets.identity_hash(&wish.aadhaar),
            aadhaar_last4: wish.aadhaar.last_four(),
            request: wish.key.as_deref().map(|key| self.secrets.request_hash(key)),
            from: wish.from.clone(),
        }
    }
}

/// The booking as the database now has it.
fn made(number: i64, room: i64, new: NewBooking) -> Booking {
    Booking {
        number,
        room,
        time: new.time,
        name: new.name,
        aadhaar_hash: new.aadhaar_hash.to_vec(),
        aadhaar_last4: new.aadhaar_last4,
        version: 1,
        cancelled_at_us: None,
    }
}
