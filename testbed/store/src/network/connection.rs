//! A connection to a database server of any dialect.

use std::time::{Duration, Instant};

use tokio::{runtime, time::timeout};

use super::{mysql, postgres};
use crate::{
    database::{Dialect, ServerDatabase},
    error::Trouble,
    queue::{Reply, StatementFailure, Wanted},
    statement::Statement,
};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long connecting to one of several hosts may take.
const CONNECT_LIMIT_OF_SEVERAL: Duration = Duration::from_secs(2);
/// How long a statement may take, including the wait for row locks.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);
/// A connection that was idle for longer is pinged before use: servers close idle ones.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// A connection to a database server.
pub(super) struct ServerConnection {
    pub(super) driver: Driver,
    /// The number of the host that it goes to.
    pub(super) node: usize,
    /// Whether others could serve instead.
    one_of_several: bool,
    used_at: Instant,
}

pub(super) enum Driver {
    Mysql(Box<mysql::MysqlConnection>),
    Postgres(Box<postgres::PostgresConnection>),
}

impl ServerConnection {
    /// Connects to the first of its hosts that takes changes, beginning with number `first`.
    pub(super) async fn open(server: &ServerDatabase, first: usize) -> Result<Self, Trouble> {
        let nodes = server.nodes.iter().enumerate();
        let mut troubles = Vec::new();
        for (node, of) in nodes.cycle().skip(first).take(server.nodes.len()) {
            match Self::open_one(server, node).await {
                // What is wrong with this user or its database is so on each host.
                Err(trouble) if server.is_several() && trouble.is_absence() => {
                    troubles.push((of.host.as_str(), trouble));
                }
                outcome => return outcome,
            }
        }
        Err(Trouble::of_all(&troubles))
    }

    async fn open_one(server: &ServerDatabase, node: usize) -> Result<Self, Trouble> {
        let one_of_several = server.is_several();
        let opening = async {
            let mut driver = match server.dialect {
                Dialect::Mysql => Driver::Mysql(Box::new(mysql::MysqlConnection::open(server, node).await?)),
                Dialect::Postgres => {
                    Driver::Postgres(Box::new(postgres::PostgresConnection::open(server, node).await?))
                }
            };
            if one_of_several {
                driver.takes_changes().await?;
            }
            Ok(driver)
        };
        let hint = match server.dialect {
            // PostgreSQL waits for the client to speak first, MariaDB's client for the server.
            Dialect::Mysql => " (if it is PostgreSQL, write postgres:// for mysql://)",
            Dialect::Postgres => "",
        };
        let limit = if one_of_several { CONNECT_LIMIT_OF_SEVERAL } else { CONNECT_LIMIT };
        let late = || Trouble::Unreachable(format!("no answer within {} s{hint}", limit.as_secs()));
        let driver = timeout(limit, opening).await.unwrap_or_else(|_| Err(late()))?;
        Ok(Self { driver, node, one_of_several, used_at: Instant::now() })
    }

    /// Whether the connection is alive, so that it can be trusted with a statement that must not be executed twice. One that
    /// was not used since another `broke` is asked.
    pub(super) async fn is_alive(&mut self, broke: Option<Instant>) -> bool {
        if self.used_at.elapsed() < TRUSTED_IDLE && broke.is_none_or(|broke| broke < self.used_at) {
            return true;
        }
        let pinging = async {
            match &mut self.driver {
                // It may answer, and yet refuse every statement.
                driver if self.one_of_several => driver.takes_changes().await.is_ok(),
                Driver::Mysql(connection) => connection.ping().await,
                Driver::Postgres(connection) => connection.ping().await,
            }
        };
        timeout(CONNECT_LIMIT, pinging).await.unwrap_or(false)
    }

    /// Executes a statement, in one transaction with those that belong to it.
    pub(super) async fn run(
        &mut self,
        wanted: Wanted,
        statement: &Statement,
    ) -> Result<Reply, StatementFailure> {
        let running = async {
            match &statement.then[..] {
                [] => self.driver.run(wanted, statement).await,
                then => self.driver.run_whole(wanted, statement, then).await,
            }
        };
        let late = || StatementFailure::Connection(Trouble::Lost("it did not reply in time".into()));
        let outcome = timeout(STATEMENT_LIMIT, running).await.unwrap_or_else(|_| Err(late()));
        self.used_at = Instant::now();
        outcome
    }

    /// Executes a command such as `BEGIN` or `COMMIT`.
    pub(super) async fn command(&mut self, sql: &str) -> Result<(), Trouble> {
        self.driver.command(sql).await
    }
}

impl Driver {
    async fn run(&mut self, wanted: Wanted, statement: &Statement) -> Result<Reply, StatementFailure> {
        match self {
            Self::Mysql(connection) => connection.run(wanted, statement).await,
            Self::Postgres(connection) => connection.run(wanted, statement).await,
        }
    }

    async fn command(&mut self, sql: &str) -> Result<(), Trouble> {
        match self {
            Self::Mysql(connection) => connection.command(sql).await,
            Self::Postgres(connection) => connection.command(sql).await,
        }
    }

    /// Checks that it takes changes: an error if it is one of several servers, and not the one or ready to.
    async fn takes_changes(&mut self) -> Result<(), Trouble> {
        match self {
            Self::Mysql(connection) => connection.takes_changes().await,
            Self::Postgres(connection) => connection.takes_changes().await,
        }
    }

    /// Commits. Several nodes may decide only now that another transaction was first.
    async fn commit(&mut self) -> Result<(), StatementFailure> {
        match self {
            Self::Mysql(connection) => connection.commit().await,
            Self::Postgres(connection) => connection.commit().await,
        }
    }

    /// Executes a statement and those that belong to it: all or nothing.
    async fn run_whole(
        &mut self,
        wanted: Wanted,
        first: &Statement,
        then: &[Statement],
    ) -> Result<Reply, StatementFailure> {
        self.command("BEGIN").await.map_err(StatementFailure::Connection)?;
        let done = self.run_parts(wanted, first, then).await;
        match &done {
            Err(StatementFailure::Connection(_)) => return done,
            Ok(reply) if reply.has_changed() => self.commit().await?,
            _ => self.command("ROLLBACK").await.map_err(StatementFailure::Connection)?,
        }
        done
    }

    async fn run_parts(
        &mut self,
        wanted: Wanted,
        first: &Statement,
        then: &[Statement],
    ) -> Result<Reply, StatementFailure> {
        let reply = self.run(wanted, first).await?;
        if reply.has_changed() {
            for next in then {
                self.run(Wanted::Changed, next).await?;
            }
        }
        Ok(reply)
    }
}

/// A runtime on the calling thread.
pub(super) fn new_runtime() -> std::io::Result<runtime::Runtime> {
    runtime::Builder::new_current_thread().enable_io().enable_time().build()
}
