//! Databases that are servers of their own: MariaDB, MySQL, PostgreSQL.
//!
//! One thread runs a small tokio runtime, on which a bounded number of connections take orders from one queue. The
//! futures that wait for answers live elsewhere, under any concurrency model.

mod blocking;
mod durability;
mod mysql;
mod outage;
mod pool;
mod postgres;
mod session;
mod setup;
mod trouble;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use tokio::{runtime, sync::mpsc, task::LocalSet};

use self::pool::Pool;
pub use self::trouble::Trouble;
pub(crate) use self::{
    mysql::{has_password as mysql_url_has_password, is_url as is_mysql_url},
    postgres::{has_password as postgres_url_has_password, is_url as is_postgres_url},
    setup::Setup,
};
use crate::{
    database::ServerDatabase,
    error::{OpenError, StoreError},
    order::{Ask, Order, Reply},
    schema::Schema,
    statement::Statement,
    store::Options,
};

/// The way to the connections. Dropping it ends them once they have done what is queued.
#[derive(Debug)]
pub(crate) struct Network {
    orders: mpsc::UnboundedSender<Order>,
    /// Orders that no connection has taken up.
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
}

impl Network {
    /// Starts the thread. Connections are opened as they are needed.
    pub(crate) fn open(
        server: &ServerDatabase,
        schema: &Schema,
        options: &Options,
    ) -> Result<Self, OpenError> {
        drop(Setup::open(server, schema)?);
        let (orders, incoming) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let runtime = new_runtime().map_err(OpenError::Thread)?;
        let (server, options, counted) = (server.clone(), options.clone(), Arc::clone(&waiting));
        let waiting_max = options.queue.max(1);
        let serve = move || {
            let pool = Pool::new(server, counted, &options);
            LocalSet::new().block_on(&runtime, pool.serve(incoming));
        };
        let builder = thread::Builder::new().name(format!("{}-store", schema.name));
        builder.spawn(serve).map_err(OpenError::Thread)?;
        Ok(Self { orders, waiting, waiting_max })
    }

    /// Does a statement; answers when it is durable.
    pub(crate) async fn run(&self, ask: Ask, statement: Statement) -> Result<Reply, StoreError> {
        if self.waiting.fetch_add(1, Relaxed) >= self.waiting_max {
            self.waiting.fetch_sub(1, Relaxed);
            return Err(StoreError::Busy);
        }
        let (order, answered) = Order::new(ask, statement);
        self.orders.send(order).map_err(|_| StoreError::Failed)?;
        answered.await.unwrap_or(Err(StoreError::Failed))
    }
}

fn new_runtime() -> std::io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_io().enable_time().build()
}
