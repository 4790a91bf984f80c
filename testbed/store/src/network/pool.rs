//! Connections that take statements from one queue.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::connection::ServerConnection;
use crate::{
    database::ServerDatabase,
    error::{StoreError, Trouble},
    options::{Commits, Options},
    queue::{QueuedStatement, StatementFailure, Wanted},
    rate_limited_log::{Outage, RateLimitedLog},
};

/// A statement that has waited for longer is refused: its client is about to give up.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long to wait after a failure to connect before trying again.
const BACK_OFF: Duration = Duration::from_millis(100);
/// How often a statement is tried when its connections break.
const TRIES: u8 = 4;

static CONNECTION_LOST: RateLimitedLog = RateLimitedLog::new();

/// The state that the connections share. They all run on one thread.
pub(super) struct ConnectionPool {
    server: ServerDatabase,
    /// The number of the host that the next connection goes to first: the last that took one, so that all go to one as
    /// long as it serves.
    node: Cell<usize>,
    connections_max: usize,
    commits: Commits,
    queue: RefCell<VecDeque<QueuedStatement>>,
    /// The length of the queue, including statements on their way to it.
    waiting: Arc<AtomicUsize>,
    arrived: Notify,
    /// How many connections are open or being opened.
    connections: Cell<usize>,
    connected: Cell<usize>,
    idle: Cell<usize>,
    failed: RefCell<Option<(Instant, Trouble)>>,
    /// When a connection broke last. What broke one, such as a restart of the database, may have broken them all.
    broke: Cell<Option<Instant>>,
    outage: RefCell<Outage>,
    closing: Cell<bool>,
}

/// What to do with a connection after a statement.
enum Next {
    Again,
    Lost,
}

impl ConnectionPool {
    pub(super) fn new(server: ServerDatabase, waiting: Arc<AtomicUsize>, options: &Options) -> Rc<Self> {
        Rc::new(Self {
            server,
            node: Cell::new(0),
            connections_max: options.connections.max(1),
            commits: options.commits.clone(),
            queue: RefCell::default(),
            waiting,
            arrived: Notify::new(),
            connections: Cell::new(0),
            connected: Cell::new(0),
            idle: Cell::new(0),
            failed: RefCell::default(),
            broke: Cell::new(None),
            outage: RefCell::default(),
            closing: Cell::new(false),
        })
    }

    /// Queues statements until the sender is dropped. Returns after the last reply.
    pub(super) async fn serve(self: Rc<Self>, mut incoming: mpsc::UnboundedReceiver<QueuedStatement>) {
        let mut workers = JoinSet::new();
        while let Some(queued) = incoming.recv().await {
            while workers.try_join_next().is_some() {}
            self.queue.borrow_mut().push_back(queued);
            self.arrived.notify_one();
            if self.needs_another_connection() {
                self.connections.set(self.connections.get() + 1);
                workers.spawn_local(Rc::clone(&self).work());
            }
        }
        self.closing.set(true);
        self.arrived.notify_waiters();
        while workers.join_next().await.is_some() {}
    }

    /// Whether more statements wait than connections are idle, and another connection may be opened.
    fn needs_another_connection(&self) -> bool {
        let needed = self.queue.borrow().len() > self.idle.get();
        if !needed || self.connections.get() >= self.connections_max {
            return false;
        }
        let failed = self.failed.borrow().clone();
        match failed.filter(|(at, _)| at.elapsed() < BACK_OFF) {
            Some((_, trouble)) if self.connections.get() == 0 => {
                self.refuse_all(&trouble);
                false
            }
            Some(_) => false,
            None => true,
        }
    }

    fn next(&self) -> Option<QueuedStatement> {
        loop {
            let queued = self.queue.borrow_mut().pop_front()?;
            self.waiting.fetch_sub(1, Relaxed);
            if queued.queued_at.elapsed() < WAIT_MAX {
                return Some(queued);
            }
            give_up(queued, StoreError::Busy);
        }
    }

