//! PostgreSQL.

use std::{collections::HashMap, io::ErrorKind};

use tokio::task::spawn_local;
use tokio_postgres::{
    Client, Config, Error, NoTls, Row as PostgresRow, Socket, Statement as Prepared,
    config::SslMode,
    error::SqlState,
    tls::MakeTlsConnect,
    types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    database::ServerDatabase,
    encryption,
    error::{StoreError, Trouble},
    queue::{Reply, StatementFailure, Wanted},
    rate_limited_log::RateLimitedLog,
    schema::Schema,
    statement::{Row, Statement, Value},
};

/// Roughly the oldest version that is still maintained.
const WANTED: i32 = 120_000;
const WANTED_TEXT: &str = "PostgreSQL 12";
/// A reply means that the commit is on disk, also that of a synchronous standby, whatever the server's defaults. When a commit
/// takes longer than `statement_timeout`, the server would stop waiting for the standby, and acknowledge it.
const SETTINGS: &str = "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = 0";

static FAILED: RateLimitedLog = RateLimitedLog::new();

pub(super) struct PostgresConnection {
    client: Client,
    prepared: HashMap<(&'static str, Wanted), Prepared>,
}

impl PostgresConnection {
    pub(super) async fn open(server: &ServerDatabase, node: usize) -> Result<Self, Trouble> {
        let url = server.nodes.get(node).map_or("", |node| node.driver_url.as_str());
        let mut config: Config = url.parse().map_err(|_| Trouble::Other("its URL is malformed".into()))?;
        if let Some(password) = &server.password {
            config.password(password);
        }
        let client = match &server.encryption {
            None => {
                connect(config.ssl_mode(SslMode::Disable), NoTls).await.map_err(|error| unopened(&error))?
            }
            Some(encryption) => {
                let tls = MakeRustlsConnect::new(encryption.config()?);
                connect(config.ssl_mode(SslMode::Require), tls).await.map_err(|error| unencrypted(&error))?
            }
        };
        client.batch_execute(SETTINGS).await.map_err(|error| unopened(&error))?;
        Ok(Self { client, prepared: HashMap::new() })
    }

    pub(super) async fn ping(&mut self) -> bool {
        !self.client.is_closed() && self.client.check_connection().await.is_ok()
    }

    pub(super) async fn command(&mut self, sql: &str) -> Result<(), Trouble> {
        self.client.batch_execute(sql).await.map_err(|error| unopened(&error))
    }

