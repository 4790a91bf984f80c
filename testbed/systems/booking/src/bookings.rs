//! Booking and cancelling.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    refusal::Refusal,
    rooms::Rooms,
    secrets::Secrets,
    tables::{AuditList, Booking, NewBooking, PERIODS_MAX, Tables},
    values::{
        day::{Day, DayRange},
        guest::{Aadhaar, GuestName},
        room::{Period, Room, Slot},
    },
};

/// How far ahead to look for the next free period, days.
const LOOK_AHEAD_DAYS: i32 = 366;
/// How many free rooms to look up at once, to try them in turn.
const FREE_ROOMS: i64 = 8;
/// How often to look up free rooms while other clients are quicker to take them.
const LOOK_UPS_MAX: usize = 32;

/// Makes, shows and cancels bookings.
#[derive(Debug)]
pub(crate) struct Bookings {
    tables: Arc<Tables>,
    secrets: Secrets,
    rooms: Rooms,
}

/// A request to book a room.
#[derive(Debug, Clone)]
pub(crate) struct BookingRequest {
    /// The number of the room. `None` means any room that is booked by whole days.
    pub(crate) room: Option<i64>,
    pub(crate) day: Day,
    pub(crate) slot: Option<Slot>,
    pub(crate) name: GuestName,
    pub(crate) aadhaar: Aadhaar,
    /// The client's `Idempotency-Key`.
    pub(crate) key: Option<Vec<u8>>,
    /// The address that the request came from.
    pub(crate) from: String,
}

/// A booking as its maker may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct BookingView {
    pub(crate) id: String,
    room: i64,
    room_name: String,
    #[serde(flatten)]
    period: Period,
    name: String,
    /// Only the last four digits are shown.
    aadhaar: String,
    pub(crate) version: i64,
    cancelled: bool,
}

impl Bookings {
    /// `known_rooms` are the rooms that need no look-up.
    pub(crate) fn new(tables: Tables, secrets: Secrets, known_rooms: Vec<Room>) -> Self {
        let tables = Arc::new(tables);
        Self { rooms: Rooms::new(Arc::clone(&tables), known_rooms), tables, secrets }
    }

    /// The rooms.
    pub(crate) fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// Whether this is the administrator's token.
    pub(crate) fn is_admin(&self, token: &[u8]) -> bool {
        self.secrets.is_admin(token)
    }

