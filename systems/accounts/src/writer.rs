//! The one writer: takes what is queued, commits it together, and only then answers.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
    time::Instant,
};

use engine::oneshot;
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};

use crate::metrics::Metrics;

/// Most writes in one commit. More would make the first of them wait longer than a sync is worth.
const BATCH_MAX: usize = 256;

/// One change to the database.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A new account.
    Account { name: String, password_hash: String },
    /// A new session.
    Session { token_digest: [u8; 32], name: String, expires_at_s: i64 },
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is on the disk.
    Yes,
    /// There is an account of that name already.
    Taken,
}

/// Why a change was not made. What was asked for is not on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// Too many writes wait already.
    #[error("too many writes are waiting")]
    Busy,
    /// The disk, or the space allowed to the database, is full.
    #[error("the disk is full")]
    DiskFull,
    /// The database failed; the log has the reason.
    #[error("the database failed")]
    Failed,
}

struct Order {
    change: Change,
    answer: oneshot::Sender<Result<Written, WriteError>>,
}

/// The way to the writer. Dropping the last one ends its thread.
#[derive(Debug)]
pub(crate) struct Writer {
    orders: SyncSender<Order>,
}

impl Writer {
    /// Starts the writer on its own connection; at most `queue` changes wait.
    pub(crate) fn start(connection: Connection, queue: usize, metrics: Metrics) -> std::io::Result<Self> {
        let (orders, incoming) = sync_channel(queue.max(1));
        thread::Builder::new()
            .name("accounts-writer".into())
            .spawn(move || write_batches(connection, &incoming, &metrics))?;
        Ok(Self { orders })
    }

    /// Makes a change; answers when it is durable.
    pub(crate) async fn write(&self, change: Change) -> Result<Written, WriteError> {
        let (answer, answered) = oneshot::channel();
        self.orders.try_send(Order { change, answer }).map_err(|error| match error {
            TrySendError::Full(_) => WriteError::Busy,
            TrySendError::Disconnected(_) => WriteError::Failed,
        })?;
        answered.await.unwrap_or(Err(WriteError::Failed))
    }
}

fn write_batches(mut connection: Connection, incoming: &Receiver<Order>, metrics: &Metrics) {
    while let Ok(first) = incoming.recv() {
        let mut batch = vec![first];
        batch.extend(incoming.try_iter().take(BATCH_MAX - 1));
        let started = Instant::now();
        let outcome = commit(&mut connection, batch.iter().map(|order| &order.change));
        metrics.committed(batch.len(), started.elapsed());
        answer(batch, outcome);
    }
}

fn answer(batch: Vec<Order>, outcome: rusqlite::Result<Vec<Written>>) {
    match outcome {
        Ok(written) => {
            for (order, written) in batch.into_iter().zip(written) {
                let _gone_is_fine = order.answer.send(Ok(written));
            }
        }
        Err(error) => {
            tracing::error!(%error, changes = batch.len(), "a commit failed; its changes were undone and refused");
            let reason = reason(&error);
            for order in batch {
                let _gone_is_fine = order.answer.send(Err(reason));
            }
        }
    }
}

/// All of the changes in one transaction, or none of them.
fn commit<'a>(
    connection: &mut Connection,
    changes: impl Iterator<Item = &'a Change>,
) -> rusqlite::Result<Vec<Written>> {
    let now_s = crate::now_s();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let written = changes.map(|change| apply(&transaction, change, now_s)).collect::<Result<_, _>>()?;
    transaction.commit()?;
    Ok(written)
}

fn apply(connection: &Connection, change: &Change, now_s: i64) -> rusqlite::Result<Written> {
    match change {
        Change::Account { name, password_hash } => {
            let mut insert = connection
                .prepare_cached("INSERT INTO accounts VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?;
            let rows = insert.execute(params![name, password_hash, now_s])?;
            Ok(if rows == 1 { Written::Yes } else { Written::Taken })
        }
        Change::Session { token_digest, name, expires_at_s } => {
            connection
                .prepare_cached("DELETE FROM sessions WHERE expires_at_s <= ?1")?
                .execute(params![now_s])?;
            connection.prepare_cached("INSERT INTO sessions VALUES (?1, ?2, ?3)")?.execute(params![
                token_digest,
                name,
                expires_at_s
            ])?;
            Ok(Written::Yes)
        }
    }
}

fn reason(error: &rusqlite::Error) -> WriteError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => WriteError::DiskFull,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => WriteError::Busy,
        _ => WriteError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        connection
    }

    fn account(name: &str) -> Change {
        Change::Account { name: name.into(), password_hash: "hash".into() }
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM accounts", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_name_is_taken_within_a_batch_and_across_batches() {
        let mut connection = database();
        let batch = [account("ann"), account("bob"), account("ann")];
        let written = commit(&mut connection, batch.iter()).unwrap();
        assert_eq!(written, [Written::Yes, Written::Yes, Written::Taken]);
        assert_eq!(commit(&mut connection, [account("bob")].iter()).unwrap(), [Written::Taken]);
        assert_eq!(count(&connection), 2);
    }

    #[test]
    fn a_full_disk_undoes_the_whole_batch_and_passes() {
        let mut connection = database();
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let limit = |connection: &Connection, pages: i64| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        limit(&connection, pages);
        let many: Vec<_> = (0..200).map(|n| account(&format!("a-rather-long-name-{n:08}"))).collect();
        let error = commit(&mut connection, many.iter()).unwrap_err();
        assert_eq!(reason(&error), WriteError::DiskFull);
        assert_eq!(count(&connection), 0, "nothing of a refused batch is kept");

        limit(&connection, 1000);
        assert_eq!(commit(&mut connection, many.iter()).unwrap().len(), 200);
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!((count(&connection), sound.as_str()), (200, "ok"));
    }

    #[test]
    fn expired_sessions_go_when_new_ones_come() {
        let mut connection = database();
        let session = |byte, expires_at_s| Change::Session {
            token_digest: [byte; 32],
            name: "ann".into(),
            expires_at_s,
        };
        commit(&mut connection, [account("ann"), session(1, 5), session(2, i64::MAX)].iter()).unwrap();
        let digests: Vec<Vec<u8>> = connection
            .prepare("SELECT token_digest FROM sessions")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(digests, [vec![2; 32]]);
    }

    #[test]
    fn a_full_queue_is_busy() {
        let (orders, _incoming) = sync_channel(1);
        let writer = Writer { orders };
        let mut waiting = std::pin::pin!(writer.write(account("ann")));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        let refused = std::pin::pin!(writer.write(account("bob"))).poll(&mut context);
        assert_eq!(refused, std::task::Poll::Ready(Err(WriteError::Busy)));
    }
}
