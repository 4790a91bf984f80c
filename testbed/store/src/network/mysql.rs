//! MariaDB and MySQL.

use mysql_async::{
    Conn, DriverError, Error, IoError, Opts, OptsBuilder, Params, Pool, PoolConstraints, PoolOpts,
    Row as MysqlRow, SslOpts, Value as MysqlValue, prelude::Queryable,
};

use crate::{
    database::ServerDatabase,
    encryption::{self, Encryption},
    error::{StoreError, Trouble},
    queue::{Reply, StatementFailure, Wanted},
    rate_limited_log::RateLimitedLog,
    schema::Schema,
    statement::{Row, Statement, Value},
};

/// The oldest versions of MariaDB and MySQL that support generated columns in unique indexes correctly.
const WANTED: [(u32, u32); 2] = [(10, 3), (8, 0)];
const WANTED_TEXT: &str = "MariaDB 10.3 or MySQL 8.0";
/// Values are never truncated or adjusted, and locks cover no more rows than are written.
const SETTINGS: [&str; 2] = [
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO', \
     innodb_lock_wait_timeout = 10",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
];

/// On a node of Galera every statement sees what any node has acknowledged before: 7 means reads, updates, deletes and inserts.
const SEES_ALL: &str = "SET SESSION wsrep_sync_wait = 7";

static FAILED: RateLimitedLog = RateLimitedLog::new();

/// What says whether a server takes changes. A node of Galera that is cut off from most of the others refuses what touches
/// tables, and answers this.
const TAKES_CHANGES: &str = "SHOW STATUS WHERE Variable_name IN ('wsrep_provider_name', 'wsrep_ready')";
const READ_ONLY: &str = "SELECT CAST(@@global.read_only AS SIGNED)";

pub(super) struct MysqlConnection(Conn);

impl MysqlConnection {
    pub(super) async fn open(server: &ServerDatabase, node: usize) -> Result<Self, Trouble> {
        let mut connection = Conn::new(options(server, node)?).await.map_err(unopened)?;
        for setting in SETTINGS {
            connection.query_drop(setting).await.map_err(unopened)?;
        }
        match connection.query_drop(SEES_ALL).await {
            // MySQL, or MariaDB built without Galera.
            Err(Error::Server(error)) if error.code == UNKNOWN_VARIABLE => {}
            other => other.map_err(unopened)?,
        }
        Ok(Self(connection))
    }

    pub(super) async fn ping(&mut self) -> bool {
        self.0.ping().await.is_ok()
    }

    pub(super) async fn command(&mut self, sql: &str) -> Result<(), Trouble> {
        self.0.query_drop(sql).await.map_err(unopened)
    }

    pub(super) async fn takes_changes(&mut self) -> Result<(), Trouble> {
        let status: Vec<(String, String)> = self.0.query(TAKES_CHANGES).await.map_err(unopened)?;
        let read_only: Option<i64> = self.0.query_first(READ_ONLY).await.map_err(unopened)?;
        match unready(&status, read_only.unwrap_or(0) != 0) {
            Some(said) => Err(Trouble::NotReady(said.into())),
            None => Ok(()),
        }
    }

    /// Commits. A node of Galera may say only now that a transaction on another was first.
    pub(super) async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.0.query_drop("COMMIT").await.map_err(|error| match error {
            Error::Server(error) if error.code == DEADLOCK => StatementFailure::RolledBack(error.to_string()),
            error => StatementFailure::Connection(unopened(error)),
        })
    }

    pub(super) async fn run(
        &mut self,
        wanted: Wanted,
        statement: &Statement,
    ) -> Result<Reply, StatementFailure> {
        let (sql, values) = statement.mysql();
        let values: Vec<MysqlValue> = values.map(MysqlValue::from).collect();
        let values = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        let done = match wanted {
            Wanted::Rows => self.0.exec::<MysqlRow, _, _>(sql, values).await.map(Some),
            _ => self.0.exec_drop(sql, values).await.map(|()| None),
        };
        let inserts = matches!(wanted, Wanted::Inserted | Wanted::InsertedId);
        match done {
            Ok(Some(rows)) => rows
                .into_iter()
                .map(row)
                .collect::<Result<_, _>>()
                .map(Reply::Rows)
                .map_err(StatementFailure::Statement),
            Ok(None) if inserts => {
                let id = i64::try_from(self.0.last_insert_id().unwrap_or(0)).unwrap_or(0);
                Ok(Reply::Inserted((self.0.affected_rows() > 0).then_some(id)))
            }
            Ok(None) => Ok(Reply::Changed(self.0.affected_rows())),
            Err(Error::Server(error)) if inserts && error.code == DUPLICATE => Ok(Reply::Inserted(None)),
            Err(error) => Err(failure(error, statement)),
        }
    }
}

