//! Why a server, or its database, could not be watched.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reasons why the server's processes could not be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ServerUnwatched {
    /// The address is not one of this host's.
    NotLocal {
        /// The server's address.
        address: SocketAddr,
    },
    /// The address is local, but no process listens there.
    NotListening {
        /// The server's address.
        address: SocketAddr,
    },
    /// The address is local, but no process listens there: address translation may lead on from it, and connection tracking,
    /// which tells where to, may not be read.
    TranslationUnread {
        /// The server's address.
        address: SocketAddr,
    },
    /// A process listens, but this user may not see which.
    PermissionDenied {
        /// The server's address.
        address: SocketAddr,
    },
    /// A socket listens, but no process of this host holds it.
    NoOwner {
        /// The server's address.
        address: SocketAddr,
    },
    /// Only the generator's own process holds the socket.
    OwnProcess {
        /// The server's address.
        address: SocketAddr,
    },
    /// A directory of `/proc` cannot be listed.
    Unreadable {
        /// The directory.
        path: String,
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
    /// No process was found to serve the target.
    NoProcess,
}

/// Reasons why less is known of the sockets of a network namespace than of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SocketsUnread {
    /// The namespace may not be entered, and the kernel tells all about sockets only inside.
    NamespaceClosed {
        /// The name of a process that runs in it.
        name: String,
        /// Its number.
        pid: u32,
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
        /// Whether its tables of sockets could at least be read as files, which tell less.
        tables: bool,
    },
    /// The kernel answers no questions about the sockets of the namespace that nstar itself runs in.
    NotAnswered {
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
        /// Whether its tables of sockets could at least be read as files, which tell less.
        tables: bool,
    },
}

/// Reasons why an agent on another host told less than it was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AgentTrouble {
    /// It ended during the run.
    Ended {
        /// The exit code of the command that ran it, if it has one.
        code: Option<i32>,
        /// The last lines of that command on stderr; empty where it printed nothing.
        stderr: String,
    },
    /// The stream from it broke during the run.
    Disconnected {
        /// Why.
        reason: String,
    },
    /// It sent what no agent sends, and was not listened to any longer.
    Malformed,
    /// It sent more than it may, and was not listened to any longer.
    Flooded,
    /// For some time nothing came from it.
    Silent {
        /// The longest such time, seconds.
        longest_s: f64,
    },
    /// The stream did not take all that it had to tell.
    LeftOut {
        /// Samples and looks that were left out.
        count: u64,
    },
    /// Its clock is not known well enough to place its samples.
    Clock {
        /// By how much they may be displaced, microseconds.
        error_us: f64,
    },
    /// It did not find the server; what it says of the host itself is used.
    ServerNotFound {
        /// The reason.
        reason: ServerUnwatched,
    },
    /// It found neither the server nor anything that a tier on another host calls; what it says of the host itself is used.
    NothingCalled {
        /// Addresses that tiers on other hosts call, and that nobody was seen to serve.
        addresses: Vec<SocketAddr>,
    },
    /// It sees the same processes as another observer, so that only what that one says is used.
    Redundant,
    /// Nothing but the port says that what it found is the server.
    ByPort {
        /// The address that the load calls.
        address: SocketAddr,
        /// Where what it found listens.
        at: SocketAddr,
    },
}

/// Reasons why a database did not report all of its locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DatabaseTrouble {
    /// Its client is not installed.
    NotInstalled {
        /// The client.
        client: DatabaseClient,
    },
    /// Its client could not be started.
    NotStarted {
        /// The client.
        client: DatabaseClient,
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
    /// Its client ended, which it does after any error.
    Ended {
        /// The client.
        client: DatabaseClient,
        /// Its output on stderr; empty where it printed nothing.
        stderr: String,
    },
    /// The database did not answer in time.
    TimedOut {
        /// How long nstar waited, seconds.
        limit_s: u64,
    },
    /// Its answer could not be parsed.
    Unparsable {
        /// The client that printed it.
        client: DatabaseClient,
    },
    /// The user may not see everything.
    Hidden {
        /// The hidden part.
        what: HiddenFromUser,
    },
    /// The thread that asks could not be started.
    NoThread {
        /// The number of the kernel's error, if the kernel gave one.
        os_error: Option<i32>,
    },
}

/// The command-line client of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseClient {
    /// PostgreSQL's.
    Psql,
    /// MariaDB's.
    Mariadb,
    /// MySQL's.
    Mysql,
}

impl DatabaseClient {
    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Psql => "psql",
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
        }
    }
}

/// Parts that a database hides from the user who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HiddenFromUser {
    /// Open transactions, so that every connection counts as at work (MariaDB and MySQL).
    Transactions,
    /// The statements of other users' sessions (PostgreSQL).
    Sessions,
}
