//! Connections that take orders from one queue.

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

use super::{
    outage::Outage,
    session::{Failure, Session},
    trouble::Trouble,
};
use crate::{
    database::ServerDatabase,
    error::StoreError,
    order::{Ask, Order},
    seldom::Seldom,
    store::{Commits, Options},
};

/// An order that has waited for longer is refused: whoever asked has little patience left.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// After a failure to connect, how long no more connections are tried.
const REST: Duration = Duration::from_millis(100);
/// How often a statement is tried whose connections break.
const TRIES: u8 = 4;

static BROKE: Seldom = Seldom::new();

/// What the connections share. They all run on one thread.
pub(super) struct Pool {
    server: ServerDatabase,
    connections_max: usize,
    commits: Commits,
    orders: RefCell<VecDeque<Order>>,
    /// Length of the queue, as whoever fills it counts.
    waiting: Arc<AtomicUsize>,
    arrived: Notify,
    /// Connections open, and those being opened.
    connections: Cell<usize>,
    connected: Cell<usize>,
    idle: Cell<usize>,
    failed: RefCell<Option<(Instant, Trouble)>>,
    outage: RefCell<Outage>,
    closing: Cell<bool>,
}

/// What becomes of a connection after an order.
enum Next {
    Again,
    Lost,
}

impl Pool {
    pub(super) fn new(server: ServerDatabase, waiting: Arc<AtomicUsize>, options: &Options) -> Rc<Self> {
        Rc::new(Self {
            server,
            connections_max: options.connections.max(1),
            commits: options.commits.clone(),
            orders: RefCell::default(),
            waiting,
            arrived: Notify::new(),
            connections: Cell::new(0),
            connected: Cell::new(0),
            idle: Cell::new(0),
            failed: RefCell::default(),
            outage: RefCell::default(),
            closing: Cell::new(false),
        })
    }

    /// Takes in orders until no more can come, and ends when the last is answered.
    pub(super) async fn serve(self: Rc<Self>, mut incoming: mpsc::UnboundedReceiver<Order>) {
        let mut workers = JoinSet::new();
        while let Some(order) = incoming.recv().await {
            while workers.try_join_next().is_some() {}
            self.orders.borrow_mut().push_back(order);
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

    /// Whether more wait than connections are free, and one more may be tried.
    fn needs_another_connection(&self) -> bool {
        let needed = self.orders.borrow().len() > self.idle.get();
        if !needed || self.connections.get() >= self.connections_max {
            return false;
        }
        let failed = self.failed.borrow().clone();
        match failed.filter(|(at, _)| at.elapsed() < REST) {
            Some((_, trouble)) if self.connections.get() == 0 => {
                self.refuse_all(&trouble);
                false
            }
            Some(_) => false,
            None => true,
        }
    }

    fn next(&self) -> Option<Order> {
        loop {
            let order = self.orders.borrow_mut().pop_front()?;
            self.waiting.fetch_sub(1, Relaxed);
            if order.asked_at.elapsed() < WAIT_MAX {
                return Some(order);
            }
            give_up(order, StoreError::Busy);
        }
    }

    /// The life of one connection, and of those that follow it when it is lost and there is work.
    async fn work(self: Rc<Self>) {
        loop {
            match Session::open(&self.server).await {
                Ok(session) => {
                    self.connected.set(self.connected.get() + 1);
                    if self.outage.borrow_mut().ends() {
                        // As loud as the trouble: who reads of that must read of its end.
                        tracing::warn!("connections to the database can be opened again");
                    }
                    self.take_orders(session).await;
                    self.connected.set(self.connected.get() - 1);
                }
                Err(trouble) => {
                    self.cannot_connect(trouble);
                    break;
                }
            }
            if self.orders.borrow().is_empty() {
                break;
            }
        }
        self.connections.set(self.connections.get() - 1);
    }

    async fn take_orders(&self, mut session: Session) {
        loop {
            match self.next() {
                Some(order) => {
                    if matches!(self.fulfil(&mut session, order).await, Next::Lost) {
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

    async fn fulfil(&self, session: &mut Session, order: Order) -> Next {
        if !session.is_there().await {
            // Not sent yet, so that any other connection may do it.
            self.put_back(order);
            return Next::Lost;
        }
        let started = Instant::now();
        match session.run(order.ask, &order.statement).await {
            Ok(reply) => {
                if order.ask != Ask::Rows {
                    self.commits.tell(1, started.elapsed());
                }
                order.answer(Ok(reply));
                Next::Again
            }
            Err(Failure::Statement(error)) => {
                order.answer(Err(error));
                Next::Again
            }
            Err(Failure::Undone(said)) => {
                // Of those that stood in each other's way the database let one go on, so that all come through in time.
                tracing::debug!(said, "a statement is done again");
                self.put_back(order);
                Next::Again
            }
            Err(Failure::Connection(trouble)) => {
                self.lost(order, &trouble);
                Next::Lost
            }
        }
    }

    /// What can be done again without harm is; of the rest is told that nobody knows.
    fn lost(&self, mut order: Order, trouble: &Trouble) {
        BROKE.tell(|untold| tracing::warn!(%trouble, untold, "a connection to the database broke"));
        order.sent = true;
        order.tries += 1;
        if (order.ask == Ask::Rows || order.statement.repeatable) && order.tries < TRIES {
            self.put_back(order);
        } else {
            order.answer(Err(StoreError::Uncertain));
        }
    }

    fn put_back(&self, order: Order) {
        self.waiting.fetch_add(1, Relaxed);
        self.orders.borrow_mut().push_front(order);
        self.arrived.notify_one();
    }

    /// With other connections the queue goes on, more slowly; without any, those who wait are told.
    fn cannot_connect(&self, trouble: Trouble) {
        if self.outage.borrow_mut().meets(&trouble, Instant::now()) {
            let connected = self.connected.get();
            tracing::warn!(%trouble, connected, "cannot open another connection to the database");
        }
        if self.connected.get() == 0 {
            self.refuse_all(&trouble);
        }
        self.failed.replace(Some((Instant::now(), trouble)));
    }

    fn refuse_all(&self, trouble: &Trouble) {
        while let Some(order) = self.next() {
            give_up(order, trouble.as_refusal());
        }
    }
}

/// Answers with the reason; where a connection was lost with the order before, that nobody knows.
fn give_up(order: Order, reason: StoreError) {
    let unknown = order.sent && order.ask != Ask::Rows;
    order.answer(Err(if unknown { StoreError::Uncertain } else { reason }));
}
