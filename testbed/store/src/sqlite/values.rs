//! Conversions of values and errors from and to rusqlite's.

use rusqlite::{
    ErrorCode, Row as SqliteRow, ToSql,
    ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE},
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    error::StoreError,
    statement::{Row, Value},
};

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Converts a row of `columns` columns.
pub(super) fn row(row: &SqliteRow<'_>, columns: usize) -> rusqlite::Result<Row> {
    (0..columns).map(|column| row.get_ref(column)?.try_into()).collect::<Result<_, _>>().map(Row)
}

impl TryFrom<ValueRef<'_>> for Value {
    type Error = rusqlite::Error;

    fn try_from(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Text(text) => Self::Text(std::str::from_utf8(text)?.to_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_owned()),
            ValueRef::Real(_) => return Err(rusqlite::Error::InvalidQuery),
        })
    }
}

/// Whether a unique index refused a row. Only that statement is rolled back.
pub(super) fn is_refused_by_uniqueness(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    matches!(extended, Some(SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY))
}

/// The error to reply with.
pub(super) fn reason(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        _ => StoreError::Failed,
    }
}
