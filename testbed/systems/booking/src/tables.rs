//! The tables of the booking server, and everything that is asked of them.

mod audit;
mod rooms;
mod schema;

use store::{Row, Statement, Store, StoreError};

pub(crate) use self::{
    audit::{Deed, Record},
    rooms::{NewRoom, Rooms, first_rooms},
    schema::SCHEMA,
};
use crate::{day::Day, room::Time, slot::Slot};

/// Most times of a room that are read at once.
pub(crate) const TIMES_MAX: usize = 2000;
/// What is read of a booking, in the order of [`booking`].
macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT id, room, day, slot, name, aadhaar_hash, aadhaar_last4, version, cancelled_at_us ",
            "FROM bookings WHERE ",
            $where
        )
    };
}

macro_rules! insert {
    () => {
        "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, request, booked_at_us, booked_from, \
         version) "
    };
}

/// MariaDB and MySQL wait first, one after the other, for whoever is about to cancel that time. By the unique index alone
/// InnoDB lets all go on at once when that is done, each with locks that are in the others' way, and undoes all but one
/// as deadlocks. The unique index decides here too: where nobody has that time, nothing is locked.
const INSERT_IN_TURN: &str = concat!(
    insert!(),
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 1 FROM DUAL WHERE (SELECT stands FROM bookings WHERE id = \
     (SELECT id FROM bookings WHERE stands = 1 AND room = ? AND day = ? AND slot = ?) FOR UPDATE) IS NULL"
);

/// A booking to be made: the text for every column.
#[derive(Debug, Clone)]
pub(crate) struct NewBooking {
    pub(crate) time: Time,
    pub(crate) name: String,
    pub(crate) aadhaar_hash: [u8; 32],
    pub(crate) aadhaar_last4: String,
    /// What stands for the client's `Idempotency-Key`.
    pub(crate) request: Option<[u8; 32]>,
    /// The address it was asked from.
    pub(crate) from: String,
}

/// A booking that was made, be it cancelled since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Booking {
    pub(crate) number: i64,
    pub(crate) room: i64,
    pub(crate) time: Time,
    pub(crate) name: String,
    pub(crate) aadhaar_hash: Vec<u8>,
    pub(crate) aadhaar_last4: String,
    /// Rises with every change.
    pub(crate) version: i64,
    /// When it was cancelled, microseconds since 1970.
    pub(crate) cancelled_at_us: Option<i64>,
}

/// The bookings' table.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
}

impl Tables {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// The rooms' table.
    pub(crate) fn rooms(&self) -> Rooms<'_> {
        Rooms::new(&self.store)
    }

    /// Books a room; `None` when a unique index refuses it: the room is taken then, or the request was made before.
    pub(crate) async fn book(&self, room: i64, new: &NewBooking) -> Result<Option<i64>, StoreError> {
        let (day, slot) = (new.time.day.to_string(), slot_text(&new.time));
        let insert = Statement::new(concat!(insert!(), "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)"))
            .on_mysql(INSERT_IN_TURN, [room.into(), day.as_str().into(), slot.into()])
            .with(room)
            .with(day)
            .with(slot)
            .with(new.name.as_str())
            .with(&new.aadhaar_hash[..])
            .with(new.aadhaar_last4.as_str())
            .with(new.request.as_ref().map(|hash| &hash[..]))
            .with(now_us())
            .with(new.from.as_str())
            // A second one of the same request is refused by its index.
            .repeatable(new.request.is_some());
        self.store.insert_id(insert).await
    }

    /// The booking that a request made.
    pub(crate) async fn by_request(&self, request: &[u8; 32]) -> Result<Option<Booking>, StoreError> {
        self.one(Statement::new(select!("request = ?")).with(&request[..])).await
    }

    /// The booking of this number.
    pub(crate) async fn by_number(&self, number: i64) -> Result<Option<Booking>, StoreError> {
        self.one(Statement::new(select!("id = ?")).with(number)).await
    }

    /// Cancels a booking that stands, and is of this version where one is given; `false` when there is none such.
    pub(crate) async fn cancel(
        &self,
        number: i64,
        version: Option<i64>,
        from: &str,
    ) -> Result<bool, StoreError> {
        let any = "UPDATE bookings SET cancelled_at_us = ?, cancelled_from = ?, version = version + 1 \
                   WHERE id = ? AND cancelled_at_us IS NULL";
        let this = "UPDATE bookings SET cancelled_at_us = ?, cancelled_from = ?, version = version + 1 \
                    WHERE id = ? AND cancelled_at_us IS NULL AND version = ?";
        let at_us = now_us();
        let update = Statement::new(if version.is_some() { this } else { any });
        let update = update.with(at_us).with(from).with(number);
        let update = version.into_iter().fold(update, Statement::with);
        if self.store.execute(update.repeatable(true)).await? == 1 {
            return Ok(true);
        }
        // Done again where a connection was lost, it finds nothing to do: its own time tells that it was this one.
        let booking = self.by_number(number).await?;
        Ok(booking.is_some_and(|booking| booking.cancelled_at_us == Some(at_us)))
    }

    /// When a room is booked, in order, from one day to another: at most 2 000 times.
    pub(crate) async fn booked(&self, room: i64, from: Day, to: Day) -> Result<Vec<Time>, StoreError> {
        let select = "SELECT day, slot FROM standing WHERE room = ? AND day >= ? AND day <= ? \
                      ORDER BY day, slot LIMIT ?";
        let select = Statement::new(select).with(room).with(from.to_string()).with(to.to_string());
        let rows = self.store.query(select.with(TIMES_MAX as i64)).await?;
        rows.iter().map(|row| time(row, 0)).collect()
    }

    /// When rooms `first` to `last` are booked, by room and in order.
    pub(crate) async fn booked_among(
        &self,
        (first, last): (i64, i64),
        from: Day,
        to: Day,
    ) -> Result<Vec<(i64, Time)>, StoreError> {
        let select = "SELECT room, day, slot FROM standing \
                      WHERE room >= ? AND room <= ? AND day >= ? AND day <= ? ORDER BY room, day, slot";
        let select = Statement::new(select).with(first).with(last);
        let rows = self.store.query(select.with(from.to_string()).with(to.to_string())).await?;
        rows.iter().map(|row| Ok((row.int(0)?, time(row, 1)?))).collect()
    }

    async fn one(&self, select: Statement) -> Result<Option<Booking>, StoreError> {
        self.store.query(select).await?.first().map(booking).transpose()
    }
}

fn booking(row: &Row) -> Result<Booking, StoreError> {
    Ok(Booking {
        number: row.int(0)?,
        room: row.int(1)?,
        time: time(row, 2)?,
        name: row.text(4)?.to_owned(),
        aadhaar_hash: row.bytes(5)?.to_owned(),
        aadhaar_last4: row.text(6)?.to_owned(),
        version: row.int(7)?,
        cancelled_at_us: row.maybe_int(8)?,
    })
}

/// The time in two columns.
fn time(row: &Row, column: usize) -> Result<Time, StoreError> {
    let day = Day::read(row.text(column)?).map_err(|_| StoreError::Failed)?;
    let slot = match row.text(column + 1)? {
        "" => None,
        text => Some(Slot::read(text).map_err(|_| StoreError::Failed)?),
    };
    Ok(Time { day, slot })
}

/// A whole day is kept as a slot without a name, so that unique indexes see it (NULL equals nothing).
fn slot_text(time: &Time) -> &str {
    time.slot.as_ref().map_or("", Slot::as_str)
}

fn now_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
