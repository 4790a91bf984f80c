//! The writer: takes what is queued, commits it together, and only then replies.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
    time::Instant,
};

use rusqlite::{Connection, ErrorCode, TransactionBehavior, params_from_iter};

use super::values;
use crate::{
    error::StoreError,
    options::{Commits, Options},
    queue::{QueuedStatement, Reply, Wanted},
    rate_limited_log::RateLimitedLog,
    statement::Statement,
};

/// How many statements one commit holds at most. With more, the first of them would wait longer than a sync saves.
const BATCH_MAX: usize = 256;

static COMMIT_FAILED: RateLimitedLog = RateLimitedLog::new();
static STATEMENT_FAILED: RateLimitedLog = RateLimitedLog::new();

/// The sender to the writer. When it is dropped, the writer finishes what is queued and ends.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: SyncSender<QueuedStatement>,
}

impl Writer {
    /// Starts the writer's thread with a connection of its own.
    pub(crate) fn start(connection: Connection, name: &str, options: &Options) -> std::io::Result<Self> {
        let (queue, incoming) = sync_channel(options.queue.max(1));
        let commits = options.commits.clone();
        thread::Builder::new()
            .name(format!("{name}-write"))
            .spawn(move || write_batches(connection, &incoming, &commits))?;
        Ok(Self { queue })
    }

    /// Executes a statement. Its change is durable when this returns.
    pub(crate) async fn write(&self, wanted: Wanted, statement: Statement) -> Result<Reply, StoreError> {
        let (queued, reply) = QueuedStatement::new(wanted, statement);
        self.queue.try_send(queued).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Busy,
            TrySendError::Disconnected(_) => StoreError::Failed,
        })?;
        reply.await.unwrap_or(Err(StoreError::Failed))
    }
}

fn write_batches(mut connection: Connection, incoming: &Receiver<QueuedStatement>, commits: &Commits) {
    while let Ok(first) = incoming.recv() {
        let mut batch = vec![first];
        batch.extend(incoming.try_iter().take(BATCH_MAX - 1));
        let started = Instant::now();
        let outcome = commit(&mut connection, batch.iter().map(|queued| (queued.wanted, &queued.statement)));
        commits.record(batch.len(), started.elapsed());
        reply_to_all(batch, outcome);
    }
}

fn reply_to_all(batch: Vec<QueuedStatement>, outcome: rusqlite::Result<Vec<Result<Reply, StoreError>>>) {
    match outcome {
        Ok(replies) => batch.into_iter().zip(replies).for_each(|(queued, reply)| queued.reply(reply)),
        Err(error) => {
            let statements = batch.len();
            COMMIT_FAILED.write(|suppressed| {
                tracing::error!(%error, statements, suppressed, "a commit failed; its statements were rolled back and refused");
            });
            let reason = values::reason(&error);
            batch.into_iter().for_each(|queued| queued.reply(Err(reason.clone())));
        }
    }
}

/// Executes a batch in one transaction. A statement that fails is rolled back alone; a commit that fails rolls back all.
pub(super) fn commit<'a>(
    connection: &mut Connection,
    batch: impl Iterator<Item = (Wanted, &'a Statement)>,
) -> rusqlite::Result<Vec<Result<Reply, StoreError>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut replies = Vec::new();
    for (wanted, statement) in batch {
        match apply_whole(&transaction, wanted, statement) {
            Ok(reply) => replies.push(Ok(reply)),
            Err(error) if rolls_back_all(&error) || transaction.is_autocommit() => return Err(error),
            Err(error) => {
                STATEMENT_FAILED.write(
                    |suppressed| tracing::error!(%error, ?statement, suppressed, "a statement failed"),
                );
                replies.push(Err(values::reason(&error)));
            }
        }
    }
    transaction.commit()?;
    Ok(replies)
}

/// Whether SQLite may have rolled back more than the statement (sqlite.org/lang_transaction.html, section 3.1).
fn rolls_back_all(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DiskFull, OperationInterrupted, OutOfMemory, SystemIoFailure};
    let codes = [DatabaseBusy, DiskFull, OperationInterrupted, OutOfMemory, SystemIoFailure];
    error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
}

