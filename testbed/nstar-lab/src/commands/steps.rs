//! Steps that published experiments are made of, besides servers and loads. They are commands, so that the runner of
//! experiments knows no system.

pub(crate) mod bookings;
pub(crate) mod database_server;
pub(crate) mod fill;
pub(crate) mod peers;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serve::DatabaseLogin;
use store::Database;

/// An empty database server.
#[derive(Debug, Args)]
pub(crate) struct ServeDatabase {
    /// Kind of database server
    #[arg(value_enum)]
    pub kind: DatabaseKind,
    /// Port to listen on, on 127.0.0.1; for galera one for each node
    #[arg(long, value_name = "PORT", required = true)]
    pub port: Vec<u16>,
    /// Size of its cache, MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub cache: u32,
    /// A database to make in it
    #[arg(long, value_name = "NAME")]
    pub create: String,
    /// File with the password of its user, nstar; made with a random one if missing
    #[arg(long, value_name = "FILE")]
    pub password_file: PathBuf,
    /// Label: a new value makes an experiment start a new server
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DatabaseKind {
    Mariadb,
    Postgres,
    /// MariaDB on several nodes
    Galera,
}

/// What a database can be filled with.
#[derive(Debug, Subcommand)]
pub(crate) enum Fill {
    /// Bookings on the days 1 to 1800 ahead, spread evenly over the rooms of a new database
    Bookings(FillBookings),
}

#[derive(Debug, Args)]
pub(crate) struct FillBookings {
    /// The database: a path (SQLite), mysql://.. or postgres://..
    #[arg(long, value_name = "URL")]
    pub database: Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// Number of bookings
    #[arg(long, value_name = "N")]
    pub rows: u64,
}

/// What a system can prove.
#[derive(Debug, Subcommand)]
pub(crate) enum Prove {
    /// That a database holds every booking that was acknowledged, and none twice
    Bookings(ProveBookings),
}

#[derive(Debug, Args)]
pub(crate) struct ProveBookings {
    /// The database: a path (SQLite), mysql://.. or postgres://..; of several hosts, all must hold the same
    #[arg(long, value_name = "URL")]
    pub database: Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// What clients were told: a JSON list with `method`, `acknowledged`, `uncertain` and `refused` of each request
    #[arg(long, value_name = "FILE")]
    pub totals: PathBuf,
}

/// Peers that share files.
#[derive(Debug, Args)]
pub(crate) struct AwaitPeers {
    /// How many files each of them shares
    #[arg(long, value_name = "N")]
    pub files: usize,
    /// URLs of the peers: http://HOST:PORT
    #[arg(required = true, value_name = "URL")]
    pub peers: Vec<String>,
}
