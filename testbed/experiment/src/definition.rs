//! What an experiment is: which systems to start, with which files and which load, and what varies.

use std::{fmt, str::FromStr, time::Duration};

use analysis::{comparison::Published, search::UsersRange};
use load::{Connections, Scenario};
use serde::Deserialize;

/// The most peers on one machine: each is a process with a dozen threads.
pub const PEERS_MAX: u32 = 64;

/// One experiment, checked.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What it shows, in one line.
    pub title: String,
    /// Accounts to make first; user `u` of the load signs in as account `u` modulo this.
    pub accounts: u32,
    /// What the page cache holds when a step begins.
    pub page_cache: PageCache,
    /// Which server the scenario drives.
    pub drive: Tier,
    /// Further flags of that server, as `nstar serve` has them.
    pub flags: Vec<String>,
    /// What is varied besides the works; `None` if the command line alone chooses the concurrency model.
    pub axis: Option<Axis>,
    /// What is measured, in this order, on every variant.
    pub works: Vec<Workload>,
    /// About how long all of it may take; `None`: each sweep takes as long as it needs.
    pub time: Option<Duration>,
    /// How often each variant does each work, in turn.
    pub rounds: u32,
    /// Figures published by others, shown beside the results.
    pub published: Vec<Published>,
}

/// What differs from variant to variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// The concurrency model.
    Engines(Engines),
    /// The number of workers of one model.
    Workers {
        /// The model.
        engine: String,
        /// How many, ascending.
        workers: Vec<u32>,
    },
    /// The database.
    Databases(Vec<DatabaseKind>),
    /// How many peers share files, and how they find what others have.
    Peers {
        /// Kinds of index.
        indexes: Vec<IndexKind>,
        /// Numbers of peers, ascending.
        peers: Vec<u32>,
    },
}

/// Concurrency models by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engines {
    /// All of them.
    All,
    /// These.
    Named(Vec<String>),
}

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What tells it from the others: `100 KB, 100 connections`; empty if it is the only one.
    pub name: String,
    /// Files to make first; for each peer, if peers are driven.
    pub files: Option<Files>,
    /// What the users do.
    pub scenario: Scenario,
    /// How many users; for each peer, if peers are driven.
    pub users: Users,
    /// Whether a user keeps its connection.
    pub connections: Connections,
    /// A request that takes longer has timed out; `None`: the generator's own limit.
    pub timeout: Option<Duration>,
    /// Whether users ask for more than can be served, so that denied requests are part of the result.
    pub overload: bool,
    /// Rate of the link between generator and server, Mb/s; `None`: loopback.
    pub link_mbit: Option<u32>,
}

/// Test files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Files {
    /// How many.
    pub count: u64,
    /// Size of each, bytes.
    pub size: u64,
}

/// How many users a work has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// This many, in one load.
    Fixed(u32),
    /// A sweep.
    Swept(UsersRange),
}

impl Users {
    /// The largest number of users.
    pub fn most(&self) -> u32 {
        match self {
            Users::Fixed(users) => *users,
            Users::Swept(UsersRange::Range { hi, .. }) => *hi,
            Users::Swept(UsersRange::List(users)) => users.iter().copied().max().unwrap_or(0),
        }
    }
}

/// What the page cache holds when a step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Whatever earlier steps left there.
    Warm,
    /// None of the files.
    Cold,
}

/// A server to drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The authenticated file server, in front of the accounts server.
    Files,
    /// The accounts server behind it.
    Accounts,
    /// The file server alone, open to all.
    OpenFiles,
    /// The upload sink.
    Sink,
    /// Room booking.
    Booking,
    /// All the peers that share files.
    Peers,
}

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// SQLite, within the server.
    Sqlite,
    /// MariaDB, a process of its own.
    Mariadb,
    /// PostgreSQL, processes of its own.
    Postgres,
}

impl DatabaseKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Mariadb, Self::Postgres];
}

impl fmt::Display for DatabaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Mariadb => "mariadb",
            Self::Postgres => "postgres",
        })
    }
}

impl FromStr for DatabaseKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is not a known database; choose sqlite, mariadb or postgres"))
    }
}

/// How peers find what others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// One server that all of them ask.
    Central,
    /// A distributed hash table, of which every peer keeps a part.
    Dht,
    /// Every peer knows all others, and so which of them keeps what: one hop.
    Partitioned,
}

impl IndexKind {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Central, Self::Dht, Self::Partitioned];
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Central => "central",
            Self::Dht => "dht",
            Self::Partitioned => "partitioned",
        })
    }
}

impl FromStr for IndexKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| {
            let known = Self::ALL.map(|kind| kind.to_string()).join(", ");
            format!("'{text}' is not a known index; choose one of {known}")
        })
    }
}
