//! The bookings as an audit has them.

use store::{Row, Statement, StoreError};

use super::{Tables, time};
use crate::room::Time;

/// A booking, and what became of it: when, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: i64,
    pub(crate) room: i64,
    pub(crate) time: Time,
    pub(crate) name: String,
    pub(crate) booked: Deed,
    pub(crate) cancelled: Option<Deed>,
}

/// That something was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deed {
    /// Microseconds since 1970.
    pub(crate) at_us: i64,
    /// The address it was asked from.
    pub(crate) from: String,
}

impl Tables {
    /// At most `limit` bookings after this number, in order, those cancelled included.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<Vec<Record>, StoreError> {
        let select = "SELECT id, room, day, slot, name, booked_at_us, booked_from, cancelled_at_us, \
                      COALESCE(cancelled_from, '') FROM bookings WHERE id > ? ORDER BY id LIMIT ?";
        let rows = self.store.query(Statement::new(select).with(after).with(limit)).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<Record, StoreError> {
    let cancelled_from = row.text(8)?.to_owned();
    Ok(Record {
        number: row.int(0)?,
        room: row.int(1)?,
        time: time(row, 2)?,
        name: row.text(4)?.to_owned(),
        booked: Deed { at_us: row.int(5)?, from: row.text(6)?.to_owned() },
        cancelled: row.maybe_int(7)?.map(|at_us| Deed { at_us, from: cancelled_from }),
    })
}