    /// At most `limit` bookings after this number, for the administrator.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<AuditList, Refusal> {
        Ok(self.tables.audit(after, limit).await?)
    }

    /// The booking with this id.
    pub(crate) async fn get(&self, id: &str) -> Result<BookingView, Refusal> {
        let number = self.secrets.booking_number(id).ok_or_else(no_such_booking)?;
        let booking = self.tables.by_number(number).await?.ok_or_else(no_such_booking)?;
        self.view(booking).await
    }

    /// Cancels a booking, unless its version is not the one given.
    pub(crate) async fn cancel(&self, id: &str, version: Option<i64>, from: &str) -> Result<(), Refusal> {
        let number = self.secrets.booking_number(id).ok_or_else(no_such_booking)?;
        if self.tables.cancel(number, version, from).await? {
            return Ok(());
        }
        match self.tables.by_number(number).await? {
            Some(_) if version.is_some() => {
                Err(Refusal::new(409, "the booking has changed since you read it")
                    .hint("read it again with GET, then decide"))
            }
            _ => Err(no_such_booking()),
        }
    }

    /// Books a room. The booking is durable when this returns. The same request with the same key returns the same
    /// booking and makes no other.
    pub(crate) async fn book(&self, request: BookingRequest) -> Result<BookingView, Refusal> {
        let booking = match request.room {
            Some(room) => self.book_room(&request, room).await?,
            None => self.book_any(&request).await?,
        };
        self.view(booking).await
    }

    async fn book_room(&self, request: &BookingRequest, room: i64) -> Result<Booking, Refusal> {
        let room = self.rooms.get(room).await.map_err(|refusal| match refusal.status {
            404 => Refusal::field("room", "does not exist").hint("GET /rooms lists the rooms"),
            _ => refusal,
        })?;
        let slot = room.check_slot(request.slot.clone()).map_err(|reason| Refusal::field("slot", reason))?;
        let new = self.new_booking(request, slot);
        if let Some(number) = self.tables.book(room.id, &new).await? {
            return Ok(inserted(number, room.id, new));
        }
        match self.made_before(request, &new).await? {
            Some(booking) => Ok(booking),
            None => {
                let free_next = self.free_next(&room, &new.period).await?;
                Err(Refusal::taken("the room is taken at that time", free_next))
            }
        }
    }

    /// Books any room that is free that day. It first guesses a room: as long as few rooms are taken, the guess is right
    /// and nothing has to be looked up. Then it tries free rooms in random order, so that concurrent requests do not all
    /// try the same one.
    async fn book_any(&self, request: &BookingRequest) -> Result<Booking, Refusal> {
        if request.slot.is_some() {
            return Err(Refusal::field("slot", "goes with a room: name the room it is a slot of"));
        }
        let new = self.new_booking(request, None);
        let mut rooms = Vec::from_iter(self.rooms.random_whole_day());
        for _ in 0..=LOOK_UPS_MAX {
            for room in rooms {
                if let Some(number) = self.tables.book(room, &new).await? {
                    return Ok(inserted(number, room, new));
                }
                if let Some(booking) = self.made_before(request, &new).await? {
                    return Ok(booking);
                }
            }
            rooms = self.free_rooms(request.day).await?;
            if rooms.is_empty() {
                return self.none_free(request, &new).await;
            }
        }
        Err(Refusal::new(503, "others were quicker each time").hint("try again in a moment"))
    }

    /// Looks up some free rooms, from a random number upwards. Always starting at the first room would pass over the same
    /// full rooms each time.
    async fn free_rooms(&self, day: Day) -> Result<Vec<i64>, Refusal> {
        let from = self.rooms.random_whole_day().unwrap_or(0);
        let mut free = self.tables.rooms().free_on(day, from, FREE_ROOMS).await?;
        if free.is_empty() {
            free = self.tables.rooms().free_on(day, 0, FREE_ROOMS).await?;
        }
        fastrand::shuffle(&mut free);
        Ok(free)
    }

    /// Explains that every room is taken, unless this request made a booking before.
    async fn none_free(&self, request: &BookingRequest, new: &NewBooking) -> Result<Booking, Refusal> {
        if let Some(booking) = self.made_before(request, new).await? {
            return Ok(booking);
        }
        let rooms = self.tables.rooms().count_of_whole_days().await?;
        if rooms == 0 {
            return Err(Refusal::field(
                "room",
                "is missing: every room here has slots, so the request must name one",
            ));
        }
        let days = DayRange { from: request.day.plus(1), to: request.day.plus(LOOK_AHEAD_DAYS) };
        let booked = self.tables.rooms().booked_by_day(days).await?;
        let full: Vec<Day> =
            booked.into_iter().filter(|(_, count)| *count >= rooms).map(|(day, _)| day).collect();
        let day = (1..=LOOK_AHEAD_DAYS)
            .map(|later| request.day.plus(later))
            .find(|day| full.binary_search(day).is_err());
        Err(Refusal::taken("every room is taken on that day", day.map(|day| Period { day, slot: None })))
    }

    /// The booking that the same request made before.
    async fn made_before(
        &self,
        request: &BookingRequest,
        new: &NewBooking,
    ) -> Result<Option<Booking>, Refusal> {
        let Some(key_hash) = &new.request else { return Ok(None) };
        let Some(booking) = self.tables.by_request(key_hash).await? else { return Ok(None) };
        let same = request.room.is_none_or(|room| room == booking.room)
            && booking.period == new.period
            && booking.name == new.name
            && booking.aadhaar_hash == new.aadhaar_hash;
        if same {
            return Ok(Some(booking));
        }
        Err(Refusal::field("Idempotency-Key", "was used for another booking: each needs a key of its own"))
    }

    async fn free_next(&self, room: &Room, period: &Period) -> Result<Option<Period>, Refusal> {
        let days = DayRange { from: period.day, to: period.day.plus(LOOK_AHEAD_DAYS) };
        let booked = self.tables.booked(room.id, days).await?;
        let free = room.free_after(period, &booked, LOOK_AHEAD_DAYS);
        // If not all bookings were read, nothing is known after the last of them.
        let known_until = booked.last().filter(|_| booked.len() >= PERIODS_MAX);
        Ok(free.filter(|free| known_until.is_none_or(|last| free < last)))
    }

    fn new_booking(&self, request: &BookingRequest, slot: Option<Slot>) -> NewBooking {
        NewBooking {
            period: Period { day: request.day, slot },
            name: request.name.as_str().to_owned(),
            aadhaar_hash: self.secrets.identity_hash(&request.aadhaar),
            aadhaar_last4: request.aadhaar.last_four(),
            request: request.key.as_deref().map(|key| self.secrets.request_hash(key)),
            from: request.from.clone(),
        }
    }

    async fn view(&self, booking: Booking) -> Result<BookingView, Refusal> {
        let room = self.rooms.get(booking.room).await?;
        Ok(BookingView {
            id: self.secrets.booking_id(booking.number),
            room: room.id,
            room_name: room.name.clone(),
            period: booking.period,
            name: booking.name,
            aadhaar: format!("XXXX XXXX {}", booking.aadhaar_last4),
            version: booking.version,
            cancelled: booking.cancelled_at_us.is_some(),
        })
    }
}

/// The booking as the database now holds it.
fn inserted(number: i64, room: i64, new: NewBooking) -> Booking {
    Booking {
        number,
        room,
        period: new.period,
        name: new.name,
        aadhaar_hash: new.aadhaar_hash.to_vec(),
        aadhaar_last4: new.aadhaar_last4,
        version: 1,
        cancelled_at_us: None,
    }
}

fn no_such_booking() -> Refusal {
    Refusal::new(404, "there is no such booking, or it was cancelled")
        .hint("check the id for typing errors: it is the one in the response to the booking request")
}