/// Executes a statement and those that belong to it: all or nothing.
fn apply_whole(connection: &Connection, wanted: Wanted, statement: &Statement) -> rusqlite::Result<Reply> {
    if statement.then.is_empty() {
        return apply(connection, wanted, statement);
    }
    connection.prepare_cached("SAVEPOINT whole")?.execute([])?;
    let done = apply(connection, wanted, statement).and_then(|reply| {
        let then = if reply.has_changed() { &statement.then[..] } else { &[] };
        then.iter().try_for_each(|next| apply(connection, Wanted::Changed, next).map(drop))?;
        Ok(reply)
    });
    // If SQLite rolled back the whole transaction, the savepoint is gone too.
    if done.is_err() && !connection.is_autocommit() {
        connection.prepare_cached("ROLLBACK TO whole")?.execute([])?;
    }
    if !connection.is_autocommit() {
        connection.prepare_cached("RELEASE whole")?.execute([])?;
    }
    done
}

fn apply(connection: &Connection, wanted: Wanted, statement: &Statement) -> rusqlite::Result<Reply> {
    let executed = connection.prepare_cached(statement.sql)?.execute(params_from_iter(&statement.values));
    let inserts = matches!(wanted, Wanted::Inserted | Wanted::InsertedId);
    match executed {
        Ok(0) if inserts => Ok(Reply::Inserted(None)),
        Ok(_) if inserts => Ok(Reply::Inserted(Some(connection.last_insert_rowid()))),
        Ok(rows) => Ok(Reply::Changed(rows as u64)),
        Err(error) if inserts && values::is_refused_by_uniqueness(&error) => Ok(Reply::Inserted(None)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    const INSERT: &str = "INSERT INTO names (name) VALUES (?)";

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let tables = "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT";
        connection.execute_batch(tables).unwrap();
        connection
    }

    fn insert(connection: &mut Connection, names: &[&str]) -> rusqlite::Result<Vec<Option<i64>>> {
        let statements: Vec<_> = names.iter().map(|&name| Statement::new(INSERT).with(name)).collect();
        let batch = statements.iter().map(|statement| (Wanted::InsertedId, statement));
        let answers = commit(connection, batch)?;
        Ok(answers
            .into_iter()
            .map(|answer| match answer {
                Ok(Reply::Inserted(id)) => id,
                other => panic!("{other:?}"),
            })
            .collect())
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM names", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn duplicates_are_refused_within_a_batch_and_across_batches() {
        let mut connection = database();
        assert_eq!(insert(&mut connection, &["ann", "bob", "ann"]).unwrap(), [Some(1), Some(2), None]);
        assert_eq!(insert(&mut connection, &["bob", "eve"]).unwrap(), [None, Some(3)]);
        assert_eq!(count(&connection), 3);
    }

    #[test]
    fn a_statement_that_fails_leaves_the_others_of_its_batch_alone() {
        let mut connection = database();
        let batch = [
            Statement::new(INSERT).with("ann"),
            Statement::new(INSERT).with(None::<&str>),
            Statement::new("DELETE FROM names WHERE name = ?").with("nobody"),
        ];
        let answers = commit(&mut connection, batch.iter().map(|statement| (Wanted::Changed, statement)));
        assert_eq!(answers.unwrap(), [Ok(Reply::Changed(1)), Err(StoreError::Failed), Ok(Reply::Changed(0))]);
        assert_eq!(count(&connection), 1);
    }

    #[test]
    fn a_full_disk_rolls_back_the_whole_batch_and_passes() {
        let mut connection = database();
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let limit = |connection: &Connection, pages: i64| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        limit(&connection, pages);
        let many: Vec<_> = (0..400).map(|n| format!("a-rather-long-name-{n:08}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let error = insert(&mut connection, &many).unwrap_err();
        assert_eq!(values::reason(&error), StoreError::DiskFull);
        assert_eq!(count(&connection), 0, "nothing of a refused batch stays");

        limit(&connection, 1000);
        assert_eq!(insert(&mut connection, &many).unwrap().len(), 400);
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!((count(&connection), sound.as_str()), (400, "ok"));
    }

    #[test]
    fn a_full_queue_is_busy() {
        let (queue, _incoming) = sync_channel(1);
        let writer = Writer { queue };
        let write = || writer.write(Wanted::Inserted, Statement::new(INSERT).with("ann"));
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = pin!(write());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(pin!(write()).poll(&mut context), Poll::Ready(Err(StoreError::Busy)));
    }
}
