//! Rooms: listed, added, and when they are booked.

use serde::Serialize;

use super::Desk;
use crate::{
    day::Day,
    refusal::Refusal,
    room::{Room, Time},
    tables::NewRoom,
};

/// Most rooms in one answer.
pub(crate) const ROOMS_MAX: i64 = 1000;
/// Most days in one answer about a room.
pub(crate) const DAYS_MAX: i32 = 366;
/// Most days in one answer about many rooms.
pub(crate) const DAYS_OF_MANY_MAX: i32 = 62;

/// From a day to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    pub(crate) from: Day,
    pub(crate) to: Day,
}

/// A part of the rooms, in order.
#[derive(Debug, Serialize)]
pub(crate) struct RoomList {
    #[serde(flatten)]
    span: Option<Span>,
    pub(crate) rooms: Vec<RoomShown>,
    /// The last room's number, where there are more: to be asked for as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_after: Option<i64>,
}

/// A room, and when it is booked where that was asked.
#[derive(Debug, Serialize)]
pub(crate) struct RoomShown {
    #[serde(flatten)]
    pub(crate) room: Room,
    #[serde(skip_serializing_if = "Option::is_none")]
    booked: Option<Vec<Time>>,
}

/// One room over some days.
#[derive(Debug, Serialize)]
pub(crate) struct RoomDays {
    #[serde(flatten)]
    pub(crate) room: Room,
    #[serde(flatten)]
    span: Span,
    pub(crate) booked: Vec<Time>,
}

impl Desk {
    /// At most `limit` rooms after `after`, and when they are booked where a span is given.
    pub(crate) async fn rooms(
        &self,
        after: i64,
        limit: i64,
        span: Option<Span>,
    ) -> Result<RoomList, Refusal> {
        let found = self.tables.rooms().list(after, limit).await?;
        let next_after = found.last().map(|room| room.id).filter(|_| found.len() as i64 == limit);
        let mut rooms: Vec<_> = found.into_iter().map(|room| RoomShown { room, booked: None }).collect();
        if let Some(span) = span {
            self.fill_in(&mut rooms, span).await?;
        }
        Ok(RoomList { span, rooms, next_after })
    }

    async fn fill_in(&self, rooms: &mut [RoomShown], span: Span) -> Result<(), Refusal> {
        let (Some(first), Some(last)) = (rooms.first(), rooms.last()) else { return Ok(()) };
        let ends = (first.room.id, last.room.id);
        let mut booked = self.tables.booked_among(ends, span.from, span.to).await?.into_iter().peekable();
        for shown in rooms {
            let mut times = Vec::new();
            while let Some((_, time)) = booked.next_if(|(room, _)| *room <= shown.room.id) {
                times.push(time);
            }
            shown.booked = Some(times);
        }
        Ok(())
    }

    /// When a room is booked.
    pub(crate) async fn room_days(&self, id: i64, span: Span) -> Result<RoomDays, Refusal> {
        let room = self.room(id).await?;
        let booked = self.tables.booked(id, span.from, span.to).await?;
        Ok(RoomDays { room: Room::clone(&room), span, booked })
    }

    /// Adds a room.
    pub(crate) async fn add_room(&self, new: &NewRoom) -> Result<Room, Refusal> {
        let id = self.tables.rooms().add(new).await?;
        let taken = || Refusal::new(409, "there is a room of that name already").hint("choose another name");
        let id = id.ok_or_else(taken)?;
        Ok(Room::clone(&*self.room(id).await?))
    }
}
