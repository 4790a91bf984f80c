//! Booking, and the room that was named.

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
pub(super) const LOOK_AHEAD_DAYS: i32 = 366;

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

    /// What the same request booked before.
    pub(super) async fn made_before(
        &self,
        wish: &Wish,
        new: &NewBooking,
    ) -> Result<Option<Booking>, Refusal> {
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

    pub(super) fn new_booking(&self, wish: &Wish, slot: Option<Slot>) -> NewBooking {
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
pub(super) fn made(number: i64, room: i64, new: NewBooking) -> Booking {
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
