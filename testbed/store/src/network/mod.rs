//! Database servers: MariaDB, MySQL, PostgreSQL.
//!
//! One thread runs a small tokio runtime, on which a bounded number of connections take statements from one queue. The
//! futures that wait for replies live elsewhere, under any concurrency model.

mod connection;
mod mysql;
mod pool;
mod postgres;
mod setup;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use tokio::{sync::mpsc, task::LocalSet};

pub(crate) use self::setup::NetworkSetup;
use self::{connection::new_runtime, pool::ConnectionPool};
use crate::{
    database::ServerDatabase,
    error::{OpenError, StoreError},
    options::Options,
    queue::{QueuedStatement, Reply, Wanted},
    schema::Schema,
    statement::Statement,
};

/// The sender to the connections. When it is dropped, they finish what is queued and end.
#[derive(Debug)]
pub(crate) struct Network {
    queue: mpsc::UnboundedSender<QueuedStatement>,
    /// How many statements no connection has taken yet.
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
}

impl Network {
    /// Starts the thread. Connections are opened as needed.
    pub(crate) fn open(
        server: &ServerDatabase,
        schema: &Schema,
        options: &Options,
    ) -> Result<Self, OpenError> {
        drop(NetworkSetup::open(server, schema)?);
        let (queue, incoming) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let runtime = new_runtime().map_err(OpenError::Thread)?;
        let (server, options, counted) = (server.clone(), options.clone(), Arc::clone(&waiting));
        let waiting_max = options.queue.max(1);
        let serve = move || {
            let pool = ConnectionPool::new(server, counted, &options);
            LocalSet::new().block_on(&runtime, pool.serve(incoming));
        };
        let builder = thread::Builder::new().name(format!("{}-store", schema.name));
        builder.spawn(serve).map_err(OpenError::Thread)?;
        Ok(Self { queue, waiting, waiting_max })
    }

    /// Executes a statement. Its change is durable when this returns.
    pub(crate) async fn run(&self, wanted: Wanted, statement: Statement) -> Result<Reply, StoreError> {
        if self.waiting.fetch_add(1, Relaxed) >= self.waiting_max {
            self.waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Busy);
        }
        let (queued, reply) = QueuedStatement::new(wanted, statement);
        self.queue.send(queued).map_err(|_| StoreError::Failed)?;
        reply.await.unwrap_or(Err(StoreError::Failed))
    }
}