/// Why a server takes no changes now.
fn unready(status: &[(String, String)], read_only: bool) -> Option<&'static str> {
    let value = |name: &str| status.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value.as_str());
    // Without Galera, MariaDB says OFF, too.
    if !value("wsrep_provider_name").is_empty() && value("wsrep_ready") != "ON" {
        return Some("it is not, or not yet, one of most of the nodes (wsrep_ready is OFF)");
    }
    read_only.then_some("it is read-only")
}

/// Brings the tables up to date. Tables are not created in transactions here, so `GET_LOCK` keeps other programs out
/// meanwhile. The lock ends with the connection.
pub(super) async fn migrate(
    server: &ServerDatabase,
    node: usize,
    session: &mut MysqlConnection,
    schema: &Schema,
) -> Result<Result<(), refinery::Error>, Trouble> {
    check_version(&mut session.0).await?;
    let locked: Option<i64> = session
        .0
        .exec_first("SELECT GET_LOCK(?, 60)", (format!("nstar-{}", schema.name),))
        .await
        .map_err(unopened)?;
    if locked != Some(1) {
        return Err(Trouble::Other("another program is creating its tables and does not finish".into()));
    }
    let one = PoolConstraints::new(1, 1).map(|constraints| PoolOpts::default().with_constraints(constraints));
    let mut pool = Pool::new(OptsBuilder::from_opts(options(server, node)?).pool_opts(one));
    let migrated = match schema.runner(|step| step.mysql) {
        Ok(runner) => runner.run_async(&mut pool).await.map(drop),
        Err(error) => Err(error),
    };
    // Commits stay, however the connection ends.
    let _ = pool.disconnect().await;
    Ok(migrated)
}

async fn check_version(connection: &mut Conn) -> Result<(), Trouble> {
    let found: Option<String> = connection.query_first("SELECT VERSION()").await.map_err(unopened)?;
    let found = found.unwrap_or_default();
    if is_new_enough(&found) { Ok(()) } else { Err(Trouble::Version { found, wanted: WANTED_TEXT }) }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let [mariadb, mysql] = WANTED;
    found >= if version.contains("MariaDB") { mariadb } else { mysql }
}

/// The driver's options. It uses TCP even on this host, so that sweeps find the database by its socket.
fn options(server: &ServerDatabase, node: usize) -> Result<Opts, Trouble> {
    let url = server.nodes.get(node).map_or("", |node| node.driver_url.as_str());
    let options = Opts::from_url(url).map_err(|_| Trouble::Other("its URL is malformed".into()))?;
    let password = server
        .password
        .as_ref()
        .map(|password| password.to_string())
        .or_else(|| options.pass().map(str::to_owned));
    let encryption = server.encryption.as_ref().map(encrypted).transpose()?;
    // Count the rows that were found rather than changed, like the other databases.
    let options = OptsBuilder::from_opts(options).pass(password).prefer_socket(false).client_found_rows(true);
    Ok(options.ssl_opts(encryption).into())
}

fn encrypted(encryption: &Encryption) -> Result<SslOpts, Trouble> {
    let roots = encryption.roots()?.into_iter().map(|root| root.to_vec().into()).collect();
    // The driver uses the default of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots))
}

// Numbers of errors, from MariaDB's and MySQL's manuals.
const DUPLICATE: u16 = 1062;
const DEADLOCK: u16 = 1213;
const UNKNOWN_VARIABLE: u16 = 1193;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DISK_FULL: [u16; 3] = [1021, 1041, 1114];
const TOO_MANY: [u16; 3] = [1040, 1203, 1226];
const LOGIN: [u16; 2] = [1045, 1698];
const RIGHTS: [u16; 4] = [1044, 1142, 1143, 1227];
const NO_DATABASE: u16 = 1049;
/// The server closes the connection: it shuts down, or the connection was killed or idle for too long.
const CLOSING: [u16; 5] = [1053, 1927, 4031, 1077, 1079];
/// A node of Galera is cut off from the others; the commit failed, and may have reached them; the server is read-only.
const LEFT: [u16; 4] = [1047, 1180, 1290, 1836];

