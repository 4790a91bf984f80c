//! What is asked of a database, and the rows it answers with.

use crate::{error::StoreError, seldom::Seldom};

/// One value, going in or coming out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// None.
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

/// An SQL statement and the values for its `?`, in order. The SQL is written in what all the databases understand, unless it
/// says what [MariaDB and MySQL](Self::on_mysql) are to do.
#[derive(Clone)]
pub struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Value>,
    pub(crate) repeatable: bool,
    pub(crate) then: Vec<Statement>,
    mysql: Option<(&'static str, Vec<Value>)>,
}

impl Statement {
    /// A statement with no values yet.
    pub fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), repeatable: false, then: Vec::new(), mysql: None }
    }

    /// Gives the next `?` its value.
    #[must_use]
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds what belongs to it: done after it in the same transaction, if it changed or inserted a row; otherwise nothing
    /// is done. Of several, all are done or none. A statement added so adds none of its own.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.then.push(next);
        self
    }

    /// Has MariaDB and MySQL do the same by this SQL, where they would lock otherwise more than is needed. Its first `?`
    /// are those of the statement, with their values; these are the values of the others.
    #[must_use]
    pub fn on_mysql(mut self, sql: &'static str, more: impl IntoIterator<Item = Value>) -> Self {
        self.mysql = Some((sql, more.into_iter().collect()));
        self
    }

    /// What MariaDB and MySQL do.
    pub(crate) fn mysql(&self) -> (&'static str, impl Iterator<Item = &Value>) {
        let (sql, more) = self.mysql.as_ref().map_or((self.sql, &[][..]), |(sql, more)| (*sql, &more[..]));
        (sql, self.values.iter().chain(more))
    }

    /// Says that doing it twice is as good as doing it once, so that it may be done again where a connection was lost
    /// and nobody knows whether it was done.
    #[must_use]
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }
}

/// Without the values: they may be secrets.
impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement").field("sql", &self.sql).finish_non_exhaustive()
    }
}

/// A row of an answer. Columns count from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    /// The number in a column.
    ///
    /// # Errors
    /// [`StoreError::Failed`], and a line in the log, when there is something else: the program and its tables disagree.
    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.maybe_int(column)?.ok_or_else(|| disagree(column))
    }

    /// The number in a column, or none.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn maybe_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            _ => Err(disagree(column)),
        }
    }

    /// The text in a column.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text),
            Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).map_err(|_| disagree(column)),
            _ => Err(disagree(column)),
        }
    }

    /// The bytes in a column.
    ///
    /// # Errors
    /// As [`int`](Self::int).
    pub fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        match self.0.get(column) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            _ => Err(disagree(column)),
        }
    }
}

fn disagree(column: usize) -> StoreError {
    static DISAGREED: Seldom = Seldom::new();
    DISAGREED.tell(|untold| {
        tracing::error!(column, untold, "the database answered with another type than the program asked for");
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
