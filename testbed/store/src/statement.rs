//! Statements, and the rows they return.

use crate::{error::StoreError, rate_limited_log::RateLimitedLog};

/// A value in a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// An SQL statement and the values of its `?`, in order. The SQL must be understood by all databases, unless it has a variant
/// for [MariaDB and MySQL](Self::on_mysql).
#[derive(Clone)]
pub struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Value>,
    pub(crate) repeatable: bool,
    pub(crate) then: Vec<Statement>,
    mysql: Option<(&'static str, Vec<Value>)>,
}

impl Statement {
    /// A statement without values.
    pub fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), repeatable: false, then: Vec::new(), mysql: None }
    }

    /// Sets the value of the next `?`.
    #[must_use]
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds a statement that belongs to this one. It is executed afterwards in the same transaction, if this one changed or
    /// inserted a row. Either all of them take effect or none. Statements added to an added one are ignored.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.then.push(next);
        self
    }

    /// Sets the SQL for MariaDB and MySQL, where the common one would lock more than necessary. Its first `?` take the
    /// values of the statement, the others take `more`.
    #[must_use]
    pub fn on_mysql(mut self, sql: &'static str, more: impl IntoIterator<Item = Value>) -> Self {
        self.mysql = Some((sql, more.into_iter().collect()));
        self
    }

    /// The SQL and values for MariaDB and MySQL.
    pub(crate) fn mysql(&self) -> (&'static str, impl Iterator<Item = &Value>) {
        let (sql, more) = self.mysql.as_ref().map_or((self.sql, &[][..]), |(sql, more)| (*sql, &more[..]));
        (sql, self.values.iter().chain(more))
    }

    /// Declares that executing it twice has the same effect as once, so that it may be retried after a lost connection left
    /// its outcome unknown.
    #[must_use]
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }
}

/// Omits the values, which may be secrets.
impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement").field("sql", &self.sql).finish_non_exhaustive()
    }
}

/// A row of a result. Columns count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    /// The number in a column.
    ///
    /// # Errors
    /// [`StoreError::Failed`], and a line in the log, if it is something else: the program and its tables disagree.
    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.maybe_int(column)?.ok_or_else(|| mismatch(column))
    }

    /// The number in a column, or `None` if it is null.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn maybe_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(mismatch(column)),
        }
    }

    /// The text in a column.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text),
            Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).map_err(|_| mismatch(column)),
            _ => Err(mismatch(column)),
        }
    }

    /// The bytes in a column.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        match self.0.get(column) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(mismatch(column)),
        }
    }
}

fn mismatch(column: usize) -> StoreError {
    static MISMATCH: RateLimitedLog = RateLimitedLog::new();
    MISMATCH.write(|suppressed| {
        tracing::error!(column, suppressed, "the database returned another type than the program expects");
    });
    StoreError::Failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_by_their_type_and_nothing_else_panics() {
        let row = Row(vec![Value::Int(1), "two".into(), Value::Null, Value::Bytes(vec![0xff])]);
        assert_eq!(row.int(0), Ok(1));
        assert_eq!(row.text(1), Ok("two"));
        assert_eq!(row.maybe_int(2), Ok(None));
        assert_eq!(row.bytes(3), Ok(&[0xff][..]));
        for wrong in [row.int(1).is_err(), row.int(9).is_err(), row.text(3).is_err(), row.int(2).is_err()] {
            assert!(wrong);
        }
    }

    #[test]
    fn values_are_not_shown() {
        let statement = Statement::new("SELECT ?").with("hush");
        assert!(!format!("{statement:?}").contains("hush"));
    }
}