    pub(super) async fn takes_changes(&mut self) -> Result<(), Trouble> {
        let reply = self.client.query_one("SELECT current_setting('transaction_read_only')", &[]).await;
        let read_only: String = reply.and_then(|row| row.try_get(0)).map_err(|error| unopened(&error))?;
        match read_only.as_str() {
            "on" => Err(Trouble::NotReady("it is read-only, as a standby is".into())),
            _ => Ok(()),
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.client.batch_execute("COMMIT").await.map_err(|error| match error.code() {
            Some(code) if is_rolled_back(code) => StatementFailure::RolledBack(chain(&error)),
            _ => StatementFailure::Connection(unopened(&error)),
        })
    }

    pub(super) async fn run(
        &mut self,
        wanted: Wanted,
        statement: &Statement,
    ) -> Result<Reply, StatementFailure> {
        self.execute(wanted, statement).await.unwrap_or_else(|error| Err(failure(&error, statement)))
    }

    async fn execute(
        &mut self,
        wanted: Wanted,
        statement: &Statement,
    ) -> Result<Result<Reply, StatementFailure>, Error> {
        let prepared = self.prepare(statement.sql, wanted).await?;
        let values: Vec<&(dyn ToSql + Sync)> =
            statement.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        Ok(Ok(match wanted {
            Wanted::Rows => {
                let rows = self.client.query(&prepared, &values).await?;
                let rows: Result<Vec<Row>, Error> = rows.iter().map(row).collect();
                Reply::Rows(rows?)
            }
            Wanted::InsertedId => {
                let inserted = self.client.query_opt(&prepared, &values).await?;
                Reply::Inserted(inserted.map(|row| row.try_get(0)).transpose()?)
            }
            Wanted::Inserted => {
                Reply::Inserted((self.client.execute(&prepared, &values).await? > 0).then_some(0))
            }
            Wanted::Changed => Reply::Changed(self.client.execute(&prepared, &values).await?),
        }))
    }

    async fn prepare(&mut self, sql: &'static str, wanted: Wanted) -> Result<Prepared, Error> {
        if let Some(prepared) = self.prepared.get(&(sql, wanted)) {
            return Ok(prepared.clone());
        }
        let prepared = self.client.prepare(&translated(sql, wanted)).await?;
        self.prepared.insert((sql, wanted), prepared.clone());
        Ok(prepared)
    }
}

async fn connect<T>(config: &Config, tls: T) -> Result<Client, Error>
where
    T: MakeTlsConnect<Socket, Stream: 'static>,
{
    let (client, connection) = config.connect(tls).await?;
    spawn_local(async move {
        // Users of the client get an error too; this is the server's last message.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
    Ok(client)
}

/// Converts a statement to PostgreSQL's dialect: `?` becomes `$1`, `$2` and so on. Rows that a unique index refuses are not
/// errors, because the server would log each of them.
fn translated(sql: &str, wanted: Wanted) -> String {
    let mut numbered = String::with_capacity(sql.len() + 64);
    let mut parts = sql.split('?');
    numbered.push_str(parts.next().unwrap_or_default());
    for (number, part) in (1..).zip(parts) {
        numbered.push_str(&format!("${number}{part}"));
    }
    numbered.push_str(match wanted {
        Wanted::Rows | Wanted::Changed => "",
        Wanted::Inserted => " ON CONFLICT DO NOTHING",
        Wanted::InsertedId => " ON CONFLICT DO NOTHING RETURNING id",
    });
    numbered
}

/// Brings the tables up to date. An advisory lock keeps other programs out meanwhile. It ends with the connection.
pub(super) async fn migrate(
    session: &mut PostgresConnection,
    schema: &Schema,
) -> Result<Result<(), refinery::Error>, Trouble> {
    check_version(&session.client).await?;
    let lock = format!("SET lock_timeout = '60s'; SELECT pg_advisory_lock({})", schema.application_id);
    session.client.batch_execute(&lock).await.map_err(|error| unlocked(&error))?;
    session.client.batch_execute(SETTINGS).await.map_err(|error| unopened(&error))?;
    Ok(match schema.runner(|step| step.postgres) {
        Ok(runner) => runner.run_async(&mut session.client).await.map(drop),
        Err(error) => Err(error),
    })
}

/// Why the lock could not be taken.
fn unlocked(error: &Error) -> Trouble {
    match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Trouble::Other("another program is creating its tables and does not finish".into())
        }
        _ => unopened(error),
    }
}

async fn check_version(client: &Client) -> Result<(), Trouble> {
    let number = client.query_one("SELECT current_setting('server_version_num')::int", &[]).await;
    let number: i32 = number.and_then(|row| row.try_get(0)).map_err(|error| unopened(&error))?;
    if number >= WANTED {
        return Ok(());
    }
    Err(Trouble::Version { found: (number / 10_000).to_string(), wanted: WANTED_TEXT })
}

/// What probably answers instead of PostgreSQL.
const FOREIGN: &str = "no PostgreSQL; if it is MariaDB or MySQL, write mysql:// for postgres://";

/// Why a connection could not be opened.
fn unopened(error: &Error) -> Trouble {
    let Some(database) = error.as_db_error() else {
        return if is_foreign_protocol(error) {
            Trouble::Foreign(FOREIGN)
        } else if lacks_password(error) {
            Trouble::Login("it asks for a password, and none is given".into())
        } else {
            Trouble::Unreachable(chain(error))
        };
    };
    let said = database.message().to_owned();
    match database.code() {
        &SqlState::TOO_MANY_CONNECTIONS => Trouble::TooMany,
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Trouble::Login(said),
        // The second one without USAGE: the schema is then not found at all.
        &SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::INVALID_SCHEMA_NAME => Trouble::NoSchemaRights(said),
        &SqlState::INVALID_CATALOG_NAME => Trouble::NoDatabase(said),
        &SqlState::CANNOT_CONNECT_NOW => Trouble::NotReady(said),
        code if is_closing(code) => Trouble::Unreachable(said),
        _ => Trouble::Other(said),
    }
}

/// Whether the server does not speak PostgreSQL's protocol. MariaDB and MySQL speak first.
fn is_foreign_protocol(error: &Error) -> bool {
    let Some(source) = std::error::Error::source(error) else {
        // The driver distinguishes this kind of error by its message only.
        return error.to_string() == "unexpected message from server";
    };
    let source = source.downcast_ref::<std::io::Error>();
    source.is_some_and(|source| matches!(source.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}

/// Whether the server asks for a password and the URL has none. The driver distinguishes this by its message only.
fn lacks_password(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string() == "password missing")
}

/// Why an encrypted connection could not be opened. An error from neither the server nor the socket is the driver's way to
/// say that the server refused TLS.
fn unencrypted(error: &Error) -> Trouble {
    if error.as_db_error().is_some() {
        return unopened(error);
    }
    match std::error::Error::source(error).map(|source| source.downcast_ref::<std::io::Error>()) {
        Some(Some(way)) => encryption::trouble_of(way).unwrap_or_else(|| unopened(error)),
        Some(None) => encryption::unsupported(),
        None => unopened(error),
    }
}

/// The trouble behind a failed migration, if the server caused it.
pub(super) fn trouble_of(error: &(dyn std::error::Error + 'static)) -> Option<Trouble> {
    error.downcast_ref::<Error>().map(unopened)
}

/// Whether the server closes the connection: it shuts down or crashed, or an administrator ended the connection.
fn is_closing(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT].contains(code)
}

/// Whether the server rolled the transaction back, and it may be retried.
fn is_rolled_back(code: &SqlState) -> bool {
    [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
}

fn failure(error: &Error, statement: &Statement) -> StatementFailure {
    let Some(code) = error.code() else {
        return StatementFailure::Connection(Trouble::Lost(chain(error)));
    };
    if is_closing(code) || *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        return StatementFailure::Connection(Trouble::Lost(chain(error)));
    }
    if is_rolled_back(code) {
        return StatementFailure::RolledBack(chain(error));
    }
    // The message may contain values; the code does not.
    FAILED.write(|suppressed| {
        tracing::error!(code = code.code(), ?statement, suppressed, "a statement failed")
    });
    StatementFailure::Statement(match *code {
        SqlState::LOCK_NOT_AVAILABLE => StoreError::Busy,
        SqlState::DISK_FULL => StoreError::DiskFull,
        _ => StoreError::Failed,
    })
}

/// An error with its cause. The error itself says only that connecting failed.
fn chain(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Converts to the type of the column.
impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Self::Int(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

fn row(row: &PostgresRow) -> Result<Row, Error> {
    let value = |(column, ty): (usize, &Type)| {
        Ok(match *ty {
            Type::INT4 => row.try_get::<_, Option<i32>>(column)?.map(i64::from).into(),
            Type::INT8 => row.try_get::<_, Option<i64>>(column)?.into(),
            Type::BYTEA => row.try_get::<_, Option<&[u8]>>(column)?.into(),
            _ => row.try_get::<_, Option<&str>>(column)?.into(),
        })
    };
    let types = row.columns().iter().map(|column| column.type_());
    types.enumerate().map(value).collect::<Result<_, _>>().map(Row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_and_refusals_are_no_errors() {
        let insert = "INSERT INTO t (a, b) VALUES (?, ?)";
        assert_eq!(translated("SELECT 1", Wanted::Rows), "SELECT 1");
        assert_eq!(
            translated("UPDATE t SET a = ? WHERE b = ?", Wanted::Changed),
            "UPDATE t SET a = $1 WHERE b = $2"
        );
        assert_eq!(
            translated(insert, Wanted::InsertedId),
            "INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id"
        );
    }
}