    /// Runs a connection, and replaces it when it is lost as long as statements wait.
    async fn work(self: Rc<Self>) {
        loop {
            match ServerConnection::open(&self.server, self.first_node()).await {
                Ok(connection) => {
                    self.note_node(connection.node);
                    self.connected.set(self.connected.get() + 1);
                    if self.outage.borrow_mut().ends() {
                        // As loud as the trouble, so that its end is not missed.
                        tracing::warn!("connections to the database can be opened again");
                    }
                    self.take_statements(connection).await;
                    self.connected.set(self.connected.get() - 1);
                }
                Err(trouble) => {
                    self.cannot_connect(trouble);
                    break;
                }
            }
            if self.queue.borrow().is_empty() {
                break;
            }
        }
        self.connections.set(self.connections.get() - 1);
    }

    /// The number of the host to connect to first.
    fn first_node(&self) -> usize {
        if self.server.balance { fastrand::usize(..self.server.nodes.len()) } else { self.node.get() }
    }

    fn note_node(&self, node: usize) {
        let before = self.node.replace(node);
        if before == node || self.server.balance {
            return;
        }
        if let Some(node) = self.server.nodes.get(node) {
            tracing::warn!(host = node.host, "the database is now used at another of its hosts");
        }
    }

    async fn take_statements(&self, mut connection: ServerConnection) {
        loop {
            match self.next() {
                Some(queued) => {
                    if matches!(self.execute(&mut connection, queued).await, Next::Lost) {
                        return;
                    }
                }
                None if self.closing.get() => return,
                None => {
                    self.idle.set(self.idle.get() + 1);
                    self.arrived.notified().await;
                    self.idle.set(self.idle.get() - 1);
                }
            }
        }
    }

    async fn execute(&self, connection: &mut ServerConnection, queued: QueuedStatement) -> Next {
        if !connection.is_alive(self.broke.get()).await {
            // It has not been sent, so any other connection may execute it.
            self.put_back(queued);
            return Next::Lost;
        }
        let started = Instant::now();
        match connection.run(queued.wanted, &queued.statement).await {
            Ok(reply) => {
                if queued.wanted != Wanted::Rows {
                    self.commits.record(1, started.elapsed());
                }
                queued.reply(Ok(reply));
                Next::Again
            }
            Err(StatementFailure::Statement(error)) => {
                queued.reply(Err(error));
                Next::Again
            }
            Err(StatementFailure::RolledBack(said)) => {
                // The database lets one of the conflicting transactions proceed, so all succeed eventually.
                tracing::debug!(said, "a statement is retried");
                self.put_back(queued);
                Next::Again
            }
            Err(StatementFailure::Connection(trouble)) => {
                self.lost(queued, &trouble);
                Next::Lost
            }
        }
    }

    /// Retries a statement if that is harmless. Otherwise replies that its outcome is unknown.
    fn lost(&self, mut queued: QueuedStatement, trouble: &Trouble) {
        CONNECTION_LOST
            .write(|suppressed| tracing::warn!(%trouble, suppressed, "a connection to the database broke"));
        self.broke.set(Some(Instant::now()));
        queued.sent = true;
        queued.tries += 1;
        if (queued.wanted == Wanted::Rows || queued.statement.repeatable) && queued.tries < TRIES {
            self.put_back(queued);
        } else {
            queued.reply(Err(StoreError::Uncertain));
        }
    }

    fn put_back(&self, queued: QueuedStatement) {
        self.waiting.fetch_add(1, Relaxed);
        self.queue.borrow_mut().push_front(queued);
        self.arrived.notify_one();
    }

    /// Leaves the queue to the other connections. If there are none, refuses all that wait.
    fn cannot_connect(&self, trouble: Trouble) {
        if self.outage.borrow_mut().should_log(&trouble, Instant::now()) {
            let connected = self.connected.get();
            tracing::warn!(%trouble, connected, "cannot open another connection to the database");
        }
        if self.connected.get() == 0 {
            self.refuse_all(&trouble);
        }
        self.failed.replace(Some((Instant::now(), trouble)));
    }

    fn refuse_all(&self, trouble: &Trouble) {
        while let Some(queued) = self.next() {
            give_up(queued, trouble.for_clients());
        }
    }
}

/// Replies with the reason, or that the outcome is unknown if a connection was lost while executing the statement.
fn give_up(queued: QueuedStatement, reason: StoreError) {
    let unknown = queued.sent && queued.wanted != Wanted::Rows;
    queued.reply(Err(if unknown { StoreError::Uncertain } else { reason }));
}
