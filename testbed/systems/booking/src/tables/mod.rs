//! The tables of the booking server, and all statements about them.

use store::{Migration, Row, Schema, Statement, Store, StoreError};

pub(crate) use self::{
    audit::AuditList,
    rooms::{NewRoom, RoomTable, first_rooms},
};
pub use self::{
    audit::{Census, census, digest, full_days},
    prepared::{FillError, fill},
};
use crate::values::{
    day::{Day, DayRange},
    room::{Period, Slot},
};

mod audit;
mod prepared;
mod rooms;

/// The tables and how they came about.
///
/// No row of `bookings` is ever deleted: who booked and cancelled what, when and from where, stays on record. A unique
/// index over the standing bookings keeps a room from being booked twice, and the view `standing` shows these bookings
/// the way each database finds them by that index. MariaDB cannot index some of the rows, so a generated column marks
/// the standing ones: NULL equals nothing.
pub(crate) const SCHEMA: Schema = Schema {
    name: "booking",
    // "nstb"
    application_id: 0x6e73_7462,
    migrations: &[
        Migration {
            name: "V1__booking",
            sqlite: include_str!("v1/sqlite.sql"),
            mysql: include_str!("v1/mysql.sql"),
            postgres: include_str!("v1/postgres.sql"),
        },
        Migration {
            name: "V2__standing",
            sqlite: include_str!("v2/sqlite.sql"),
            mysql: include_str!("v2/mysql.sql"),
            postgres: include_str!("v2/postgres.sql"),
        },
        Migration {
            name: "V3__one_index",
            sqlite: include_str!("v3/sqlite.sql"),
            mysql: include_str!("v3/mysql.sql"),
            postgres: include_str!("v3/postgres.sql"),
        },
    ],
};

/// Maximum number of periods of one room that are read at once.
pub(crate) const PERIODS_MAX: usize = 2000;

/// Selects the columns of a booking, in the order of [`booking`].
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

/// The insert for MariaDB and MySQL, which first waits for the row of the standing booking. With the unique index alone,
/// InnoDB wakes all waiting inserts at once when that booking is cancelled, each holding locks that block the others, and
/// rolls back all but one as deadlocks. The unique index still decides: if nobody has booked that period, nothing is
/// locked.
const INSERT_IN_TURN: &str = concat!(
    insert!(),
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 1 FROM DUAL WHERE (SELECT stands FROM bookings WHERE id = \
     (SELECT id FROM bookings WHERE stands = 1 AND room = ? AND day = ? AND slot = ?) FOR UPDATE) IS NULL"
);

/// A booking to insert.
#[derive(Debug, Clone)]
pub(crate) struct NewBooking {
    pub(crate) period: Period,
    pub(crate) name: String,
    pub(crate) aadhaar_hash: [u8; 32],
    pub(crate) aadhaar_last4: String,
    /// The hash of the client's `Idempotency-Key`.
    pub(crate) request: Option<[u8; 32]>,
    /// The address that the request came from.
    pub(crate) from: String,
}

/// A booking that was made, whether or not it has been cancelled since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Booking {
    pub(crate) number: i64,
    pub(crate) room: i64,
    pub(crate) period: Period,
    pub(crate) name: String,
    pub(crate) aadhaar_hash: Vec<u8>,
    pub(crate) aadhaar_last4: String,
    /// Increases with every change.
    pub(crate) version: i64,
    /// When it was cancelled, microseconds since 1970.
    pub(crate) cancelled_at_us: Option<i64>,
}

/// All tables; its own methods are those of `bookings`.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
}

impl Tables {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// The table `rooms`.
    pub(crate) fn rooms(&self) -> RoomTable<'_> {
        RoomTable::new(&self.store)
    }

    /// Books a room and returns the number of the booking. Returns `None` if a unique index refuses it: the room is taken,
    /// or the same request was made before.
    pub(crate) async fn book(&self, room: i64, new: &NewBooking) -> Result<Option<i64>, StoreError> {
        let (day, slot) = (new.period.day.to_string(), slot_text(&new.period));
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
            // The index of requests refuses the same one twice.
            .repeatable(new.request.is_some());
        self.store.insert_id(insert).await
    }

    /// The booking that this request made before.
    pub(crate) async fn by_request(&self, request: &[u8; 32]) -> Result<Option<Booking>, StoreError> {
        self.one(Statement::new(select!("request = ?")).with(&request[..])).await
    }

    /// The booking with this number.
    pub(crate) async fn by_number(&self, number: i64) -> Result<Option<Booking>, StoreError> {
        self.one(Statement::new(select!("id = ?")).with(number)).await
    }

    /// Cancels a standing booking. Returns `false` if there is none, or its version is not the one given.
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
        // After a lost connection the statement runs again and finds nothing to do. The time stamp shows that the first
        // run did it.
        let booking = self.by_number(number).await?;
        Ok(booking.is_some_and(|booking| booking.cancelled_at_us == Some(at_us)))
    }

    /// When a room is booked, in order: at most [`PERIODS_MAX`] periods.
    pub(crate) async fn booked(&self, room: i64, days: DayRange) -> Result<Vec<Period>, StoreError> {
        let select = "SELECT day, slot FROM standing WHERE room = ? AND day >= ? AND day <= ? \
                      ORDER BY day, slot LIMIT ?";
        let select = Statement::new(select).with(room).with(days.from.to_string()).with(days.to.to_string());
        let rows = self.store.query(select.with(PERIODS_MAX as i64)).await?;
        rows.iter().map(|row| period(row, 0)).collect()
    }

    /// When rooms `first` to `last` are booked, ordered by room and period.
    pub(crate) async fn booked_among(
        &self,
        (first, last): (i64, i64),
        days: DayRange,
    ) -> Result<Vec<(i64, Period)>, StoreError> {
        // Room by room, so that what was cancelled in the others is not read.
        let select = "SELECT room, day, slot FROM rooms JOIN standing ON room = rooms.id \
                      WHERE rooms.id >= ? AND rooms.id <= ? AND day >= ? AND day <= ? ORDER BY room, day, slot";
        let select = Statement::new(select).with(first).with(last);
        let rows = self.store.query(select.with(days.from.to_string()).with(days.to.to_string())).await?;
        rows.iter().map(|row| Ok((row.int(0)?, period(row, 1)?))).collect()
    }

    async fn one(&self, select: Statement) -> Result<Option<Booking>, StoreError> {
        self.store.query(select).await?.first().map(booking).transpose()
    }
}

fn booking(row: &Row) -> Result<Booking, StoreError> {
    Ok(Booking {
        number: row.int(0)?,
        room: row.int(1)?,
        period: period(row, 2)?,
        name: row.text(4)?.to_owned(),
        aadhaar_hash: row.bytes(5)?.to_owned(),
        aadhaar_last4: row.text(6)?.to_owned(),
        version: row.int(7)?,
        cancelled_at_us: row.maybe_int(8)?,
    })
}

/// Reads a period from two columns.
fn period(row: &Row, column: usize) -> Result<Period, StoreError> {
    let day = Day::parse(row.text(column)?).map_err(|_| StoreError::Failed)?;
    let slot = match row.text(column + 1)? {
        "" => None,
        text => Some(Slot::parse(text).map_err(|_| StoreError::Failed)?),
    };
    Ok(Period { day, slot })
}

/// The stored form of a slot. A whole day is the empty text, so that unique indexes see it (NULL equals nothing).
fn slot_text(period: &Period) -> &str {
    period.slot.as_ref().map_or("", Slot::as_str)
}

fn now_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
