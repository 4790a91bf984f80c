//! A statement on its way to whoever runs it, and the way back for the reply.

use std::time::Instant;

use futures_channel::oneshot;

use crate::{
    error::{StoreError, Trouble},
    statement::{Row, Statement},
};

/// What is wanted of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// Its rows.
    Rows,
    /// How many rows it changed.
    Changed,
    /// Whether the row was inserted.
    Inserted,
    /// The `id` of the inserted row.
    InsertedId,
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Rows(Vec<Row>),
    Changed(u64),
    /// The inserted row's `id`, 0 if it was not wanted; `None` if a unique index refused the row.
    Inserted(Option<i64>),
}

impl Reply {
    /// Whether a row was changed or inserted, so that the statements that belong to this one are to be executed.
    pub(crate) fn has_changed(&self) -> bool {
        !matches!(self, Self::Changed(0) | Self::Inserted(None))
    }
}

/// A statement in a queue.
#[derive(Debug)]
pub(crate) struct QueuedStatement {
    pub(crate) wanted: Wanted,
    pub(crate) statement: Statement,
    pub(crate) queued_at: Instant,
    /// How often a connection was lost while executing it.
    pub(crate) tries: u8,
    /// Whether a connection was lost while executing it, so that it may have taken effect.
    pub(crate) sent: bool,
    reply_to: oneshot::Sender<Result<Reply, StoreError>>,
}

impl QueuedStatement {
    /// A statement to queue, and the receiver of its reply.
    pub(crate) fn new(
        wanted: Wanted,
        statement: Statement,
    ) -> (Self, oneshot::Receiver<Result<Reply, StoreError>>) {
        let (reply_to, reply) = oneshot::channel();
        (Self { wanted, statement, queued_at: Instant::now(), tries: 0, sent: false, reply_to }, reply)
    }

    pub(crate) fn reply(self, reply: Result<Reply, StoreError>) {
        // The receiver may have lost interest.
        let _ = self.reply_to.send(reply);
    }
}

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum StatementFailure {
    /// The statement failed; the connection is usable.
    Statement(StoreError),
    /// The database rolled it back to resolve a deadlock. It may be retried.
    RolledBack(String),
    /// The connection was lost. Whether the statement took effect is unknown.
    Connection(Trouble),
}