/// Why a connection could not be opened.
fn unopened(error: Error) -> Trouble {
    match error {
        Error::Server(error) => {
            let code = error.code;
            let said = error.to_string();
            match code {
                _ if TOO_MANY.contains(&code) => Trouble::TooMany,
                _ if LOGIN.contains(&code) => Trouble::Login(said),
                _ if RIGHTS.contains(&code) => Trouble::NoRights(said),
                NO_DATABASE => Trouble::NoDatabase(said),
                _ => Trouble::Other(said),
            }
        }
        Error::Driver(DriverError::NoClientSslFlagFromServer) => encryption::unsupported(),
        Error::Io(IoError::Tls(error)) => Trouble::Encryption(error.to_string()),
        Error::Io(IoError::Io(error)) => {
            encryption::trouble_of(&error).unwrap_or_else(|| Trouble::Unreachable(error.to_string()))
        }
        error => Trouble::Unreachable(error.to_string()),
    }
}

/// The message of a connection error, without the "Input/output error" that each layer of the driver adds.
fn said(error: &Error) -> String {
    match error {
        Error::Io(IoError::Io(error)) => error.to_string(),
        error => error.to_string(),
    }
}

/// The trouble behind a failed migration, if the server caused it.
pub(super) fn trouble_of(error: &(dyn std::error::Error + 'static)) -> Option<Trouble> {
    match error.downcast_ref::<Error>()? {
        Error::Server(error) => Some(unopened(Error::Server(error.clone()))),
        error => Some(Trouble::Lost(said(error))),
    }
}

fn failure(error: Error, statement: &Statement) -> StatementFailure {
    match error {
        Error::Server(error) if CLOSING.contains(&error.code) || LEFT.contains(&error.code) => {
            StatementFailure::Connection(Trouble::Lost(error.to_string()))
        }
        Error::Server(error) if error.code == DEADLOCK => StatementFailure::RolledBack(error.to_string()),
        Error::Server(error) => {
            let reason = match error.code {
                LOCK_WAIT_TIMEOUT => StoreError::Busy,
                code if DISK_FULL.contains(&code) => StoreError::DiskFull,
                _ => StoreError::Failed,
            };
            FAILED.write(|suppressed| {
                tracing::error!(
                    code = error.code,
                    state = error.state,
                    ?statement,
                    suppressed,
                    "a statement failed"
                );
            });
            StatementFailure::Statement(reason)
        }
        error => StatementFailure::Connection(Trouble::Lost(said(&error))),
    }
}

impl From<&Value> for MysqlValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Int(number) => Self::Int(*number),
            Value::Text(text) => Self::Bytes(text.clone().into_bytes()),
            Value::Bytes(bytes) => Self::Bytes(bytes.clone()),
        }
    }
}

/// Converts a row. Text arrives as bytes; [`Row::text`] converts it.
fn row(row: MysqlRow) -> Result<Row, StoreError> {
    let value = |value| match value {
        MysqlValue::NULL => Ok(Value::Null),
        MysqlValue::Int(number) => Ok(Value::Int(number)),
        MysqlValue::UInt(number) => i64::try_from(number).map(Value::Int).map_err(|_| StoreError::Failed),
        MysqlValue::Bytes(bytes) => Ok(Value::Bytes(bytes)),
        _ => Err(StoreError::Failed),
    };
    row.unwrap().into_iter().map(value).collect::<Result<_, _>>().map(Row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        for good in
            ["10.11.6-MariaDB-0+deb12u1", "10.3.0-MariaDB", "11.4.2-MariaDB", "8.0.36", "9.1.0-commercial"]
        {
            assert!(is_new_enough(good), "{good}");
        }
        for old in ["10.2.9-MariaDB", "5.5.68-MariaDB", "5.7.44-log", "", "x.y"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }

    #[test]
    fn a_node_that_takes_no_changes_is_told_from_a_server_of_its_own() {
        let status = |provider: &str, ready: &str| {
            [("wsrep_provider_name", provider), ("wsrep_ready", ready)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        assert_eq!(unready(&status("Galera", "ON"), false), None);
        assert_eq!(unready(&status("", "OFF"), false), None, "MariaDB without Galera");
        assert_eq!(unready(&[], false), None, "MySQL");
        assert!(unready(&status("Galera", "OFF"), false).is_some_and(|said| said.contains("wsrep_ready")));
        assert_eq!(unready(&status("", "OFF"), true), Some("it is read-only"));
    }

    #[test]
    fn server_errors_are_sorted_by_what_can_be_done() {
        let said = |code| {
            unopened(Error::Server(mysql_async::ServerError { code, message: "m".into(), state: "s".into() }))
        };
        assert_eq!(said(1040), Trouble::TooMany);
        assert!(matches!(said(1045), Trouble::Login(_)));
        assert!(matches!(said(1044), Trouble::NoRights(_)));
        assert!(matches!(said(1049), Trouble::NoDatabase(_)));
    }
}
