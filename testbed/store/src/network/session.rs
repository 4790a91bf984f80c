//! One connection to a database server, whichever it is.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{mysql, postgres, trouble::Trouble};
use crate::{
    database::{Dialect, ServerDatabase},
    error::StoreError,
    order::{Ask, Reply},
    statement::Statement,
};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long a statement may take. It waits for rows that others hold, at most.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);
/// A connection idle for longer is asked whether it is there still: servers close idle ones.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// One connection.
pub(super) struct Session {
    pub(super) driver: Driver,
    used: Instant,
}

pub(super) enum Driver {
    Mysql(Box<mysql::Session>),
    Postgres(Box<postgres::Session>),
}

/// Why a statement was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// The statement's; the connection is good.
    Statement(StoreError),
    /// The database undid it to let another go on: it may be done again.
    Undone(String),
    /// The connection's; whether the statement was done is not known.
    Connection(Trouble),
}

impl Session {
    pub(super) async fn open(server: &ServerDatabase) -> Result<Self, Trouble> {
        let opening = async {
            Ok(match server.dialect {
                Dialect::Mysql => Driver::Mysql(Box::new(mysql::Session::open(server).await?)),
                Dialect::Postgres => Driver::Postgres(Box::new(postgres::Session::open(server).await?)),
            })
        };
        let hint = match server.dialect {
            // It waits for the client to speak first, and a client of MariaDB's waits for the server.
            Dialect::Mysql => " (if it is PostgreSQL, write postgres:// for mysql://)",
            Dialect::Postgres => "",
        };
        let late = || Trouble::Unreachable(format!("no answer within {} s{hint}", CONNECT_LIMIT.as_secs()));
        let driver = timeout(CONNECT_LIMIT, opening).await.unwrap_or_else(|_| Err(late()))?;
        Ok(Self { driver, used: Instant::now() })
    }

    /// Whether the connection can be trusted with a statement that must not be done twice.
    pub(super) async fn is_there(&mut self) -> bool {
        if self.used.elapsed() < TRUSTED_IDLE {
            return true;
        }
        let asking = async {
            match &mut self.driver {
                Driver::Mysql(session) => session.ping().await,
                Driver::Postgres(session) => session.ping().await,
            }
        };
        timeout(CONNECT_LIMIT, asking).await.unwrap_or(false)
    }

    /// Does a statement, with what belongs to it in one transaction.
    pub(super) async fn run(&mut self, ask: Ask, statement: &Statement) -> Result<Reply, Failure> {
        let running = async {
            match &statement.then[..] {
                [] => self.driver.run(ask, statement).await,
                then => self.driver.run_whole(ask, statement, then).await,
            }
        };
        let late = || Failure::Connection(Trouble::Lost("it did not answer in time".into()));
        let outcome = timeout(STATEMENT_LIMIT, running).await.unwrap_or_else(|_| Err(late()));
        self.used = Instant::now();
        outcome
    }

    /// `BEGIN`, `COMMIT` and their like.
    pub(super) async fn command(&mut self, sql: &'static str) -> Result<(), Trouble> {
        self.driver.command(sql).await
    }
}

impl Driver {
    async fn run(&mut self, ask: Ask, statement: &Statement) -> Result<Reply, Failure> {
        match self {
            Self::Mysql(session) => session.run(ask, statement).await,
            Self::Postgres(session) => session.run(ask, statement).await,
        }
    }

    async fn command(&mut self, sql: &'static str) -> Result<(), Trouble> {
        match self {
            Self::Mysql(session) => session.command(sql).await,
            Self::Postgres(session) => session.command(sql).await,
        }
    }

    /// A statement and what belongs to it: all or nothing.
    async fn run_whole(&mut self, ask: Ask, first: &Statement, then: &[Statement]) -> Result<Reply, Failure> {
        self.command("BEGIN").await.map_err(Failure::Connection)?;
        let done = self.run_parts(ask, first, then).await;
        let end = match &done {
            Err(Failure::Connection(_)) => return done,
            Ok(reply) if reply.has_changed() => "COMMIT",
            _ => "ROLLBACK",
        };
        self.command(end).await.map_err(Failure::Connection)?;
        done
    }

    async fn run_parts(&mut self, ask: Ask, first: &Statement, then: &[Statement]) -> Result<Reply, Failure> {
        let reply = self.run(ask, first).await?;
        if reply.has_changed() {
            for next in then {
                self.run(Ask::Changed, next).await?;
            }
        }
        Ok(reply)
    }
}
