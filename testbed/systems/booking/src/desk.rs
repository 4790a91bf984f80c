//! The front desk: what people ask for, done or refused with the reason.

mod any;
mod audit;
mod book;
mod known;
mod rooms;

use std::sync::Arc;

use serde::Serialize;

use self::known::Known;
pub(crate) use self::{
    book::Wish,
    rooms::{DAYS_MAX, DAYS_OF_MANY_MAX, ROOMS_MAX, RoomDays, Span},
};
use crate::{
    refusal::Refusal,
    room::{Room, Time},
    secrets::Secrets,
    tables::{Booking, Tables},
};

/// Books and cancels.
#[derive(Debug)]
pub(crate) struct Desk {
    tables: Tables,
    secrets: Secrets,
    known: Known,
}

/// A booking as its maker may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Shown {
    pub(crate) id: String,
    room: i64,
    room_name: String,
    #[serde(flatten)]
    time: Time,
    name: String,
    /// Its last four digits.
    aadhaar: String,
    pub(crate) version: i64,
    cancelled: bool,
}

impl Desk {
    /// `rooms` are those to begin with; others are looked up when they are asked for.
    pub(crate) fn new(tables: Tables, secrets: Secrets, rooms: Vec<Room>) -> Self {
        Self { tables, secrets, known: Known::new(rooms) }
    }

    /// The booking of this name.
    pub(crate) async fn booking(&self, id: &str) -> Result<Shown, Refusal> {
        let number = self.secrets.booking_number(id).ok_or_else(no_booking)?;
        let booking = self.tables.by_number(number).await?.ok_or_else(no_booking)?;
        self.show(booking).await
    }

    /// Cancels a booking, if it still is of `version`.
    pub(crate) async fn cancel(&self, id: &str, version: Option<i64>, from: &str) -> Result<(), Refusal> {
        let number = self.secrets.booking_number(id).ok_or_else(no_booking)?;
        if self.tables.cancel(number, version, from).await? {
            return Ok(());
        }
        match self.tables.by_number(number).await? {
            Some(_) if version.is_some() => {
                Err(Refusal::new(409, "the booking has changed since it was looked at")
                    .hint("look at it again with GET, then decide"))
            }
            _ => Err(no_booking()),
        }
    }

    /// Whether this is the administrator's token.
    pub(crate) fn is_admin(&self, token: &[u8]) -> bool {
        self.secrets.is_admin(token)
    }

    async fn show(&self, booking: Booking) -> Result<Shown, Refusal> {
        let room = self.room(booking.room).await?;
        Ok(Shown {
            id: self.secrets.booking_id(booking.number),
            room: room.id,
            room_name: room.name.clone(),
            time: booking.time,
            name: booking.name,
            aadhaar: format!("XXXX XXXX {}", booking.aadhaar_last4),
            version: booking.version,
            cancelled: booking.cancelled_at_us.is_some(),
        })
    }

    /// A room, by its number.
    pub(crate) async fn room(&self, id: i64) -> Result<Arc<Room>, Refusal> {
        if let Some(room) = self.known.get(id) {
            return Ok(room);
        }
        Ok(self.known.add(self.tables.rooms().get(id).await?.ok_or_else(no_room)?))
    }
}

fn no_booking() -> Refusal {
    Refusal::new(404, "there is no such booking, or it was cancelled")
        .hint("look for a mistyped letter in its id: the id is the one that booking answered with")
}

fn no_room() -> Refusal {
    Refusal::new(404, "there is no such room").hint("GET /rooms lists them")
}
