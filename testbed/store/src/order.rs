//! A statement on its way to whoever runs it, and the way back for the answer.

use std::time::Instant;

use futures_channel::oneshot;

use crate::{
    error::StoreError,
    statement::{Row, Statement},
};

/// What is wanted of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// Its rows.
    Rows,
    /// How many rows it changed.
    Changed,
    /// Whether the row could be inserted.
    Inserted,
    /// The `id` of the inserted row.
    InsertedId,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Rows(Vec<Row>),
    Changed(u64),
    /// The inserted row's `id`, 0 where none was asked for; none where a unique index refused the row.
    Inserted(Option<i64>),
}

impl Reply {
    /// Whether a row was changed or inserted, so that what belongs to the statement is to be done.
    pub(crate) fn has_changed(&self) -> bool {
        !matches!(self, Self::Changed(0) | Self::Inserted(None))
    }
}

#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) ask: Ask,
    pub(crate) statement: Statement,
    pub(crate) asked_at: Instant,
    /// How often a connection was lost with it.
    pub(crate) tries: u8,
    /// Whether a connection was lost with it, so that it may have been done.
    pub(crate) sent: bool,
    answer: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Where the answer will come.
pub(crate) type Answer = oneshot::Receiver<Result<Reply, StoreError>>;

impl Order {
    pub(crate) fn new(ask: Ask, statement: Statement) -> (Self, Answer) {
        let (answer, answered) = oneshot::channel();
        (Self { ask, statement, asked_at: Instant::now(), tries: 0, sent: false, answer }, answered)
    }

    pub(crate) fn answer(self, answer: Result<Reply, StoreError>) {
        let _gone_is_fine = self.answer.send(answer);
    }
}
