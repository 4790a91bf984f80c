//! The audit: who booked what and when, and what was cancelled, for the administrator.

use serde::Serialize;

use super::Desk;
use crate::{
    refusal::Refusal,
    room::Time,
    tables::{Deed, Record},
};

/// A part of the audit, in the order in which was booked.
#[derive(Debug, Serialize)]
pub(crate) struct AuditList {
    bookings: Vec<ShownRecord>,
    /// The last booking's number, where there may be more: to be asked for as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
}

/// A booking without what would let whoever reads it cancel it, and without anything of the identity number.
#[derive(Debug, Serialize)]
struct ShownRecord {
    number: i64,
    room: i64,
    #[serde(flatten)]
    time: Time,
    name: String,
    booked: ShownDeed,
    cancelled: Option<ShownDeed>,
}

#[derive(Debug, Serialize)]
struct ShownDeed {
    at: String,
    from: String,
}

impl Desk {
    /// At most `limit` bookings after this number, in order, those cancelled included.
    pub(crate) async fn audit(&self, after: i64, limit: i64) -> Result<AuditList, Refusal> {
        let found = self.tables.audit(after, limit).await?;
        let next_after = found.last().map(|record| record.number).filter(|_| found.len() as i64 == limit);
        Ok(AuditList { bookings: found.into_iter().map(show).collect(), next_after })
    }
}

fn show(record: Record) -> ShownRecord {
    let Record { number, room, time, name, booked, cancelled } = record;
    ShownRecord { number, room, time, name, booked: deed(booked), cancelled: cancelled.map(deed) }
}

fn deed(deed: Deed) -> ShownDeed {
    let at = jiff::Timestamp::from_microsecond(deed.at_us).unwrap_or(jiff::Timestamp::MAX);
    ShownDeed { at: at.to_string(), from: deed.from }
}
