//! What a database holds, counted: to be held against what was promised.

use store::{Database, Row, Statement, Store};

use crate::{error::BookingError, tables::SCHEMA};

/// What a database holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Bookings that were ever made.
    pub booked: u64,
    /// Those of them that were cancelled.
    pub cancelled: u64,
    /// Rooms and times for which more than one booking stands. Anything but 0 is a broken promise.
    pub twice: u64,
    /// Days on which every room that is booked by whole days was booked at some time.
    pub full_days: u64,
}

/// Counts what a database holds; asks the database itself, and no server. Blocks.
///
/// # Errors
/// When the database cannot be had.
pub fn census(database: &Database) -> Result<Census, BookingError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let mut ask = |sql: &'static str| setup.query(&Statement::new(sql));
    let bookings = ask("SELECT COUNT(*), COUNT(cancelled_at_us) FROM bookings")?;
    let twice = ask("SELECT COUNT(*) FROM (SELECT room FROM bookings WHERE cancelled_at_us IS NULL \
                     GROUP BY room, day, slot HAVING COUNT(*) > 1) AS twice")?;
    let full_days = ask("SELECT COUNT(*) FROM (SELECT day FROM bookings GROUP BY day \
                         HAVING COUNT(DISTINCT room) >= (SELECT COUNT(*) FROM rooms WHERE slots = '')) AS full_days")?;
    Ok(Census {
        booked: count(&bookings, 0),
        cancelled: count(&bookings, 1),
        twice: count(&twice, 0),
        full_days: count(&full_days, 0),
    })
}

/// A count is always there and never negative.
fn count(rows: &[Row], column: usize) -> u64 {
    rows.first()
        .and_then(|row| row.int(column).ok())
        .and_then(|count| count.try_into().ok())
        .unwrap_or_default()
}
