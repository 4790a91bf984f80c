//! What a database holds: the audit of who booked and cancelled what, when and from where; and counts to compare with what
//! clients were promised.

use jiff::Timestamp;
use serde::Serialize;
use store::{Database, Row, Statement, Store, StoreError};

use super::{SCHEMA, Tables, period, prepared};
use crate::{options::BookingError, values::room::Period};

/// How many bookings are read at once for a digest.
const ROWS_AT_ONCE: i64 = 10_000;

/// A page of the audit, in the order of booking.
#[derive(Debug, Serialize)]
pub(crate) struct AuditList {
    bookings: Vec<AuditRecord>,
    /// The number to pass as `after` for the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

/// A booking without its id, by which it could be cancelled, and without any part of the identity number.
#[derive(Debug, Serialize)]
struct AuditRecord {
    number: i64,
    room: i64,
    #[serde(flatten)]
    period: Period,
    name: String,
    booked: AuditEvent,
    cancelled: Option<AuditEvent>,
}

/// When something was done, and from which address.
#[derive(Debug, Serialize)]
struct AuditEvent {
    at: String,
    from: String,
}

impl Tables {
    /// At most `limit` bookings after this number, in order, including those that were cancelled.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<AuditList, StoreError> {
        let select = "SELECT id, room, day, slot, name, booked_at_us, booked_from, cancelled_at_us, \
                      COALESCE(cancelled_from, '') FROM bookings WHERE id > ? ORDER BY id LIMIT ?";
        let rows = self.store.query(Statement::new(select).with(after).with(limit)).await?;
        let bookings: Vec<_> = rows.iter().map(record).collect::<Result<_, _>>()?;
        let next_after =
            bookings.last().map(|record| record.number).filter(|_| bookings.len() as i64 == limit);
        Ok(AuditList { bookings, next_after })
    }
}

fn record(row: &Row) -> Result<AuditRecord, StoreError> {
    let cancelled_from = row.text(8)?;
    Ok(AuditRecord {
        number: row.int(0)?,
        room: row.int(1)?,
        period: period(row, 2)?,
        name: row.text(4)?.to_owned(),
        booked: event(row.int(5)?, row.text(6)?),
        cancelled: row.maybe_int(7)?.map(|at_us| event(at_us, cancelled_from)),
    })
}

fn event(at_us: i64, from: &str) -> AuditEvent {
    let at = Timestamp::from_microsecond(at_us).unwrap_or(Timestamp::MAX);
    AuditEvent { at: at.to_string(), from: from.to_owned() }
}

/// What a database holds, without the bookings that it was [filled](super::prepared::fill) with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Bookings ever made.
    pub booked: u64,
    /// Bookings that were cancelled.
    pub cancelled: u64,
    /// Rooms and times with more than one standing booking. Anything but 0 is a broken promise.
    pub twice: u64,
}

/// Counts what a database holds, by asking the database itself instead of a server. Blocks.
///
/// # Errors
/// When the database cannot be opened.
pub fn census(database: &Database) -> Result<Census, BookingError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let prepared = prepared::last(&mut setup)?;
    let made = "SELECT COUNT(*), COUNT(cancelled_at_us) FROM bookings WHERE id > ?";
    let made = setup.query(&Statement::new(made).with(prepared))?;
    let twice = setup.query(&Statement::new(
        "SELECT COUNT(*) FROM (SELECT room FROM standing GROUP BY room, day, slot HAVING COUNT(*) > 1) AS twice",
    ))?;
    Ok(Census { booked: count(&made, 0), cancelled: count(&made, 1), twice: count(&twice, 0) })
}

/// A digest of all bookings, to compare what several hosts of one database hold. Blocks; it reads the whole table.
///
/// # Errors
/// When the database cannot be opened.
pub fn digest(database: &Database) -> Result<[u8; 32], BookingError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let select = "SELECT id, room, day, slot, name, aadhaar_hash, version, booked_at_us, cancelled_at_us FROM bookings \
                  WHERE id > ? ORDER BY id LIMIT ?";
    let (mut hasher, mut after) = (blake3::Hasher::new(), i64::MIN);
    loop {
        let rows = setup.query(&Statement::new(select).with(after).with(ROWS_AT_ONCE))?;
        let Some(last) = rows.last().and_then(|row| row.int(0).ok()) else { break };
        for row in &rows {
            hasher.update(format!("{row:?}").as_bytes());
        }
        after = last;
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Counts the days on which every room that is booked by whole days has been booked at some time. Blocks; it reads the
/// whole table.
///
/// # Errors
/// When the database cannot be opened.
pub fn full_days(database: &Database) -> Result<u64, BookingError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let full_days = setup.query(&Statement::new(
        "SELECT COUNT(*) FROM (SELECT day FROM bookings GROUP BY day \
         HAVING COUNT(DISTINCT room) >= (SELECT COUNT(*) FROM rooms WHERE slots = '')) AS full_days",
    ))?;
    Ok(count(&full_days, 0))
}

/// Reads a count, which is always there and never negative.
fn count(rows: &[Row], column: usize) -> u64 {
    rows.first()
        .and_then(|row| row.int(column).ok())
        .and_then(|count| count.try_into().ok())
        .unwrap_or_default()
}
