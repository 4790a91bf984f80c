//! Counts what a database holds, to compare it with what clients were promised.

use store::{Database, Row, Statement, Store};

use crate::{setup::BookingError, tables::SCHEMA};

/// What a database holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Bookings ever made.
    pub booked: u64,
    /// Bookings that were cancelled.
    pub cancelled: u64,
    /// Rooms and times with more than one standing booking. Anything but 0 is a broken promise.
    pub twice: u64,
    /// Days on which every room that is booked by whole days has been booked at some time.
    pub full_days: u64,
}

/// Counts what a database holds, by asking the database itself instead of a server. Blocks.
///
/// # Errors
/// When the database cannot be opened.
pub fn census(database: &Database) -> Result<Census, BookingError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let mut query = |sql: &'static str| setup.query(&Statement::new(sql));
    let bookings = query("SELECT COUNT(*), COUNT(cancelled_at_us) FROM bookings")?;
    let twice = query(
        "SELECT COUNT(*) FROM (SELECT room FROM bookings WHERE cancelled_at_us IS NULL \
                       GROUP BY room, day, slot HAVING COUNT(*) > 1) AS twice",
    )?;
    let full_days = query(
        "SELECT COUNT(*) FROM (SELECT day FROM bookings GROUP BY day \
         HAVING COUNT(DISTINCT room) >= (SELECT COUNT(*) FROM rooms WHERE slots = '')) AS full_days",
    )?;
    Ok(Census {
        booked: count(&bookings, 0),
        cancelled: count(&bookings, 1),
        twice: count(&twice, 0),
        full_days: count(&full_days, 0),
    })
}

/// Reads a count, which is always there and never negative.
fn count(rows: &[Row], column: usize) -> u64 {
    rows.first()
        .and_then(|row| row.int(column).ok())
        .and_then(|count| count.try_into().ok())
        .unwrap_or_default()
}
